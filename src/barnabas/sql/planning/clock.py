"""`now()` in the conditions of a view: the latest time in the topic of the clock (`engine/clock.py`), as a subquery."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.engine.clock import CLOCK, COLUMN
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition

DEFINITION = TableDefinition(CLOCK, CLOCK, (ColumnDefinition(COLUMN, "timestamptz"),), owns_topic=True)
_CONDITIONS = (exp.Where, exp.Having, exp.Join, exp.Qualify)
_CALLS = frozenset(("now", "proctime", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "mz_now"))
_KINDS: dict[type[exp.Expression], str] = {
    exp.CurrentTimestamp: "timestamptz",
    exp.CurrentDate: "date",
    exp.Localtimestamp: "timestamp",
}


def read_clock(tree: Any) -> None:
    """Replace the calls of a clock in WHERE, HAVING and ON. Others stay, and are refused."""
    for node in list(tree.find_all(*_KINDS, exp.Anonymous)):
        if isinstance(node, exp.Anonymous) and (str(node.this).lower() not in _CALLS or node.expressions):
            continue
        if _is_in_condition(node):
            made = _latest(node)
            made.meta.update(node.meta)
            node.replace(made)


def _is_in_condition(node: Any) -> bool:
    """Whether a call stands in a condition of its own SELECT."""
    below, above = node, node.parent
    while above is not None and not isinstance(above, (*_CONDITIONS, exp.Select)):
        below, above = above, above.parent
    return isinstance(above, _CONDITIONS) and (not isinstance(above, exp.Join) or below.arg_key == "on")


def _latest(node: Any) -> Any:
    time = exp.select(exp.Max(this=exp.column(COLUMN))).from_(exp.to_table(CLOCK))
    made: Any = exp.Subquery(this=time)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "mz_now":
        return exp.Anonymous(this="epoch_ms", expressions=[made])
    kind = _KINDS.get(type(node), "timestamptz")
    return made if kind == "timestamptz" else exp.cast(made, kind)
