"""Avro, with the interface of the formats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

from barnabas.limits import MAX_AVRO_CHARACTERS
from barnabas.registry.formats.avro.compatibility import find_incompatibilities, other_format
from barnabas.registry.formats.avro.parsing import parse_with_references
from barnabas.registry.formats.avro.printing import canonical_text, normal_text
from barnabas.registry.formats.avro.tagging import changed_text, find_tags
from barnabas.registry.formats.avro.types import Record
from barnabas.registry.formats.interface import Entity, Incompatibility, InvalidSchema, ParsedSchema


class AvroSchema:
    """A parsed schema. Its graph of types is not shared and does not change."""

    schema_type = "AVRO"

    def __init__(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> None:
        self._references = references
        self._root, self._known = parse_with_references(text, references, strict=strict)
        self.canonical = canonical_text(self._root, self._known)

    def normalized(self) -> Self:
        """The schema with properties, aliases and attributes in Confluent's order, and defaults in the form of their types."""
        return type(self)(normal_text(self._root, self._known), self._references)

    def formatted(self, form: str) -> str:
        """The text in a form: `resolved` includes the types of the references; any other name gives the canonical text."""
        if form.strip().lower() != "resolved":
            return self.canonical
        return canonical_text(self._root, max_depth=None)

    def unreadable(self, written: ParsedSchema, *, lenient: bool = False) -> list[Incompatibility]:
        """The reasons why a reader with this schema cannot read data of `written`. The messages call this schema new and
        `written` old."""
        if not isinstance(written, AvroSchema):
            return [other_format()]
        return find_incompatibilities(self._root, written._root)

    def has_top_level_field(self, name: str) -> bool:
        """Whether the schema is a record with this field."""
        return isinstance(self._root, Record) and name in self._root.by_name

    def tags(self) -> dict[Entity, frozenset[str]]:
        """The tags of records and fields by full names such as `acme.Order.id`, including those of references."""
        return find_tags(self._root)

    def with_tags(self, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> Self:
        """The schema with other tags. Raises InvalidSchema for an entity that the text of this schema does not define."""
        return type(self)(changed_text(self.canonical, added, removed), self._references)


class AvroFormat:
    """Parses Avro schemas."""

    schema_type = "AVRO"

    def parse(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> AvroSchema:
        """Parse `text` after its references. Raises InvalidSchema. `strict` also checks defaults and namespaces, and requires
        ASCII names."""
        characters = len(text) + sum(map(len, references.values()))
        if characters > MAX_AVRO_CHARACTERS:
            raise InvalidSchema(f"The schema has {characters} characters with its references; the limit is {MAX_AVRO_CHARACTERS}")
        return AvroSchema(text, references, strict=strict)


FORMAT = AvroFormat()
