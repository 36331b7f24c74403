"""FETCH FIRST n ROWS WITH TIES: also the rows that are equal, in the order, to the last one. DuckDB has no word for it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.sql.interface import SqlError
from barnabas.sql.planning.literals import whole_number
from barnabas.sql.states import NOT_SUPPORTED, SYNTAX_ERROR


def read_ties(tree: Any) -> None:
    """Replace the clause by a condition on the rank of a row. Raises SqlError: there is no order, or DISTINCT."""
    for fetch in list(tree.find_all(exp.Fetch)):
        options = fetch.args.get("limit_options")
        if options is not None and options.args.get("with_ties"):
            _replace(fetch.parent, fetch)


def _replace(select: Any, fetch: Any) -> None:
    order = select.args.get("order")
    if order is None:
        raise SqlError(SYNTAX_ERROR, "WITH TIES cannot be specified without ORDER BY clause")
    if not isinstance(select, exp.Select) or select.args.get("distinct") is not None:
        raise SqlError(
            NOT_SUPPORTED, "WITH TIES behind DISTINCT or a set operation is not supported", hint="select from it in FROM"
        )
    keys = exp.Order(expressions=[_key(each, select) for each in order.expressions])
    offset = select.args.get("offset")
    last: Any = fetch.args.get("count") or exp.convert(1)
    if offset is not None:
        last = exp.Add(this=exp.Paren(this=last.copy()), expression=exp.Paren(this=offset.expression.copy()))
    wanted: Any = exp.LTE(this=_over("rank", keys), expression=last.copy())
    if offset is not None:
        wanted = exp.and_(wanted, exp.GT(this=_over("row_number", keys), expression=offset.expression.copy()))
    known = select.args.get("qualify")
    select.set("qualify", exp.Qualify(this=wanted if known is None else exp.and_(known.this, wanted)))
    select.set("limit", None)
    select.set("offset", None)


def _over(function: str, keys: exp.Order) -> exp.Window:
    return exp.Window(this=exp.Anonymous(this=function), order=keys.copy(), over="OVER")


def _key(ordered: Any, select: Any) -> Any:
    """A sort key with the expression of the output that it names."""
    made, key = ordered.copy(), ordered.this
    items = select.expressions
    place = whole_number(key)
    if place is not None and 0 < place <= len(items):
        made.set("this", items[place - 1].unalias().copy())
    elif isinstance(key, exp.Column) and not key.table:
        found = next((each for each in items if isinstance(each, exp.Alias) and each.alias.lower() == key.name.lower()), None)
        made.set("this", key.copy() if found is None else found.this.copy())
    return made
