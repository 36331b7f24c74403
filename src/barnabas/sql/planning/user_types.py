"""Types of users in a query: what their names stand for, and how Postgres' functions show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.postgres.functions import OWN_WORDS
from barnabas.sql.catalog.sequences import parts_of_text
from barnabas.sql.duck.enums import EnumDefinition
from barnabas.sql.duck.types import RESOLVED
from barnabas.sql.interface import SqlError


class Types(NamedTuple):
    """The types of users that a statement may name.

    Args:
        find: the type of a name.
        known: all of them.
        path: the schemas whose types need no schema before their names.
    """

    find: Callable[[Sequence[str]], EnumDefinition | None]
    known: Mapping[str, EnumDefinition]
    path: Sequence[str]


def parts_of_type(node: exp.DataType) -> list[str]:
    """The parts of the name of a type of users: folded to lower case unless they are quoted."""
    kind = node.args.get("kind")
    names: list[str] = []
    while isinstance(kind, (exp.Dot, exp.Identifier)):
        name = kind.expression if isinstance(kind, exp.Dot) else kind
        names.insert(0, name.name if name.args.get("quoted") else name.name.lower())
        kind = kind.this if isinstance(kind, exp.Dot) else None
    return names


def resolve_types(tree: Any, types: Types) -> None:
    """Note at each type of users in a tree what its name stands for."""
    for node in tree.find_all(exp.DataType):
        if node.this == exp.DType.USERDEFINED and RESOLVED not in node.meta:
            parts = parts_of_type(node)
            found = types.find(parts) if parts and parts[-1].upper() not in OWN_WORDS else None
            if found is not None:
                node.meta[RESOLVED] = found


def read_types(tree: Any, types: Types, *, as_texts: bool = False) -> bool:
    """Write the types of users as DuckDB has them. Whether there are some."""
    resolve_types(tree, types)
    found = False
    for node in tree.find_all(exp.DataType):
        definition = node.meta.get(RESOLVED)
        if definition is not None:
            node.set("kind", "VARCHAR" if as_texts else definition.duckdb)
            found = True
    for node in tree.find_all(exp.Cast):
        if _is_of_names(node.to) and isinstance(node.this, exp.Literal) and node.this.is_string:
            number = _number_of(node.this.name, types)
            if number is not None:
                node.this.set("this", str(number))
    return found


def _is_of_names(kind: Any) -> bool:
    """Whether a type is `regtype`."""
    if isinstance(kind, exp.ObjectIdentifier):
        return str(kind.this).upper() == "REGTYPE"
    return kind.this == exp.DType.USERDEFINED and parts_of_type(kind)[-1:] == ["regtype"]


def _number_of(text: str, types: Types) -> int | None:
    plain = text.strip().removesuffix("[]")
    try:
        found = types.find(parts_of_text(plain)) if plain else None
    except SqlError:  # such as `double precision`
        return None
    return None if found is None else found.array if plain != text.strip() else found.oid


def data_type(kind: Any) -> exp.DataType:
    """A type of parameters in a tree."""
    if pa.types.is_list(kind):
        return exp.DataType(this=exp.DType.ARRAY, expressions=[data_type(kind.value_type)], nested=True)
    made = exp.DataType(this=exp.DType.USERDEFINED, kind=kind.definition.duckdb)
    made.meta[RESOLVED] = kind.definition
    return made


def cast_as(node: Any, kind: Any) -> None:
    """Put a cast around a node, which stays the same object."""
    cast = exp.Cast(to=data_type(kind))
    node.replace(cast)
    cast.set("this", node)


def shown_kind(kind: Any) -> str:
    """A type in words."""
    return f"{kind.value_type.definition.shown}[]" if pa.types.is_list(kind) else str(kind.definition.shown)


def put(node: Any, made: Any, name: str) -> None:
    """Put an expression in the place of a call, with its name if it is an output."""
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        made = exp.alias_(made, name, quoted=True)
    node.replace(made)


def names_types(tree: Any) -> bool:
    """Whether a tree may name types of users, or asks for their names."""
    return any(
        str(each.this).lower() == "format_type"
        if isinstance(each, exp.Anonymous)
        else (each.this == exp.DType.USERDEFINED and str(each.args.get("kind")).upper() not in OWN_WORDS) or _is_of_names(each)
        for each in tree.find_all(exp.DataType, exp.Anonymous)
    )


def shown_types(tree: Any, types: Types) -> None:
    """Let `format_type` know the types of users. The names of schemas outside of `search_path` are shown."""
    for node in list(tree.find_all(exp.Anonymous)):
        if str(node.this).lower() != "format_type" or not node.expressions or not types.known:
            continue
        oid = node.expressions[0]
        case = exp.Case(ifs=[], default=node.copy())
        for each in types.known.values():
            name = each.shown if each.schema not in types.path else each.shown_plain
            for number, text in ((each.oid, name), (each.array, f"{name}[]")):
                case.append("ifs", exp.If(this=exp.EQ(this=oid.copy(), expression=exp.convert(number)), true=exp.convert(text)))
        put(node, case, "format_type")
