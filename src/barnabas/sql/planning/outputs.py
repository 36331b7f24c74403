"""The names of a result's columns, as Postgres chooses them for expressions without one."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.functions.definition import CALL
from barnabas.sql.dialect import WRITTEN
from barnabas.sql.duck.types import enum_in

UNNAMED = "?column?"
_NAMES: dict[type[exp.Expression], str] = {
    exp.Case: "case",
    exp.Coalesce: "coalesce",
    exp.Exists: "exists",
    exp.Array: "array",
    exp.GroupConcat: "string_agg",
    exp.JSONArrayAgg: "json_agg",
    exp.JSONObjectAgg: "json_object_agg",
    exp.JSONBObjectAgg: "jsonb_object_agg",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.StrPosition: "position",
    exp.AtTimeZone: "timezone",
    exp.Tuple: "row",
    exp.Interval: "interval",
    exp.Unhex: "bytea",
}


def with_names(tree: Any) -> Any:
    """A query with names for its columns: VALUES has `column1`, `column2`, … ."""
    if not isinstance(tree, exp.Values):
        return tree
    first = tree.expressions[0] if tree.expressions else None
    count = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    columns = [exp.to_identifier(f"column{number}") for number in range(1, count + 1)]
    tree.set("alias", exp.TableAlias(this=exp.to_identifier("*VALUES*", quoted=True), columns=columns))
    clauses = {name: tree.args.pop(name, None) for name in ("order", "limit", "offset", "with_")}
    made = exp.select("*").from_(tree, copy=False)
    for name, clause in clauses.items():
        made.set(name, clause)
    return made


def fold_outputs(tree: exp.Expression) -> None:
    """Write the names that a statement gives outputs outside of quotes in lower case, as Postgres does."""
    for alias in tree.find_all(exp.Alias):
        name: Any = alias.args.get("alias")
        if isinstance(name, exp.Identifier) and not name.args.get("quoted"):
            name.set("this", name.name.lower())


def name_outputs(tree: exp.Expression) -> None:
    """Give each output of each SELECT a name."""
    for values in list(tree.find_all(exp.Values)):
        _name_columns(values)
    for select in list(tree.find_all(exp.Select)):
        if isinstance(select.parent, (exp.In, exp.Exists)):
            continue
        for item in list(select.expressions):
            if isinstance(item, (exp.Alias, exp.Aliases, exp.Star, exp.Column)) or _has_alias(item):
                continue
            if is_expanded(item):
                item.replace(exp.Anonymous(this="unnest", expressions=[item.this.copy()]))
                continue
            if isinstance(item, (exp.Unnest, exp.Explode, exp.Posexplode)):
                _name(item, item.meta.get(WRITTEN) or ("unnest" if isinstance(item, exp.Unnest) else "col"))
            else:
                _name(item, name_of(item))


def is_expanded(item: Any) -> bool:
    """Whether an output is all fields of a struct: `(s).*`."""
    return isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star)


def _has_alias(item: exp.Expression) -> bool:
    """Whether an output has a name of its own. The alias of a window is what stands behind OVER."""
    return bool(item.alias) and not isinstance(item, exp.Window)


def _name_columns(values: exp.Values) -> None:
    """Let VALUES in FROM have the columns `column1`, `column2`, … where it names none."""
    holder: Any = values
    if isinstance(values.parent, exp.Subquery) and not values.args.get("alias"):
        holder = values.parent
    alias = holder.args.get("alias")
    if not isinstance(holder.parent, (exp.From, exp.Join)) or (alias is not None and alias.args.get("columns")):
        return
    name = alias.this if alias is not None and alias.this is not None else exp.to_identifier("*VALUES*", quoted=True)
    first = values.expressions[0] if values.expressions else None
    count = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    columns = [exp.to_identifier(f"column{number}") for number in range(1, count + 1)]
    holder.set("alias", exp.TableAlias(this=name, columns=columns))


def _name(item: Any, name: str) -> None:
    alias = exp.Alias(alias=exp.to_identifier(name, quoted=True))
    item.replace(alias)
    alias.set("this", item)


def name_of(item: Any) -> str:
    """The name of an expression."""
    match item:
        case exp.Alias() | exp.Column():
            return str(item.output_name)
        case exp.Cast():
            return str(item.meta[WRITTEN]) if item.meta.get(WRITTEN) == "div" else _name_of_cast(item)
        case exp.Paren() | exp.Window() | exp.Filter() | exp.WithinGroup() | exp.Bracket() | exp.IgnoreNulls():
            return name_of(item.this)
        case exp.Subquery():
            selects = item.this.selects if isinstance(item.this, exp.Query) else []
            return name_of(selects[0]) if selects else UNNAMED
        case exp.Dot() if isinstance(item.expression, exp.Identifier):
            return str(item.expression.name)
        case exp.Dot():
            return name_of(item.expression)
        case exp.Anonymous():
            is_own = str(item.this).startswith(CALL)
            return str(item.meta.get(WRITTEN, "") if is_own else item.this).lower()
    if isinstance(item, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(item.args.get("position") or ""), "btrim")
    if item.meta.get(WRITTEN):
        return str(item.meta[WRITTEN])
    if type(item) in _NAMES:
        return _NAMES[type(item)]
    if isinstance(item, exp.Func) and not isinstance(item, (exp.And, exp.Or, exp.Xor, exp.Connector, exp.Binary)):
        return str(item.sql_name()).lower()
    return UNNAMED


def _name_of_cast(cast: Any) -> str:
    """The name of what is cast, or else of the outer type."""
    inner = cast
    while isinstance(inner, (exp.Cast, exp.Paren)):
        inner = inner.this
    name = UNNAMED if isinstance(inner, (exp.Boolean, exp.Case, exp.Interval)) else name_of(inner)
    return name if name != UNNAMED else _word(cast.to)


_WORDS = {
    "INT": "int4",
    "BIGINT": "int8",
    "SMALLINT": "int2",
    "DOUBLE": "float8",
    "FLOAT": "float4",
    "BOOLEAN": "bool",
    "DECIMAL": "numeric",
    "VARBINARY": "bytea",
    "CHAR": "bpchar",
    "TIMESTAMPNTZ": "timestamp",
}


def _word(kind: Any) -> str:
    while str(getattr(kind.this, "value", "")) == "ARRAY" and kind.expressions:
        kind = kind.expressions[0]
    word = str(getattr(kind.this, "value", kind.this))
    labels = enum_in(kind)
    if labels is not None:
        return labels.plain_name
    return _WORDS.get(word, word.lower())
