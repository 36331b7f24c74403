"""Windows of time, as RisingWave and Flink (`tumble`, `hop` in FROM) and Spark (`window(…)` in GROUP BY) spell them.

`tumble(t, at, size)` and `hop(t, at, slide, size)` are the rows of t with the columns `window_start` and `window_end`.
`window(at, size)` and `window(at, size, slide)` are structs with `start` and `end`; the column of a group is `window`.
Windows begin at the epoch.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.sql.dialect import STREAM
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in

START, END = "window_start", "window_end"
_TABLES = {"tumble": 3, "hop": 4}
_NAME = "window"
_SOURCE, _EACH = "_rows", "_window"


def read_time_windows(tree: Any) -> None:
    """Rewrite a tree. Raises SqlError for other arguments."""
    for table in list(tree.find_all(exp.Table)):
        call = table.this
        if isinstance(call, exp.Anonymous) and str(call.this).lower() in _TABLES:
            _place(table, str(call.this).lower(), call.expressions)
    for select in list(tree.find_all(exp.Select)):
        _read_groups(select)
    for call in list(tree.find_all(exp.Anonymous)):
        if str(call.this).lower() == _NAME and len(call.expressions) == 2:
            call.replace(_window(call))


def _place(table: Any, name: str, arguments: list[Any]) -> None:
    if len(arguments) != _TABLES[name]:
        wanted = "tumble(table, column, size)" if name == "tumble" else "hop(table, column, slide, size)"
        raise SqlError("42883", f"{name} has {len(arguments)} arguments", position=position_in(table), hint=wanted)
    rows, at, *lengths = arguments
    source: Any = rows if isinstance(rows, exp.Subquery) else _named(rows)
    source.set("alias", exp.TableAlias(this=exp.to_identifier(_SOURCE)))
    time = exp.column(exp.to_identifier(at.name, quoted=True), table=_SOURCE) if isinstance(at, exp.Column) else at
    star = exp.Column(this=exp.Star(), table=exp.to_identifier(_SOURCE))
    if name == "tumble":
        start = exp.Anonymous(this="__bucket", expressions=[_length(lengths[0]), time.copy()])
        end = exp.Add(this=start.copy(), expression=_length(lengths[0]))
        query = exp.select(star, exp.alias_(start, START), exp.alias_(end, END), copy=False).from_(source, copy=False)
    else:
        each = exp.column("w", table=_EACH)
        shown = [exp.alias_(_field(each, field), alias) for field, alias in (("start", START), ("end", END))]
        query = exp.select(star, *shown, copy=False).from_(source, copy=False)
        query.append("joins", _hops(_length(lengths[1]), _length(lengths[0]), time, "w"))
    made: Any = exp.Subquery(this=query, alias=table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name)))
    for clause in ("joins", "laterals", "pivots", "sample"):
        if table.args.get(clause):
            made.set(clause, table.args[clause])
    table.replace(made)


def _named(rows: Any) -> Any:
    if isinstance(rows, exp.Anonymous) and str(rows.this).lower() == STREAM and len(rows.expressions) == 1:
        found = _named(rows.expressions[0])
        found.meta[STREAM] = True
        return found
    if not isinstance(rows, exp.Column):
        raise SqlError("42883", "a window of time is over a table", position=position_in(rows))
    parts = [each.copy() for each in rows.parts]
    return exp.Table(this=parts[-1], db=parts[-2] if len(parts) > 1 else None, catalog=parts[-3] if len(parts) > 2 else None)


def _length(tree: Any) -> Any:
    return exp.cast(tree.copy(), "interval") if isinstance(tree, exp.Literal) and tree.is_string else tree.copy()


def _field(window: Any, name: str) -> Any:
    return exp.Anonymous(this="struct_extract", expressions=[window.copy(), exp.Literal.string(name)])


def _hops(size: Any, slide: Any, at: Any, name: str) -> Any:
    call = exp.Anonymous(this="__hops", expressions=[size, slide, at.copy()])
    alias = exp.TableAlias(this=exp.to_identifier(_EACH), columns=[exp.to_identifier(name)])
    return exp.Join(this=exp.Unnest(expressions=[call], alias=alias), kind="CROSS")


def _window(call: Any) -> Any:
    at, size = call.expressions
    return exp.Anonymous(this="__window", expressions=[_length(size), at.copy()])


def _read_groups(select: Any) -> None:
    """`GROUP BY window(…)`: the same call elsewhere, and `window.start`, are the group."""
    group = select.args.get("group")
    calls = [each for each in (group.expressions if group is not None else []) if _is_call(each)]
    if not calls:
        return
    call = calls[0].copy()
    if len(call.expressions) == 2:
        value = _window(call)
    else:
        at, size, slide = call.expressions
        select.append("joins", _hops(_length(size), _length(slide), at, _NAME))
        value = exp.column(_NAME, table=_EACH)
    order = select.args.get("order")
    for clause in [*select.expressions, group, select.args.get("having"), order]:
        if clause is None:
            continue
        for node in list(clause.find_all(exp.Column, exp.Anonymous)):
            made = _in_group(node, call, value)
            if made is not None:
                is_item = node.parent is select
                node.replace(exp.alias_(made, node.name or _NAME) if is_item else made)


def _in_group(node: Any, call: Any, value: Any) -> Any | None:
    if node == call:
        return value.copy()
    if isinstance(node, exp.Column) and node.table.lower() == _NAME:
        return _field(value, node.name.lower())
    if isinstance(node, exp.Column) and not node.table and node.name.lower() == _NAME:
        return value.copy()
    return None


def _is_call(tree: Any) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() == _NAME and len(tree.expressions) in (2, 3)
