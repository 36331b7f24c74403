"""Windows of time, as RisingWave and Flink (`tumble`, `hop`, `session` in FROM) and Spark (`window(…)` in GROUP BY) spell them.

`tumble(t, at, size)` and `hop(t, at, slide, size)` are the rows of t with the columns `window_start` and `window_end`.
`window(at, size)` and `window(at, size, slide)` are structs with `start` and `end`; the column of a group is `window`.
Windows begin at the epoch; a last argument of `tumble` and `hop` moves them.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.sql.dialect import STREAM
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.session_windows import END, START, elapsed, meant_groups, read_session_groups, sessions, taken_keys

_TABLES = {
    "tumble": ("data", "timecol", "size", "offset"),
    "hop": ("data", "timecol", "slide", "size", "offset"),
    "session": ("data", "timecol", "gap"),
}
_OPTIONAL = "offset"
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
        read_session_groups(select)
    for call in list(tree.find_all(exp.Anonymous)):
        if str(call.this).lower() == _NAME and len(call.expressions) == 2:
            call.replace(_window(call))


def tables_in_windows(tree: Any) -> list[Any]:
    """The names of tables that are arguments of windows in FROM: columns as they are read, or calls of `stream`."""
    found = []
    for table in tree.find_all(exp.Table):
        call = table.this
        if isinstance(call, exp.Anonymous) and str(call.this).lower() in _TABLES and call.expressions:
            named = [
                each.expression for each in call.expressions if isinstance(each, exp.Kwarg) and each.this.name.lower() == "data"
            ]
            found.append(named[0] if named else call.expressions[0])
    return found


def is_stream(tree: Any) -> bool:
    """Whether an argument of a window is read as a stream."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() == STREAM and len(tree.expressions) == 1


def _arguments(table: Any, name: str, given: list[Any]) -> dict[str, Any]:
    """The arguments by their names. Raises SqlError."""
    names = _TABLES[name]
    found = dict(zip(names, (each for each in given if not isinstance(each, exp.Kwarg)), strict=False))
    for each in given:
        if isinstance(each, exp.Kwarg):
            found[each.this.name.lower()] = each.expression
    needed = [each for each in names if each != _OPTIONAL]
    if len(found) != len(given) or not set(needed) <= set(found) <= set(names):
        shown = ", ".join({"data": "table", "timecol": "column"}.get(each, each) for each in needed)
        raise SqlError("42883", f"{name} has {len(given)} arguments", position=position_in(table), hint=f"{name}({shown})")
    return found


def _place(table: Any, name: str, arguments: list[Any]) -> None:
    arguments, keys = taken_keys(arguments)
    found = _arguments(table, name, arguments)
    if keys and name != "session":
        raise SqlError("42601", f"{name} has no PARTITION BY", position=position_in(table), hint="group by the columns")
    rows, time = found["data"], _time(found["timecol"])
    source: Any = rows if isinstance(rows, exp.Subquery) else _named(rows)
    source.set("alias", exp.TableAlias(this=exp.to_identifier(_SOURCE)))
    star = exp.Column(this=exp.Star(), table=exp.to_identifier(_SOURCE))
    lengths = {each: _length(value) for each, value in found.items() if each not in ("data", "timecol")}
    offset = lengths.get(_OPTIONAL)
    moved = time if offset is None else exp.Paren(this=elapsed(exp.Sub(this=time, expression=offset)))
    if name == "session":
        query = sessions(source, time, lengths["gap"], [_of_source(each) for each in keys])
    elif name == "tumble":
        start = exp.Anonymous(this="__bucket", expressions=[lengths["size"], moved.copy()])
        end = elapsed(exp.Add(this=start.copy(), expression=lengths["size"].copy()))
        shown = [exp.alias_(_back(value, offset), alias) for value, alias in ((start, START), (end, END))]
        query = exp.select(star, *shown, copy=False).from_(source, copy=False)
    else:
        each = exp.column("w", table=_EACH)
        shown = [exp.alias_(_back(_field(each, field), offset), alias) for field, alias in (("start", START), ("end", END))]
        query = exp.select(star, *shown, copy=False).from_(source, copy=False)
        query.append("joins", _hops(lengths["size"], lengths["slide"], moved, "w"))
    made: Any = exp.Subquery(this=query, alias=table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name)))
    for clause in ("joins", "laterals", "pivots", "sample"):
        if table.args.get(clause):
            made.set(clause, table.args[clause])
    table.replace(made)


def _time(tree: Any) -> Any:
    """The time of a row: a column of the table, also as DESCRIPTOR(column)."""
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "descriptor" and len(tree.expressions) == 1:
        tree = tree.expressions[0]
    return exp.column(exp.to_identifier(tree.name, quoted=True), table=_SOURCE) if isinstance(tree, exp.Column) else tree


def _of_source(tree: Any) -> Any:
    """A key of PARTITION BY: its columns are those of the table."""
    made = exp.Tuple(expressions=[tree.copy()])
    for column in list(made.find_all(exp.Column)):
        column.set("table", exp.to_identifier(_SOURCE))
    return made.expressions[0]


def _back(value: Any, offset: Any) -> Any:
    return value if offset is None else elapsed(exp.Add(this=value, expression=offset.copy()))


def _named(rows: Any) -> Any:
    if is_stream(rows):
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
    calls = [each for each in meant_groups(select) if _is_call(each)]
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
