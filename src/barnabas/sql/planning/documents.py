"""Operators and functions of JSON that DuckDB has in another form.

DuckDB tells `@>`, `||` and `-` of documents from those of lists and texts by the types of their sides. Columns of documents are text there,
so the sides are looked at here: a cast to JSON, a column that is marked as JSON, or a function of JSON makes an operator one of documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.schemas.arrow.shapes import WORD
from barnabas.sql.dialect import WRITTEN
from barnabas.sql.duck.types import KIND
from barnabas.sql.planning.literals import array_of
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.outputs import name_of
from barnabas.sql.states import not_supported

FieldOf = Callable[[exp.Column], "pa.Field[Any] | None"]
_PATHS = {exp.JSONBExtract: "json_extract", exp.JSONBExtractScalar: "json_extract_string"}
_OPERATORS: dict[type[Any], str] = {
    exp.ArrayContainsAll: "json_contains",
    exp.ArrayContainedBy: "__json_contained",
    exp.DPipe: "__json_concat",
    exp.Sub: "__json_without",
}
_KEYS = {
    exp.JSONBContainsTopKey: "list_contains",
    exp.JSONBContainsAnyTopKeys: "list_has_any",
    exp.JSONBContainsAllTopKeys: "list_has_all",
}
_MOST_DIGITS = 10  # of a place in an array
_ROWS = {  # functions that give rows: the columns, and DuckDB's expressions of `x`
    "json_array_elements": (("value", "__json_items"),),
    "json_array_elements_text": (("value", "__json_texts"),),
    "json_each": (("key", "__json_keys"), ("value", "__json_values")),
    "json_each_text": (("key", "__json_keys"), ("value", "__json_value_texts")),
    "json_object_keys": (("json_object_keys", "__json_keys"),),
}


def read_documents(tree: Any, field_of: FieldOf) -> None:
    """Rewrite a tree.

    Args:
        field_of: the column that a name means, None if it is not of a table.
    """
    for node in reversed(list(tree.walk())):
        if type(node) in _PATHS:
            node.replace(_call(_PATHS[type(node)], _json(node.this), _pointer(node.expression)))
        elif type(node) in _KEYS:
            node.replace(_call(_KEYS[type(node)], _call("__json_names", _json(node.this)), node.expression.copy()))
        elif isinstance(node, exp.JSONBDeleteAtPath):
            _delete_path(node)
        elif isinstance(node, exp.Cast) and _is_jsonb(node) and isinstance(node.this, exp.Literal) and node.this.is_string:
            node.this.replace(exp.Literal.string(canonical(node.this.name)))
        elif isinstance(node, exp.Bracket) and _is_json(node.this, field_of) and _is_name(node.expressions[0]):
            node.replace(_call("json_extract", _json(node.this), node.expressions[0].copy()))
        elif type(node) in _OPERATORS:
            _operate(node, field_of)
        elif isinstance(node, exp.Anonymous):
            _build(node)
            _with_path(node)
            _give_rows(node)


def _is_jsonb(cast: exp.Cast) -> bool:
    return str(getattr(cast.to.this, "value", "")) == "JSONB"


def canonical(text: str) -> str:
    """The text of a document of jsonb with its keys in Postgres' order, so that equal documents have equal texts. Any other text stays."""
    try:
        found = json.loads(text, parse_float=Number, parse_int=Number, parse_constant=_refuse_constant)
        return _written(found)
    except (ValueError, RecursionError):
        return text  # DuckDB tells the fault


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _written(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: (len(item[0].encode()), item[0].encode()))
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_written(each)}" for key, each in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def plain_json_outputs(tree: Any, field_of: FieldOf) -> frozenset[str]:
    """The names of outputs that are of the type json; other documents are of jsonb."""
    items = tree.expressions if isinstance(tree, exp.Select) else []
    return frozenset(
        item.alias or name_of(item.unalias()) for item in items if not item.is_star and _is_plain(item.unalias(), field_of)
    )


def _is_plain(node: Any, field_of: FieldOf) -> bool:
    match node:
        case exp.Cast():
            return str(getattr(node.to.this, "value", "")) == "JSON"
        case exp.Column():
            field = field_of(node)
            metadata = {} if field is None else field.metadata or {}
            return metadata.get(KIND) == b"json" and WORD not in metadata
        case exp.JSONArrayAgg() | exp.JSONObjectAgg():
            return True
        case exp.Anonymous():
            name = str(node.this).lower()
            return name.startswith(("json_", "row_to_json", "array_to_json")) or name == "to_json"
        case exp.Paren() | exp.Filter() | exp.Window() | exp.JSONExtract() | exp.JSONBExtract() | exp.Coalesce():
            return _is_plain(node.this, field_of)
    return str(node.meta.get(WRITTEN, "")).startswith(("json_", "to_json", "row_to_json"))


def _operate(node: Any, field_of: FieldOf) -> None:
    left, right = node.this, node.expression
    if isinstance(node, exp.Sub):
        if _is_json(left, field_of):
            node.replace(_call("__json_without", _json(left), right.copy()))
    elif _is_json(left, field_of) or (_is_json(right, field_of) and not isinstance(node, exp.DPipe)):
        node.replace(_call(_OPERATORS[type(node)], _json(left), _json(right)))


