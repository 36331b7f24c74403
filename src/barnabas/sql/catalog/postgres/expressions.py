"""Defaults and generated columns in the words of Postgres' catalogue, which tools compare with their own: `'a'::text`, `'-1'::integer`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.definitions import ColumnDefinition
from barnabas.sql.catalog.postgres.types import oid_of, shown, type_words
from barnabas.sql.dialect import parse_expression
from barnabas.sql.duck.types import declared_field
from barnabas.sql.interface import SqlError

_MOST_INTEGER = 1 << 31
_NAMES = {"character": "bpchar", "character[]": "bpchar[]"}


def default_text(column: ColumnDefinition) -> str | None:
    """The default of a column as `pg_get_expr` has it; None without one, and for identity and generated columns."""
    if column.identity or column.generated is not None or column.default is None:
        return None
    return _default(column.default, type_words(column.field))


def generated_text(column: ColumnDefinition) -> str | None:
    """The expression of a generated column, with brackets around an operator."""
    if column.generated is None:
        return None
    return f"({column.generated})" if _is_operator(column.generated) else column.generated


@lru_cache(maxsize=1_000)
def _is_operator(text: str) -> bool:
    return isinstance(parse_expression(text), (exp.Binary, exp.Not))


@lru_cache(maxsize=1_000)
def _default(text: str, kind: str) -> str:
    if text.lower().startswith("nextval") or text == "now()":
        return text
    tree = parse_expression(text)
    match tree:
        case exp.Literal():
            return _literal(tree.name, _NAMES.get(kind, kind)) if tree.is_string else _number(tree.name)
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return _number(f"-{tree.this.name}")
        case exp.Boolean():
            return "true" if tree.this else "false"
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            return _literal(tree.this.name, _kind_of(tree.to) or kind)
        case exp.Interval() if isinstance(tree.this, exp.Literal):
            unit = tree.args.get("unit")
            return _literal(f"{tree.this.name} {unit.name.lower()}" if unit is not None else tree.this.name, "interval")
        case exp.Uuid():
            return "gen_random_uuid()"
        case exp.Func() if text.endswith("()"):
            return text.lower()
    return text


def _kind_of(to: Any) -> str | None:
    try:
        field = declared_field("x", to)
    except SqlError:
        return None
    found = shown(oid_of(field))
    return _NAMES.get(found, found)


def _literal(value: str, kind: str) -> str:
    return "'" + value.replace("'", "''") + f"'::{kind}"


def _number(text: str) -> str:
    """A number: with its type if it is negative, or too large for an integer."""
    is_whole = text.lstrip("-").isdigit()
    kind = "numeric" if not is_whole else "integer" if -_MOST_INTEGER <= int(text) < _MOST_INTEGER else "bigint"
    return _literal(text, kind) if text.startswith("-") or kind == "bigint" else text
