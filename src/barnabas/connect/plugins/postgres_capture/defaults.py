"""The defaults of PostgreSQL's columns as values, as Debezium reads them from their expressions.

The server is not asked to evaluate them. Of a call of a function Debezium takes a value that stands for nothing, of another expression its
first literal. Types that are not named here have no default.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.table_columns import Filling
from barnabas.connect.plugins.postgres_capture.catalog import Said
from barnabas.connect.plugins.postgres_capture.forms import VARIABLE, Form, PgType

_CALL = re.compile(r"\(?[\w.\"]+\(")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_TEXTS = ("text", "varchar", "bpchar", "xml")
_MOMENTS = {
    "date": "1970-01-01", "time": "00:00:00", "timestamp": "1970-01-01 00:00:00", "timestamptz": "1970-01-01 00:00:00+00",
}  # fmt: skip
_OF_CALLS: dict[str, str | None] = {  # by type, what stands for the value of a function; None for no default
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric"), "0"), "bool": "f", **dict.fromkeys(_TEXTS, ""),
    "json": "{}", "jsonb": "{}", "uuid": "00000000-0000-0000-0000-000000000000", **_MOMENTS, "interval": "PT0S",
    "bit": None, "varbit": None,
}  # fmt: skip
_BOOLEANS = {"true": "t", "false": "f"}


def filling_of(said: Said, kind: PgType, form: Form) -> Filling:
    """What the catalog says of a column, with its default as a value of its form."""
    return Filling(said.is_required, None if said.default is None or said.is_domain else _default(said.default, kind, form))


def _default(expression: str, kind: PgType, form: Form) -> Any:
    if kind.element is not None or form.kind == VARIABLE or not (kind.is_enum or kind.name in _OF_CALLS):
        return None
    text = _text(expression, "" if kind.is_enum else kind.name)
    if text is None:
        return None
    try:
        return form.convert(pa.array([text]))
    except (ConnectError, pa.ArrowException, ValueError, OverflowError):  # it is no literal of the type
        return None


def _text(expression: str, kind: str) -> str | None:
    """The text of the value."""
    if _CALL.match(expression):
        return _OF_CALLS.get(kind)
    literal = _LITERAL.search(expression)
    if literal is not None:
        return literal[1].replace("''", "'")
    if expression.upper().startswith("NULL"):
        return None
    if kind == "bool":
        return _BOOLEANS.get(expression)
    return _MOMENTS.get(kind, expression)  # of CURRENT_DATE and the like
