"""Whether two definitions of one name are equal: then a schema may contain both."""

from __future__ import annotations

from barnabas.registry.formats.avro.types import Collected, Enum, Field, Fixed, Named, Record, Type, Union


def same_definition(first: Type, second: Type) -> bool:
    """Whether two types are equal except for their docs and aliases. Named types inside them have one object for each name."""
    if first.kind != second.kind or (first.properties or {}) != (second.properties or {}):
        return False
    if isinstance(first, Record) and isinstance(second, Record):
        return len(first.fields) == len(second.fields) and all(map(_same_field, first.fields, second.fields))
    if isinstance(first, Enum) and isinstance(second, Enum):
        return first.symbols == second.symbols
    if isinstance(first, Fixed) and isinstance(second, Fixed):
        return first.size == second.size
    return True


def _same_field(first: Field, second: Field) -> bool:
    return (
        first.name == second.name
        and first.order == second.order
        and first.default == second.default
        and (first.properties or {}) == (second.properties or {})
        and _same_use(first.type, second.type)
    )


def _same_use(first: Type, second: Type) -> bool:
    if isinstance(first, Named) or isinstance(second, Named):
        return first is second
    if isinstance(first, Collected) and isinstance(second, Collected):
        assert first.content is not None
        assert second.content is not None
        return same_definition(first, second) and _same_use(first.content, second.content)
    if isinstance(first, Union) and isinstance(second, Union):
        return len(first.branches) == len(second.branches) and all(map(_same_use, first.branches, second.branches))
    return same_definition(first, second)
