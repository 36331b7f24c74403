"""Operators that DuckDB has with another meaning: division."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp


def chosen_by_types(macro: str, *operands: Any) -> Any:
    """A macro that chooses by the types. DuckDB does not know those of aggregates there, but those of a lambda's argument."""
    if not any(each.find(exp.AggFunc, exp.Window, exp.Anonymous) for each in operands):
        return exp.Anonymous(this=macro, expressions=[each.copy() for each in operands])
    names = "abc"[: len(operands)]
    packed = ", ".join(f"{name} := {each.sql('duckdb')}" for name, each in zip(names, operands, strict=True))
    given = ", ".join(f"s.{name}" for name in names)
    return sqlglot.parse_one(f"list_transform([struct_pack({packed})], lambda s: {macro}({given}))[1]", dialect="duckdb")


_NAMES = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
    "row_to_json": "to_json",
    "to_jsonb": "to_json",
    "proctime": "now",
    "clock_timestamp": "now",
    "statement_timestamp": "now",
    "transaction_timestamp": "now",
    "char_length": "length",
    "character_length": "length",
    "cardinality": "len",
    "pg_typeof": "__pg_typeof",
    "every": "bool_and",
    "pg_size_pretty": "__size_pretty",
}
_CASTS = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double", "text": "text",
    "varchar": "text", "numeric": "decimal(38, 9)", "timestamptz": "timestamptz",
}  # fmt: skip
_FRACTIONS = {
    **dict.fromkeys(("SECOND", "SECONDS"), ("0.000001", "DECIMAL(18, 6)")),
    **dict.fromkeys(("MILLISECOND", "MILLISECONDS"), ("0.001", "DECIMAL(18, 3)")),
}


def rename_functions(tree: Any) -> None:
    """Functions that DuckDB has by another name."""
    for node in tree.find_all(exp.JSONFormat):
        _name_fields(node)
    for node in tree.find_all(exp.Anonymous):
        written = str(node.this).lower()
        name = _NAMES.get(written)
        if name == "to_json" or written == "to_json":
            _name_fields(node)
        if name is not None:
            node.set("this", name)
        elif written in _CASTS and len(node.expressions) == 1:
            node.replace(exp.cast(node.expressions[0].copy(), _CASTS[written], dialect="duckdb"))


def _name_fields(call: Any) -> None:
    """The fields of `ROW(…)` are called f1, f2, … in a document."""
    row = call.this if isinstance(call, exp.JSONFormat) else call.expressions[0] if len(call.expressions) == 1 else None
    if not isinstance(row, exp.Anonymous) or str(row.this).lower() != "row" or not row.expressions:
        return
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"f{place}"), expression=each.copy())
        for place, each in enumerate(row.expressions, 1)
    ]
    row.replace(exp.Struct(expressions=fields))


def keep_fractions(tree: Any) -> None:
    """Let EXTRACT of seconds keep their fraction, as DuckDB does for microseconds only."""
    for node in list(tree.find_all(exp.Extract)):
        unit = _FRACTIONS.get(node.name.upper())
        if unit is not None:
            micros = exp.Extract(this=exp.var("MICROSECOND"), expression=node.expression.copy())
            scaled = exp.Paren(this=exp.Mul(this=micros, expression=exp.Literal.number(unit[0])))
            node.replace(exp.cast(scaled, unit[1], dialect="duckdb"))


def rewrite_operators(tree: Any, *, is_spark: bool) -> None:
    """Let `/` be an error for a zero, and divide whole numbers as the dialect does."""
    for node in reversed(list(tree.find_all(exp.Div))):
        node.set("typed", False)
        node.set("safe", False)
        divisor = node.expression
        if not is_spark:
            node.replace(chosen_by_types("__div", node.this, divisor))
        elif not (isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.name) != 0):
            divisor.replace(exp.Anonymous(this="__nonzero", expressions=[divisor.copy()]))
