"""Clauses of Spark SQL that DuckDB writes in another way, or lacks: rows from a value (`explode`, `posexplode`, `inline`, `stack`,
`json_tuple`) in SELECT, FROM and LATERAL VIEW; `GROUP BY … WITH ROLLUP`; `SORT BY` and `CLUSTER BY`, which order all rows of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.interface import SqlError
from barnabas.sql.planning.literals import whole_number
from barnabas.sql.planning.spark_calls import read_spark_calls
from barnabas.sql.states import INVALID_PARAMETER, not_supported

_MAPS = (exp.Map, exp.VarMap, exp.ToMap, exp.StarMap)
_MOST_ROWS = 1000  # of `stack`, whose rows are written in the statement


def read_spark_words(tree: Any, *, is_spark: bool) -> None:
    """Rewrite a tree. Raises SqlError.

    Args:
        is_spark: whether functions of both dialects mean what they mean in Spark.
    """
    read_spark_calls(tree, is_spark=is_spark)
    nodes = [each for each in tree.walk() if isinstance(each, (exp.Fetch, exp.Group, exp.Select, exp.Table, exp.Lateral))]
    for node in nodes:
        match node:
            case exp.Fetch():
                _check_fetch(node)
            case exp.Group():
                _read_group(node)
            case exp.Select():
                _read_select(node)
    for node in nodes:  # behind the selects, which take their lateral views
        match node:
            case exp.Table():
                _read_source(node)
            case exp.Lateral() if not node.args.get("view"):
                _read_lateral(node)


def _check_fetch(fetch: Any) -> None:
    options = fetch.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        raise not_supported("FETCH FIRST … PERCENT is not supported", hint="LIMIT 10% gives a share of the rows")


def _read_select(select: Any) -> None:
    _read_order(select)
    _read_all(select)
    _read_laterals(select)
    for item in list(select.expressions):
        _read_item(item)


def _read_group(group: Any) -> None:
    """`GROUP BY a, b WITH ROLLUP` and `WITH CUBE`: the words without columns are for all of them."""
    for name in ("rollup", "cube"):
        for each in group.args.get(name) or ():
            if not each.expressions and group.expressions:
                each.set("expressions", [column.copy() for column in group.expressions])
                group.set("expressions", [])


def _read_order(select: Any) -> None:
    for name in ("sort", "cluster"):
        clause = select.args.pop(name, None)
        if clause is not None and select.args.get("order") is None:
            terms = [each if isinstance(each, exp.Ordered) else exp.Ordered(this=each) for each in clause.expressions]
            select.set("order", exp.Order(expressions=terms))


def _read_all(select: Any) -> None:
    """`ORDER BY ALL`: by all columns, from left to right."""
    order = select.args.get("order")
    term = order.expressions[0].this if order is not None and len(order.expressions) == 1 else None
    if isinstance(term, exp.Column) and not term.table and term.name.upper() == "ALL" and not term.this.args.get("quoted"):
        term.replace(exp.var("ALL"))


def _read_laterals(select: Any) -> None:
    """LATERAL VIEW as a join, if one of them is more than `explode` of a list."""
    laterals = select.args.get("laterals") or []
    if not any(each.args.get("view") and _is_special(each) for each in laterals):
        return
    joins = list(select.args.get("joins") or ())
    for each in laterals:
        alias = each.args.get("alias")
        names = list(alias.columns) if alias is not None else []
        items = _rows_of(each.this, len(names))
        if items is None:
            raise not_supported(
                f"LATERAL VIEW {each.this.sql()} is not supported", hint="explode, posexplode, inline, stack, json_tuple"
            )
        named = _with_names(items, [name.name for name in names])
        table = exp.TableAlias(this=alias.this.copy() if alias is not None and alias.this else exp.to_identifier("__lateral"))
        if len(items) == 1 and _is_expanded(items[0]):
            table.set("columns", [name.copy() for name in names])
        made = exp.Lateral(this=exp.Subquery(this=exp.select(*named, copy=False)), alias=table)
        is_outer = bool(each.args.get("outer")) or _is_outer(each.this)
        joins.append(exp.Join(this=made, side="LEFT", on=exp.true()) if is_outer else exp.Join(this=made, kind="CROSS"))
    select.set("laterals", None)
    select.set("joins", joins)


def _is_special(lateral: Any) -> bool:
    alias = lateral.args.get("alias")
    columns = len(alias.columns) if alias is not None else 0
    plain = columns == (2 if isinstance(lateral.this, exp.Posexplode) else 1) and type(lateral.this) in (
        exp.Explode,
        exp.Posexplode,
    )
    return bool(lateral.args.get("outer")) or not plain


def _is_outer(value: Any) -> bool:
    return isinstance(value, (exp.ExplodeOuter, exp.PosexplodeOuter)) or _name_of(value).endswith("_outer")


def _name_of(value: Any) -> str:
    return str(value.this).lower() if isinstance(value, exp.Anonymous) else ""


def _rows_of(value: Any, columns: int) -> list[Any] | None:
    """The outputs that make rows of a value, with the names that Spark gives them; None if it is no such function. Raises SqlError.

    Args:
        columns: how many names the statement gives; two are those of the keys and the values of a map.
    """
    name = _name_of(value)
    if isinstance(value, exp.Posexplode) or name == "posexplode_outer":
        array = value.expressions[0] if name else value.this
        positions = _call("range", exp.convert(0), _call("len", array))
        return [_named(_call("unnest", positions), "pos"), _named(_call("unnest", array), "col")]
    if isinstance(value, exp.Explode) or name == "explode_outer":
        array = value.expressions[0] if name else value.this
        if columns == 2 or isinstance(array, _MAPS):
            parts = (("key", "map_keys"), ("value", "map_values"))
            return [_named(_call("unnest", _call(function, array)), part) for part, function in parts]
        return [_named(_call("unnest", array), "col")]
    if isinstance(value, exp.Inline) or name == "inline_outer":
        array = value.expressions[0] if name else value.this
        return [_expanded(array)]
    if isinstance(value, exp.Stack):
        return _stacked(value)
    if name == "json_tuple" and len(value.expressions) > 1:
        document, *fields = value.expressions
        texts = (_call("json_extract_string", document, _path(field)) for field in fields)
        return [_named(each, f"c{place}") for place, each in enumerate(texts)]
    return None


def _path(field: Any) -> Any:
    if isinstance(field, exp.Literal) and field.is_string:
        return exp.Literal.string('$."' + field.name.replace('"', '\\"') + '"')
    return field


def _expanded(array: Any) -> Any:
    """The fields of the structs of a list, as columns."""
    depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.convert(2))
    return exp.Anonymous(this="unnest", expressions=[array.copy(), depth])


def _is_expanded(item: Any) -> bool:
    return isinstance(item, exp.Anonymous) and len(item.expressions) == 2 and isinstance(item.expressions[1], exp.PropertyEQ)


def _stacked(value: Any) -> list[Any]:
    """`stack(n, v1, v2, …)`: the values in n rows."""
    count, cells = whole_number(value.this), list(value.expressions)
    if count is None or not 0 < count <= _MOST_ROWS or not cells:
        raise SqlError(INVALID_PARAMETER, f"stack needs the number of rows, from 1 to {_MOST_ROWS}, and the values")
    width = -(-len(cells) // count)
    cells += [exp.Null()] * (width * count - len(cells))
    columns = ([cells[row * width + column] for row in range(count)] for column in range(width))
    return [
        _named(_call("unnest", exp.Array(expressions=[each.copy() for each in column])), f"col{place}")
        for place, column in enumerate(columns)
    ]


def _read_item(item: Any) -> None:
    """A function of several columns, or of a value that may be empty, in the list of a SELECT."""
    value = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
    is_plain = type(value) is exp.Explode and not isinstance(value.this, _MAPS)
    rows = None if is_plain else _rows_of(value, 0)
    if rows is None:
        return
    if _is_outer(value):
        rows = [_or_null(each) for each in rows]
    names = [each.name for each in item.aliases] if isinstance(item, exp.Aliases) else [item.alias] if item.alias else []
    made = _with_names(rows, names)
    select = item.parent
    place = next(place for place, each in enumerate(select.expressions) if each is item)
    select.set("expressions", [*select.expressions[:place], *made, *select.expressions[place + 1 :]])


def _or_null(item: Any) -> Any:
    """The rows of `explode_outer`: one with null for a list without elements."""
    if _is_expanded(item):
        raise not_supported("inline_outer is not supported in SELECT", hint="LATERAL VIEW OUTER inline(…)")
    array = item.this.expressions[0]
    empty = exp.Array(expressions=[exp.Null()])
    filled = exp.GT(this=_call("len", array), expression=exp.convert(0))
    item.this.set("expressions", [exp.Case(ifs=[exp.If(this=filled, true=array.copy())], default=empty)])
    return item


def _read_source(table: Any) -> None:
    """A function of several columns in FROM."""
    value = table.this
    if not isinstance(value, (exp.Posexplode, exp.Inline, exp.Stack)) and _name_of(value) not in ("json_tuple", "inline_outer"):
        return
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier("__rows"))
    rows = _rows_of(value, len(alias.columns))
    if rows is None or not isinstance(table.parent, (exp.From, exp.Join)):
        return
    made = exp.Subquery(this=exp.select(*rows, copy=False), alias=alias.copy())
    for clause in ("joins", "laterals"):
        made.set(clause, table.args.get(clause))
    table.replace(made)


def _read_lateral(lateral: Any) -> None:
    """`LATERAL explode(…) AS u(y)` in FROM."""
    alias = lateral.args.get("alias")
    rows = (
        None if isinstance(lateral.this, exp.Subquery) else _rows_of(lateral.this, len(alias.columns) if alias is not None else 0)
    )
    if rows is not None:
        lateral.set("this", exp.Subquery(this=exp.select(*rows, copy=False)))


def _with_names(items: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The outputs under the names of the statement. Raises SqlError: another number of them."""
    if not names or (len(items) == 1 and _is_expanded(items[0])):
        return list(items)
    if len(names) != len(items):
        raise SqlError("42601", f"{len(items)} names are needed for the columns, not {len(names)}")
    return [_named(item.this, name) for item, name in zip(items, names, strict=True)]


def _named(value: Any, name: str) -> Any:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _call(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])
