"""Tags of records and fields: the property `confluent:tags`, an array of strings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from barnabas.registry.formats.avro.json_text import json_text
from barnabas.registry.formats.avro.types import Collected, Record, Type, Union
from barnabas.registry.formats.interface import Entity, InvalidSchema

TAGS = "confluent:tags"
RECORD, FIELD = "SR_RECORD", "SR_FIELD"


def find_tags(root: Type) -> dict[Entity, frozenset[str]]:
    """The tags of all records that `root` uses, including references."""
    tags: dict[Entity, frozenset[str]] = {}
    for record in _records(root):
        _note(tags, Entity(record.name, RECORD), record.properties)
        for field in record.fields:
            _note(tags, Entity(f"{record.name}.{field.name}", FIELD), field.properties)
    return tags


def _note(tags: dict[Entity, frozenset[str]], entity: Entity, properties: dict[str, Any] | None) -> None:
    found = _listed(properties)
    if found:
        tags[entity] = frozenset(found)


def _listed(properties: dict[str, Any] | None) -> list[str]:
    value = properties.get(TAGS) if properties else None
    return [tag if isinstance(tag, str) else json_text(tag) for tag in value] if isinstance(value, list) else []


def _records(root: Type) -> Iterator[Record]:
    seen: set[int] = set()
    stack = [root]
    while stack:
        kind = stack.pop()
        if isinstance(kind, Union):
            stack += reversed(kind.branches)
        elif isinstance(kind, Collected):
            assert kind.content is not None
            stack.append(kind.content)
        elif isinstance(kind, Record) and id(kind) not in seen:
            seen.add(id(kind))
            yield kind
            stack += reversed([field.type for field in kind.fields])


def changed_text(canonical: str, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> str:
    """The text after the tags in `added` are added and those in `removed` are removed. Raises InvalidSchema if the text does
    not define an entity."""
    root = msgspec.json.decode(canonical)
    nodes = _nodes(root)
    for entity in dict.fromkeys((*added, *removed)):
        node = nodes.get(Entity(entity.path.removeprefix("."), entity.kind))
        if node is None:
            raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
        gone = set(removed.get(entity, ()))
        tags = [tag for tag in dict.fromkeys((*_listed(node), *added.get(entity, ()))) if tag not in gone]
        if tags:
            node[TAGS] = tags
        else:
            node.pop(TAGS, None)
    return json_text(root, depth=_UNBOUNDED)


_UNBOUNDED = 1_000  # levels; the depth of a canonical text was already checked


def _nodes(root: Any) -> dict[Entity, dict[str, Any]]:
    """The JSON object of each record and field that a canonical text defines."""
    nodes: dict[Entity, dict[str, Any]] = {}
    stack: list[tuple[Any, str]] = [(root, "")]
    while stack:
        node, space = stack.pop()
        if isinstance(node, list):
            stack += [(branch, space) for branch in node]
        elif isinstance(node, dict) and node["type"] in ("array", "map"):
            stack.append((node["items" if node["type"] == "array" else "values"], space))
        elif isinstance(node, dict) and node["type"] in ("record", "error"):
            space = node.get("namespace", space)
            name = f"{space}.{node['name']}" if space else node["name"]
            nodes[Entity(name, RECORD)] = node
            for field in node["fields"]:
                nodes[Entity(f"{name}.{field['name']}", FIELD)] = field
                stack.append((field["type"], space))
    return nodes
