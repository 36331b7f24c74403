"""Sessions: rows of a key whose times are at most a gap apart.

`session(t, at, gap)` with PARTITION BY is the rows of t with the columns `window_start` and `window_end`, the last time plus the gap.
`session_window(at, gap)` in GROUP BY, of Spark, is a struct with `start` and `end`; the other groups tell its sessions apart.

The query has four levels: the rows with their time and keys; marks on the first and the last row of each session; the bounds of the nearest
marks; the columns. The planner of views knows it by the mark SESSION and has a node for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.interface import SqlError
from barnabas.sql.planning.literals import whole_number
from barnabas.sql.planning.names import position_in
from barnabas.sql.states import not_supported
from barnabas.sql.table_words import PARTITION

SESSION = "session"  # the mark of such a query
START, END = "window_start", "window_end"
TIME, KEY = "_session_time", "_session_key_"
_FIRST, _LAST, _BEGIN, _UNTIL = "_session_first", "_session_last", "_session_begin", "_session_end"
_ROWS, _CALL, _NAME = "_rows", "session_window", "session_window"

ELAPSED = "elapsed"  # in the meta of a sum of a time and an interval


def elapsed(node: Any) -> Any:
    """A sum for which a day has 24 hours, whatever the time zone of the session."""
    node.meta[ELAPSED] = True
    return node


def sessions(source: Any, at: Any, gap: Any, keys: Sequence[Any]) -> exp.Select:
    """The rows of a source with the bounds of their sessions.

    Args:
        source: has the alias `_rows`.
        gap: an interval.
    """
    if gap.find(exp.Column) is not None:
        raise not_supported("the gap of a session must be a constant", position_in(gap))
    names = [f"{KEY}{place}" for place in range(len(keys))]
    star = exp.Column(this=exp.Star(), table=exp.to_identifier(_ROWS))
    shown = [exp.alias_(each.copy(), name) for each, name in zip(keys, names, strict=True)]
    rows = exp.select(star, exp.alias_(at.copy(), TIME), *shown, copy=False).from_(source, copy=False)
    up, down = _Over(names), _Over(names, is_down=True)
    goes_on = exp.LTE(this=_time(), expression=elapsed(exp.Add(this=up.of("lag", _time()), expression=gap.copy())))
    comes = exp.LTE(this=up.of("lead", _time()), expression=elapsed(exp.Add(this=_time(), expression=gap.copy())))
    marks = [exp.alias_(_unless(each), name) for each, name in ((goes_on, _FIRST), (comes, _LAST))]
    marked = exp.select("*", *marks, copy=False).from_(_nested(rows), copy=False)
    bounds = [
        exp.alias_(up.of("max", exp.column(_FIRST)), _BEGIN),
        exp.alias_(elapsed(exp.Add(this=down.of("min", exp.column(_LAST)), expression=gap.copy())), _UNTIL),
    ]
    bounded = exp.select("*", *bounds, copy=False).from_(_nested(marked), copy=False)
    hidden = [exp.column(exp.to_identifier(name)) for name in (TIME, *names, _FIRST, _LAST, _BEGIN, _UNTIL)]
    columns = [exp.alias_(_where_timed(exp.column(name)), alias) for name, alias in ((_BEGIN, START), (_UNTIL, END))]
    made = exp.select(exp.Star(except_=hidden), *columns, copy=False).from_(_nested(bounded), copy=False)
    made.meta[SESSION] = True
    return made


def parts_of_session(query: Any) -> tuple[Any, Any, int] | None:
    """The rows of a query of sessions, their gap, and how many keys they have; None for another query."""
    if not isinstance(query, exp.Select) or not query.meta.get(SESSION):
        return None
    bounded = query.args["from_"].this.this
    rows = bounded.args["from_"].this.this.args["from_"].this.this
    gap = bounded.expressions[2].this.expression
    return rows, gap, sum(each.alias.startswith(KEY) for each in rows.expressions)


class _Over:
    """Window functions over the rows of a key in the order of their times."""

    def __init__(self, keys: Sequence[str], *, is_down: bool = False) -> None:
        self._keys, self._is_down = keys, is_down

    def of(self, name: str, argument: Any) -> exp.Window:
        order = exp.Order(expressions=[exp.Ordered(this=_time(), desc=self._is_down, nulls_first=False)])
        return exp.Window(
            this=exp.func(name, argument), partition_by=[exp.column(each) for each in self._keys], order=order, over="OVER"
        )


def _time() -> exp.Column:
    return exp.column(TIME)


def _unless(condition: Any) -> exp.Case:
    """The time of a row for which a condition is not true."""
    return exp.Case(ifs=[exp.If(this=condition, true=exp.Null())], default=_time())


def _where_timed(value: Any) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=exp.Is(this=_time(), expression=exp.Null()), true=exp.Null())], default=value)


def _nested(query: Any) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))


def read_session_groups(select: Any) -> None:
    """`GROUP BY session_window(…)`. Raises SqlError for a form that is not there."""
    group = select.args.get("group")
    calls = [each for each in meant_groups(select) if _is_call(each)]
    if not calls:
        return
    call = calls[0].copy()
    if group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None or group.args.get("all") or select.args.get("laterals"):
        raise not_supported(f"{_CALL} with grouping sets or lateral tables is not supported", position_in(call))
    _Grouping(select, call).read()


def meant_groups(select: Any) -> list[Any]:
    """The expressions of GROUP BY. One may be the number or the name of a column of the result."""
    group = select.args.get("group")
    aliases = {each.alias.lower(): each.unalias() for each in select.expressions if each.alias}
    found = []
    for key in group.expressions if group is not None else []:
        meaning, place = key, whole_number(key)
        if place is not None and 0 < place <= len(select.expressions):
            meaning = select.expressions[place - 1].unalias()
        elif isinstance(key, exp.Column) and not key.table:
            meaning = aliases.get(key.name.lower(), key)
        found.append(meaning.copy())
    return found


def _is_call(tree: Any) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() == _CALL and len(tree.expressions) == 2


class _Grouping:
    """A SELECT by sessions: its FROM and WHERE become a query of the columns that it names, with the bounds of the sessions."""

    def __init__(self, select: Any, call: Any) -> None:
        self._select, self._call = select, call
        self._aliases = {each.alias.lower(): each.unalias() for each in select.expressions if each.alias}
        self._columns: dict[str, tuple[str, Any]] = {}

    def read(self) -> None:
        select, group = self._select, self._select.args["group"]
        keys = [each for each in meant_groups(select) if each != self._call]
        at, gap = self._call.expressions
        select.set("expressions", [self._item(each) for each in select.expressions])
        group.set("expressions", [*(self._inner(each) for each in keys), exp.column(START), exp.column(END)])
        for name in ("having", "order", "qualify"):
            if select.args.get(name) is not None:
                select.set(name, self._inner(select.args[name], keeps_aliases=True))
        keys, at = [self._inner(each) for each in keys], self._inner(at)
        inner = exp.select(*(exp.alias_(column, name) for name, column in self._columns.values()), copy=False)
        for name in ("from_", "joins", "where"):
            inner.set(name, select.args.pop(name, None))
        made = sessions(_nested(inner), at, _interval(gap), keys)
        select.set("from_", exp.From(this=_nested(made)))

    def _item(self, item: Any) -> Any:
        made = self._inner(item)
        if isinstance(item, exp.Column):
            return exp.alias_(made, item.name or _NAME, quoted=True)
        return exp.alias_(made, _NAME) if item == self._call else made

    def _inner(self, tree: Any, *, keeps_aliases: bool = False) -> Any:
        """An expression over the columns of the query of sessions."""
        holder = exp.Tuple(expressions=[tree.copy()])
        if holder.find(exp.Query) is not None:
            raise not_supported(f"a subquery beside {_CALL} is not supported", position_in(self._call), "join it in FROM")
        for call in [each for each in holder.find_all(exp.Anonymous) if each == self._call]:
            call.replace(_bounds())
        for column in list(holder.find_all(exp.Column)):
            if not isinstance(column.this, exp.Star) and not (column.name in (START, END) and not column.table):
                made = self._column(column, keeps_aliases=keeps_aliases)
                if made is not None:
                    column.replace(made)
        return holder.expressions[0]

    def _column(self, column: Any, *, keeps_aliases: bool) -> Any | None:
        if column.table.lower() == _NAME and column.name.lower() in ("start", "end"):
            return exp.column(START if column.name.lower() == "start" else END)
        if not column.table and column.name.lower() == _NAME:
            return _bounds()
        if keeps_aliases and not column.table and column.name.lower() in self._aliases:
            return None
        known = self._columns.setdefault(column.sql(), (f"_column_{len(self._columns)}", column.copy()))
        return exp.column(known[0])


def _bounds() -> exp.Anonymous:
    return exp.Anonymous(this="__session", expressions=[exp.column(START), exp.column(END)])


def _interval(gap: Any) -> Any:
    return exp.cast(gap.copy(), "interval") if isinstance(gap, exp.Literal) and gap.is_string else gap.copy()


def taken_keys(arguments: list[Any]) -> tuple[list[Any], list[Any]]:
    """The arguments of a window without those of PARTITION BY, and these."""
    keys = [each for each in arguments if isinstance(each, exp.Anonymous) and str(each.this).lower() == PARTITION]
    if len(keys) > 1:
        raise SqlError("42601", "PARTITION BY stands twice", position=position_in(keys[1]))
    return [each for each in arguments if each not in keys], [one for each in keys for one in each.expressions]
