"""Operators that DuckDB has with another meaning: division."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp


def _whole_division(dividend: Any, divisor: Any) -> Any:
    """The macro `__div` chooses by the types. DuckDB does not know those of aggregates there, but those of a lambda's argument."""
    operands = [dividend.copy(), divisor.copy()]
    if not any(next(iter(each.find_all(exp.AggFunc, exp.Window, exp.Anonymous)), None) for each in operands):
        return exp.Anonymous(this="__div", expressions=operands)
    left, right = (each.sql("duckdb") for each in operands)
    return sqlglot.parse_one(
        f"list_transform([struct_pack(a := {left}, b := {right})], lambda s: __div(s.a, s.b))[1]", dialect="duckdb"
    )


_NAMES = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
    "row_to_json": "to_json",
    "to_jsonb": "to_json",
    "json_agg": "json_group_array",
    "jsonb_agg": "json_group_array",
    "json_object_agg": "json_group_object",
    "jsonb_object_agg": "json_group_object",
    "clock_timestamp": "now",
    "statement_timestamp": "now",
    "transaction_timestamp": "now",
    "char_length": "length",
    "character_length": "length",
    "cardinality": "len",
}


def rename_functions(tree: Any) -> None:
    """Functions that DuckDB has by another name."""
    for node in tree.find_all(exp.Anonymous):
        name = _NAMES.get(str(node.this).lower())
        if name is not None:
            node.set("this", name)


def rewrite_operators(tree: Any, *, is_spark: bool) -> None:
    """Let `/` be an error for a zero, and divide whole numbers as the dialect does."""
    for node in reversed(list(tree.find_all(exp.Div))):
        node.set("typed", False)
        node.set("safe", False)
        divisor = node.expression
        if not is_spark:
            node.replace(_whole_division(node.this, divisor))
        elif not (isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.name) != 0):
            divisor.replace(exp.Anonymous(this="__nonzero", expressions=[divisor.copy()]))
