"""`json_agg`, `json_object_agg` and their twins of jsonb: JSON of a list, since DuckDB's own ones know neither an order nor a filter."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

_ARRAYS = ("json_agg", "jsonb_agg")
_OBJECTS = ("json_object_agg", "jsonb_object_agg")
_AROUND = (exp.Filter, exp.Window, exp.WithinGroup)


def read_document_aggregates(tree: Any) -> None:
    """Rewrite a tree."""
    for node in list(tree.find_all(exp.JSONArrayAgg, exp.JSONObjectAgg, exp.JSONBObjectAgg, exp.Anonymous)):
        found = _parts(node)
        if found is not None:
            function, values = found
            whole: Any = node
            while isinstance(whole.parent, _AROUND) and whole.arg_key == "this":
                whole = whole.parent
            made = exp.Anonymous(this="list", expressions=[values])
            if whole is not node:
                node.replace(made)
                made = whole.copy()
            whole.replace(exp.Anonymous(this=function, expressions=[made]))


def _parts(node: Any) -> tuple[str, Any] | None:
    """The function of the list, and the list's values with their order."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    match node:
        case exp.JSONArrayAgg():
            return "__json_spaced", _documents(node.this)
        case exp.JSONBObjectAgg():
            return "__json_object", _entries([node.this, node.expression])
        case exp.JSONObjectAgg():
            return "__json_object", _entries(node.expressions)
        case exp.Anonymous() if name in _ARRAYS and len(node.expressions) == 1:
            return "to_json" if name == "jsonb_agg" else "__json_spaced", _documents(node.expressions[0])
        case exp.Anonymous() if name in _OBJECTS and len(node.expressions) == 2:
            return "__json_object", _entries(node.expressions)
    return None


def _documents(argument: Any) -> Any:
    """The values as JSON; those of DISTINCT as they are, since it compares them."""
    made = argument.copy()
    value = made.this if isinstance(made, exp.Order) else made
    if isinstance(value, exp.Distinct):
        return made
    if value is made:
        return _json(made)
    made.set("this", _json(value))
    return made


def _entries(arguments: list[Any]) -> Any:
    """Keys with their values, as structs."""
    key, value = (each.copy() for each in arguments)
    order = value if isinstance(value, exp.Order) else None
    value = value if order is None else order.this.copy()
    pairs = [
        exp.PropertyEQ(this=exp.to_identifier("k"), expression=exp.cast(key, "text")),
        exp.PropertyEQ(this=exp.to_identifier("v"), expression=_json(value)),
    ]
    entry = exp.Struct(expressions=pairs)
    if order is None:
        return entry
    order.set("this", entry)
    return order


def _json(value: Any) -> Any:
    return exp.Anonymous(this="to_json", expressions=[value.copy()])
