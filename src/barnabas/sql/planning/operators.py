"""Operators that DuckDB has with another meaning: division."""

from __future__ import annotations

from typing import Any

from sqlglot import exp


def rewrite_operators(tree: Any, *, is_spark: bool) -> None:
    """Let `/` be an error for a zero, and divide whole numbers as the dialect does."""
    for node in list(tree.find_all(exp.Div)):
        node.set("typed", False)
        node.set("safe", False)
        divisor = node.expression
        if not is_spark:
            node.replace(exp.Anonymous(this="__div", expressions=[node.this.copy(), divisor.copy()]))
        elif not (isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.name) != 0):
            divisor.replace(exp.Anonymous(this="__nonzero", expressions=[divisor.copy()]))
