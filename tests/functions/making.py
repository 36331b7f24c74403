"""Functions for tests."""

from __future__ import annotations

from typing import Any

from barnabas.functions.body import check
from barnabas.functions.definition import PYTHON, Argument, Function


def argument(name: str, kind: str) -> Argument:
    return Argument(name, kind, kind.lower())


def function(body: str, arguments: str = "a BIGINT", returns: str | None = "BIGINT", name: str = "f", **more: Any) -> Function:
    """A function in Python, checked."""
    parts = [each.strip().partition(" ") for each in arguments.split(";") if each.strip()]
    made = tuple(argument(one, kind) for one, _, kind in parts)
    result = None if returns is None else argument("", returns)
    return check(Function(name, made, result, PYTHON, body, **more))
