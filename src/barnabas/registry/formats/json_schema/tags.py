"""The records and fields of a schema, and their tags.

As in Confluent's registry, a path has the kinds of schemas from the root on: `object.address.object.city`, `array.object`,
`oneof.0.object`. References are not followed; definitions have paths of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.registry.formats.interface import Entity
from barnabas.registry.formats.json_schema.model import RANK, Kind, Node
from barnabas.registry.formats.json_schema.text import Json, mapping, write

TAGS = "confluent:tags"
_ONE_SCHEMA = {  # keyword that holds one schema -> step of the path
    Kind.ARRAY: {"items": "array"},
    Kind.NOT: {"not": "not"},
    Kind.CONDITIONAL: {"if": "conditional.if", "then": "conditional.then", "else": "conditional.else"},
}


def tags_at(raw: Json) -> list[str]:
    """The tags of a schema, in their order."""
    found = mapping(raw).get(TAGS)
    return [tag if isinstance(tag, str) else write(tag) for tag in found] if isinstance(found, list) else []


def entities(root: Node) -> Iterator[tuple[Entity, Json]]:
    """Every record and field with its schema; the record of a field's own schema comes after the field."""
    work: list[tuple[Node, str]] = [(root, "")]
    seen: set[str] = set()
    while work:
        node, scope = work.pop()
        if node.kind is Kind.OBJECT:
            path = f"{scope}object"
            if path in seen:
                continue
            seen.add(path)
            yield Entity(path, "SR_RECORD"), node.raw  # type: ignore[misc]  # the schema of an OBJECT node is an object
            for name, child in node.children("properties").items():
                yield Entity(f"{path}.{name}", "SR_FIELD"), child.raw  # type: ignore[misc]  # the schemas true and false have no tags
        work.extend(_inside(node, scope))


def _inside(node: Node, scope: str) -> Iterator[tuple[Node, str]]:
    if node.kind is Kind.COMBINED:
        for index, part in enumerate(sorted(node.parts, key=_order)):
            yield part, f"{scope}{node.criterion.lower()}.{index}."
    elif node.kind is Kind.OBJECT:
        for keyword, prefix in (("properties", ""), ("definitions", "definitions."), ("$defs", "$defs.")):
            for name, child in node.children(keyword).items():
                yield child, f"{scope}object.{prefix}{name}."
    else:
        for keyword, step in _ONE_SCHEMA.get(node.kind, {}).items():
            raw = node.raw.get(keyword)
            if isinstance(raw, dict):
                yield node.child(raw), f"{scope}{step}."


def _order(node: Node) -> tuple[int, str, str, str, int, list[str]]:
    common = [_text(node.common(name)) for name in ("title", "description", "default")]
    names: list[str] = []
    if node.kind is Kind.OBJECT:
        names = sorted(node.mapping("properties"))
    elif node.kind is Kind.ENUM and isinstance(values := node.raw["enum"], list):
        names = sorted(_text(value) for value in values)
    return RANK[node.kind], common[0], common[1], common[2], len(names), names


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else write(value)
