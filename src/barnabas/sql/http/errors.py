"""Errors as JSON has them."""

from __future__ import annotations

from typing import Any

from barnabas.sql.interface import SqlError


def error_body(error: SqlError) -> dict[str, Any]:
    """The fields of an error; those without a value are left out."""
    fields = {
        "sqlstate": error.sqlstate,
        "message": error.message,
        "position": error.position,
        "detail": error.detail,
        "hint": error.hint,
    }
    return {name: value for name, value in fields.items() if value is not None}
