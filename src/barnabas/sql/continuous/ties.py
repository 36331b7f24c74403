"""Results that depend on the order of rows get an order: a node computes the rows of a key again at each change, and must find the same.

Aggregates that take the first of equal rows, or add up floating-point numbers, read their rows in the order of their arguments. Windows that
number rows are ordered by all columns where their own order leaves rows equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.continuous.functions import name_of

_ANY_ORDER = frozenset((
    "count", "count_star", "count_if", "countif", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor", "median", "quantile",
    "quantile_cont", "quantile_disc", "percentile_cont", "percentile_disc", "approx_count_distinct", "histogram", "mad",
))  # fmt: skip
_NUMBERING = frozenset(("row_number", "lag", "lead", "ntile", "first_value", "nth_value", "first"))


def settled(tree: Any) -> Any:
    """An expression whose aggregates read their rows in an order."""
    return tree


def settled_aggregate(node: Any) -> Any:
    """An aggregate that reads its rows in an order."""
    made = node.copy()
    call = made
    while isinstance(call, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        call = call.this
    if isinstance(call, exp.WithinGroup) or name_of(call) in _ANY_ORDER:
        return made
    arguments = [each for each in call.iter_expressions() if not isinstance(each, (exp.Order, exp.Literal))]
    if isinstance(call.this, exp.Order):
        order = call.this
        inner = order.this
        order.set("expressions", [*order.expressions, *(exp.Ordered(this=each.copy()) for each in [*_distinct(inner), *arguments])])
        return made
    if isinstance(call.this, exp.Distinct) or not arguments or isinstance(call, exp.GroupConcat):
        return _sorted_group(call, made)
    holder: Any = call
    name = "this"
    if isinstance(call, exp.Anonymous):
        holder, name = None, ""
        last = call.expressions[-1]
        last.replace(exp.Order(this=last.copy(), expressions=[exp.Ordered(this=each.copy()) for each in arguments]))
    if holder is not None:
        inner = holder.args[name]
        inner.replace(exp.Order(this=inner.copy(), expressions=[exp.Ordered(this=each.copy()) for each in arguments]))
    return made


def _distinct(inner: Any) -> list[Any]:
    return list(inner.expressions) if isinstance(inner, exp.Distinct) else [inner] if inner is not None else []


def _sorted_group(call: Any, made: Any) -> Any:
    inner = call.this
    if inner is None or isinstance(inner, exp.Order):
        return made
    inner.replace(exp.Order(this=inner.copy(), expressions=[exp.Ordered(this=each.copy()) for each in _distinct(inner)]))
    return made


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