def _is_json(node: Any, field_of: FieldOf) -> bool:
    match node:
        case exp.Paren():
            return _is_json(node.this, field_of)
        case exp.Subquery():
            outputs = node.selects
            return len(outputs) == 1 and _is_json(outputs[0].unalias(), field_of)
        case exp.Cast():
            return str(getattr(node.to.this, "value", "")) in ("JSON", "JSONB")
        case exp.Column():
            field = field_of(node)
            return field is not None and (field.metadata or {}).get(KIND) == b"json"
        case exp.JSONExtract():
            return True
        case exp.Anonymous():
            return str(node.this).lower() in ("json_extract", "__json_concat", "__json_without")
    return False


def _pointer(path: Any) -> Any:
    """A JSON pointer of a path: in braces, of an array of literals, or of any other array of texts."""
    steps = _steps(path)
    if steps is None:
        return _call("__pointer", exp.cast(path.copy(), "text[]", dialect="postgres"))
    return exp.Literal.string("".join(map(_step, steps)))


def _step(name: str) -> str:
    """A step of a JSON pointer."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _steps(path: Any) -> list[str] | None:
    """The names of a path in braces or of an array of literals, also with casts; None for any other."""
    inner = path.unnest()
    while isinstance(inner, exp.Cast):
        inner = inner.this.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        return [str(each) for each in array_of(inner.name)]
    cells = [_plain_cell(each) for each in inner.expressions] if isinstance(inner, exp.Array) else [None]
    return None if None in cells else [str(each) for each in cells]


def _plain_cell(cell: Any) -> str | None:
    while isinstance(cell, exp.Cast):
        cell = cell.this
    return str(cell.name) if isinstance(cell, exp.Literal) else None


def _known_steps(path: Any, function: str) -> list[str]:
    """The names of a path. Raises SqlError: it is no constant."""
    steps = _steps(path)
    if steps is None:
        raise not_supported(f"{function} takes a constant path", position_in(path), "write it as '{a,b}'")
    return steps


def _known_flag(arguments: Sequence[Any], function: str, *, default: bool) -> bool:
    """The fourth argument. Raises SqlError: it is no constant."""
    if len(arguments) < 4:
        return default
    flag = arguments[3]
    while isinstance(flag, (exp.Cast, exp.Paren)):
        flag = flag.this
    word = (
        flag.name.lower()
        if isinstance(flag, exp.Literal)
        else str(bool(flag.this)).lower()
        if isinstance(flag, exp.Boolean)
        else ""
    )
    if word not in ("true", "false"):
        raise not_supported(f"{function} takes true or false as its fourth argument", position_in(arguments[3]))
    return word == "true"


def _is_name(part: Any) -> bool:
    """Whether a subscript of a document may be the name of a field, which DuckDB takes for a place in an array."""
    return isinstance(part, exp.Cast) or (isinstance(part, exp.Literal) and part.is_string)


def _with_path(node: Any) -> None:
    """`jsonb_set` of a path of literals, and `json_extract_path` with its kin."""
    name, arguments = str(node.this).lower().replace("jsonb_", "json_", 1), node.expressions
    if name in ("json_extract_path", "json_extract_path_text"):
        pointer = _pointer(exp.Array(expressions=[each.copy() for each in arguments[1:]]))
        called = "json_extract_string" if name.endswith("_text") else "json_extract"
        node.replace(_call(called, _json(arguments[0]), pointer))
    if name != "json_set" or len(arguments) not in (3, 4):
        return
    creates = _known_flag(arguments, str(node.this), default=True)
    node.replace(_put(_json(arguments[0]), _known_steps(arguments[1], str(node.this)), _json(arguments[2]), creates=creates))


def _delete_path(node: Any) -> None:
    """`document #- path`, for a path of literals."""
    node.replace(_change(_json(node.this), _known_steps(node.expression, "#-"), "__json_left_out", ()))


def _change(document: Any, steps: Sequence[str], function: str, values: Sequence[Any]) -> Any:
    """A document changed by a function at the end of a path; a path that is not there changes nothing."""
    if not steps:
        return document
    if len(steps) == 1:
        return _call(function, document.copy(), exp.Literal.string(steps[0]), *(each.copy() for each in values))
    inner = _call("json_extract", document.copy(), exp.Literal.string(_step(steps[0])))
    changed = _change(inner, steps[1:], function, values)
    made = _call("__json_put", document.copy(), exp.Literal.string(steps[0]), changed)
    is_there = exp.Not(this=exp.Is(this=inner.copy(), expression=exp.Null()))
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=is_there, true=made)], default=document.copy()))


def _build(node: Any) -> None:
    """`jsonb_object` of arrays, and `jsonb_insert` of a path of literals."""
    name, arguments = str(node.this).lower(), node.expressions
    if name in ("jsonb_object", "json_object") and 1 <= len(arguments) <= 2:
        made = [_texts(each) for each in arguments]
        node.replace(_call("__json_pairs", *made))
    elif name == "jsonb_insert" and len(arguments) in (3, 4):
        steps = _known_steps(arguments[1], name)
        if _known_flag(arguments, name, default=False) and steps and steps[-1].isdecimal() and len(steps[-1]) < _MOST_DIGITS:
            steps[-1] = str(int(steps[-1]) + 1)
        node.replace(_change(_json(arguments[0]), steps, "__json_placed", [_json(arguments[2])]))


def _texts(array: Any) -> Any:
    """An array of texts, also as a literal in braces."""
    if isinstance(array, exp.Literal) and array.is_string:
        return exp.Array(expressions=[exp.convert(each) for each in array_of(array.name)])
    return array.copy()


def _put(document: Any, steps: Sequence[str], value: Any, *, creates: bool) -> Any:
    """A document with another value at a path; a path that is not there changes nothing, but for its last step."""
    if not steps:
        return value
    inner = _call("json_extract", document.copy(), exp.Literal.string(_step(steps[0])))
    made = _call("__json_put", document.copy(), exp.Literal.string(steps[0]), _put(inner, steps[1:], value, creates=creates))
    if len(steps) == 1 and creates:
        return made
    is_there = exp.Not(this=exp.Is(this=inner.copy(), expression=exp.Null()))
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=is_there, true=made)], default=document.copy()))


def _give_rows(node: Any) -> None:
    name = str(node.this).lower().replace("jsonb_", "json_", 1)
    columns = _ROWS.get(name)
    table = node.parent
    if name in ("json_to_record", "json_to_recordset") and isinstance(table, exp.Table) and table.this is node:
        _give_records(node, table, is_set=name.endswith("set"))
        return
    if columns is None or len(node.expressions) != 1:
        return
    argument = _without_arrows(node.expressions[0])
    if not isinstance(table, exp.Table) or table.this is not node:
        if len(columns) == 1:
            node.replace(_call(columns[0][1], argument.copy()))
        return
    items = [exp.alias_(_call(function, argument.copy()), column) for column, function in columns]
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(str(node.this).lower()))
    if len(columns) == 1 and not alias.args.get("columns"):
        _read_whole(table, alias.name, columns[0][0])
    lateral = exp.Subquery(this=exp.select(*items), alias=alias.copy())
    for clause in ("joins", "laterals"):
        lateral.set(clause, table.args.get(clause))
    table.replace(lateral)


def _read_whole(table: Any, alias: str, column: str) -> None:
    """Let the name of a function with one column mean its value, where it stands for a whole row."""
    select = table.find_ancestor(exp.Select)
    for each in list(select.find_all(exp.Column)) if select is not None else []:
        if not each.table and each.name.lower() == alias.lower() and isinstance(each.this, exp.Identifier):
            made: Any = exp.column(
                exp.to_identifier(column, quoted=True), table=exp.to_identifier(alias, quoted=each.this.quoted)
            )
            if isinstance(each.parent, exp.Select) and each.arg_key == "expressions":
                made = exp.alias_(made, alias, quoted=True)
            each.replace(made)


def _give_records(node: Any, table: Any, *, is_set: bool) -> None:
    """`jsonb_to_record(x) AS t(a int, …)`: the fields of a document, by the names and types of the alias."""
    alias = table.args.get("alias")
    wanted = [each for each in (alias.args.get("columns") or [] if alias is not None else []) if isinstance(each, exp.ColumnDef)]
    if not wanted or len(node.expressions) != 1:
        return
    row: Any = exp.column("e")
    items: list[Any] = []
    for each in wanted:
        path = exp.Literal.string(_step(each.name))
        kind: Any = each.args["kind"]
        is_text = not (kind.expressions or str(kind.this.value) in ("JSON", "JSONB", "ARRAY", "STRUCT"))
        value = _call("json_extract_string" if is_text else "json_extract", row.copy(), path)
        items.append(exp.alias_(exp.Cast(this=value, to=kind.copy()), each.name, quoted=True))
    source = _call("__json_items", node.expressions[0].copy()) if is_set else _json(node.expressions[0])
    inner = exp.Subquery(this=exp.select(exp.alias_(source, "e")), alias=exp.TableAlias(this=exp.to_identifier("x")))
    lateral = exp.Subquery(this=exp.select(*items).from_(inner), alias=exp.TableAlias(this=alias.this.copy()))
    for clause in ("joins", "laterals"):
        lateral.set(clause, table.args.get(clause))
    table.replace(lateral)


def _without_arrows(argument: Any) -> Any:
    """An argument with functions for `->` and `->>`: within a list function, DuckDB takes an arrow for a lambda."""
    whole = exp.Paren(this=argument.copy())
    for each in list(whole.find_all(exp.JSONExtract, exp.JSONExtractScalar)):
        name = "json_extract_string" if isinstance(each, exp.JSONExtractScalar) else "json_extract"
        each.replace(_call(name, each.this.copy(), each.expression.copy()))
    return whole.this


def _json(node: Any) -> Any:
    return exp.cast(node.copy(), "json", dialect="duckdb")


def _call(name: str, *arguments: Any) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))
