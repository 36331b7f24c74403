"""Results that depend on the order of rows get an order: a node computes the rows of a key again at each change, and must find the same.

Aggregates that take the first of equal rows read their rows in the order of their arguments. Windows that number rows are ordered by all
columns where their own order leaves rows equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.continuous.functions import name_of

_ANY_ORDER = frozenset((
    "count", "count_star", "count_if", "countif", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor", "median", "quantile",
    "quantile_cont", "quantile_disc", "percentile_cont", "percentile_disc", "approx_count_distinct", "histogram", "mad",
))  # fmt: skip
_FILTER = " FILTER("
_NUMBERING = frozenset(("row_number", "lag", "lead", "ntile", "first_value", "nth_value", "first"))


def settled_aggregate(node: Any, text: Callable[[Any], str]) -> str:
    """The text of an aggregate that reads its rows in an order.

    Args:
        text: makes the text of an expression.
    """
    if isinstance(node, exp.Filter):
        return f"{settled_aggregate(node.this, text)} FILTER (WHERE {text(node.expression.this)})"
    found = text(node)
    if not isinstance(node, exp.Func) or name_of(node) in _ANY_ORDER or not found.endswith(")"):
        return found
    order = next(iter(node.find_all(exp.Order)), None)
    keys = [text(each) for each in _arguments(node)]
    if not keys:
        return found
    call, is_filtered, condition = found.partition(_FILTER)  # the text of some aggregates leaves nulls out itself
    return f"{call[:-1]}{', ' if order is not None else ' ORDER BY '}{', '.join(keys)}){is_filtered}{condition}"


def _arguments(node: Any) -> list[Any]:
    """The arguments that rows differ in."""
    found: list[Any] = []
    for each in node.iter_expressions():
        inner = each
        while isinstance(inner, (exp.Order, exp.Distinct)):
            found += inner.expressions if isinstance(inner, exp.Distinct) else []
            inner = inner.this
        if inner is not None:
            found.append(inner)
    is_distinct = node.find(exp.Distinct) is not None
    return [each for each in found if isinstance(each, exp.Expression) and each.find(exp.Column) is not None][
        : 1 if is_distinct else None
    ]


def settled_window(node: Any, columns: Sequence[Any]) -> Any:
    """A window whose rows are in one order only.

    Args:
        columns: of the rows.
    """
    made = node.copy()
    call = made.this
    while isinstance(call, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        call = call.this
    spec = made.args.get("spec")
    by_rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
    if name_of(call) in _NUMBERING or by_rows:
        order = made.args.get("order")
        own = list(order.expressions) if order is not None else []
        made.set("order", exp.Order(expressions=[*own, *(exp.Ordered(this=each.copy()) for each in columns)]))
    return made
