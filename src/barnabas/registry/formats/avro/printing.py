"""The texts of a parsed schema: the canonical text of Avro's Java library, and the text for `normalize=true`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from barnabas.limits import MAX_AVRO_DEPTH
from barnabas.registry.formats.avro.defaults import java_default
from barnabas.registry.formats.avro.json_text import json_text, sorted_names, string_text
from barnabas.registry.formats.avro.logical_types import logical_attributes
from barnabas.registry.formats.avro.types import Collected, Enum, Field, Fixed, Named, Primitive, Record, Type, Union
from barnabas.registry.formats.interface import InvalidSchema

Piece = str | tuple[Type, str]  # text, or a type to print with the namespace around the type
PrintType = Callable[[Type, str], list[Piece]]


def canonical_text(root: Type, known: Iterable[str] = (), *, max_depth: int | None = MAX_AVRO_DEPTH) -> str:
    """The text that Java's `Schema.toString(references, false)` gives.

    Args:
        root: the type to print.
        known: full names of types that are printed as a name only, because a reference defines them.
        max_depth: raise InvalidSchema if types are nested deeper than this in the text; None prints any depth.
    """
    seen = set(known)
    return _printed(root, lambda kind, namespace: _canonical(kind, namespace, seen), max_depth)


def normal_text(root: Type, known: Iterable[str] = ()) -> str:
    """The text of Confluent's normalisation: full names, properties and aliases in order. The caller parses it again to get its
    canonical text."""
    seen = set(known)
    return _printed(root, lambda kind, _: _normal(kind, seen), None)


def _printed(root: Type, print_type: PrintType, max_depth: int | None) -> str:
    out: list[str] = []
    stack: list[tuple[Piece, int]] = [((root, ""), 0)]
    while stack:
        piece, depth = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        kind, namespace = piece
        if kind.__class__ is Primitive and kind.properties is None:
            out.append(f'"{kind.kind}"')
            continue
        if max_depth is not None and depth > max_depth:
            raise InvalidSchema(f"The schema is nested deeper than {max_depth} levels")
        stack += [(part, depth + 1) for part in reversed(print_type(kind, namespace))]
    return "".join(out)


def _canonical(kind: Type, namespace: str, seen: set[str]) -> list[Piece]:
    if isinstance(kind, Union):
        return _union(kind, namespace)
    if isinstance(kind, Primitive):
        return [f'{{"type":"{kind.kind}"{_properties(kind.properties)}}}']
    if isinstance(kind, Collected):
        return [*_collected(kind, namespace), f"{_properties(kind.properties)}}}"]
    space = kind.name.rpartition(".")[0]
    if kind.name in seen:
        return [string_text(relative_name(kind.name, namespace))]
    seen.add(kind.name)
    head = f'{{"type":"{_type_word(kind)}","name":{string_text(kind.name.rpartition(".")[2])}'
    if space != namespace:
        head += f',"namespace":{string_text(space)}'
    if kind.doc is not None:
        head += f',"doc":{string_text(kind.doc)}'
    tail = _properties(kind.properties)
    if kind.aliases:
        tail += f',"aliases":{json_text([_alias(alias, space) for alias in kind.aliases])}'
    return [head, *_content(kind, space), f"{tail}}}"]


def _content(kind: Record | Enum | Fixed, space: str) -> list[Piece]:
    if isinstance(kind, Fixed):
        return [f',"size":{kind.size}']
    if isinstance(kind, Enum):
        symbols = f',"symbols":{json_text(kind.symbols)}'
        return [symbols if kind.default is None else f'{symbols},"default":{string_text(kind.default)}']
    pieces: list[Piece] = [',"fields":[']
    for index, field in enumerate(kind.fields):
        pieces += (f'{"," if index else ""}{{"name":{string_text(field.name)},"type":', (field.type, space), _field_tail(field))
    pieces.append("]")
    return pieces


def _field_tail(field: Field) -> str:
    tail = "" if field.doc is None else f',"doc":{string_text(field.doc)}'
    if field.default is not msgspec.UNSET:
        tail += f',"default":{json_text(field.default)}'
    if field.order != "ascending":
        tail += f',"order":"{field.order}"'
    if field.aliases:
        tail += f',"aliases":{json_text(field.aliases)}'
    return f"{tail}{_properties(field.properties)}}}"


def _type_word(kind: Named) -> str:
    return "error" if isinstance(kind, Record) and kind.is_error else kind.kind


def _union(kind: Union, namespace: str) -> list[Piece]:
    pieces: list[Piece] = ["["]
    for index, branch in enumerate(kind.branches):
        pieces += (",", (branch, namespace)) if index else ((branch, namespace),)
    pieces.append("]")
    return pieces


def _collected(kind: Collected, namespace: str) -> list[Piece]:
    assert kind.content is not None
    return [f'{{"type":"{kind.kind}","{"items" if kind.kind == "array" else "values"}":', (kind.content, namespace)]


def _properties(properties: dict[str, Any] | None) -> str:
    if not properties:
        return ""
    return "".join([f",{string_text(key)}:{json_text(value)}" for key, value in properties.items()])


def relative_name(name: str, namespace: str) -> str:
    """The shortest text for the full name `name` inside `namespace`."""
    space, _, simple = name.rpartition(".")
    return simple if not space or space == namespace else name


def _alias(alias: str, space: str) -> str:
    return relative_name(alias, space)


def _normal(kind: Type, seen: set[str]) -> list[Piece]:
    if isinstance(kind, Union):
        return _union(kind, "")
    if isinstance(kind, Primitive):
        logical = logical_attributes(kind)
        return [f'{{"type":"{kind.kind}"{_properties(logical)}{_sorted_properties(kind.properties, logical)}}}']
    if isinstance(kind, Collected):
        return [*_collected(kind, ""), f"{_sorted_properties(kind.properties)}}}"]
    if kind.name in seen:
        return [string_text(kind.name)]
    seen.add(kind.name)
    pieces: list[Piece] = [f'{{"name":{string_text(kind.name)},"type":"{kind.kind}"']
    logical = {}
    if isinstance(kind, Fixed):
        logical = logical_attributes(kind)
        pieces.append(f',"size":{kind.size}{_properties(logical)}')
    elif isinstance(kind, Enum):
        pieces.append(f',"symbols":{json_text(kind.symbols)}')
    else:
        pieces.append(',"fields":[')
        for index, field in enumerate(kind.fields):
            pieces += (
                f'{"," if index else ""}{{"name":{string_text(field.name)},"type":',
                (field.type, ""),
                _normal_field_tail(field),
            )
        pieces.append("]")
    pieces.append(f"{_normal_attributes(kind)}{_sorted_properties(kind.properties, logical)}}}")
    return pieces


def _normal_attributes(kind: Record | Enum | Fixed) -> str:
    text = f',"doc":{string_text(kind.doc)}' if kind.doc else ""
    if kind.aliases:
        aliases = [alias if "." in alias else f".{alias}" for alias in sorted_names(set(kind.aliases))]
        text += f',"aliases":{json_text(aliases)}'
    if isinstance(kind, Enum) and kind.default is not None:
        text += f',"default":{string_text(kind.default)}'
    return text


def _normal_field_tail(field: Field) -> str:
    text = f',"order":"{field.order}"'
    if field.doc is not None:
        text += f',"doc":{string_text(field.doc)}'
    if field.aliases:
        text += f',"aliases":{json_text(sorted_names(set(field.aliases)))}'
    if field.default is not msgspec.UNSET:
        default = java_default(field.type, field.default)
        if default is not msgspec.UNSET:
            text += f',"default":{json_text(default, ordered=True)}'
    return f"{text}{_sorted_properties(field.properties)}}}"


def _sorted_properties(properties: dict[str, Any] | None, written: Iterable[str] = ()) -> str:
    if not properties:
        return ""
    done = set(written)
    names = [name for name in sorted_names(properties) if name not in done]
    return "".join([f",{string_text(name)}:{json_text(properties[name], ordered=True)}" for name in names])
