"""JSON Schema as a format of the registry: parsing, canonical text, normal form, compatibility and tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from barnabas.registry.formats.interface import Entity, Incompatibility, InvalidSchema, ParsedSchema
from barnabas.registry.formats.json_schema import tags, text
from barnabas.registry.formats.json_schema.comparison import Comparison
from barnabas.registry.formats.json_schema.differences import COMPATIBLE, LENIENT, Difference, incompatibility
from barnabas.registry.formats.json_schema.documents import Documents
from barnabas.registry.formats.json_schema.model import Schemas
from barnabas.registry.formats.json_schema.text import Interner, Json, mapping

_OTHER_TYPE = "Incompatible because of different schema type"


class JsonSchema:
    """A schema that fits its metaschema, with a target for each reference.

    Args:
        schema_text: the JSON text.
        references: the texts of the schemas that it needs, by URI.
    """

    schema_type = "JSON"

    def __init__(self, schema_text: str, references: Mapping[str, str]) -> None:
        self._references = dict(references)
        self._documents = Documents(schema_text, self._references)

    @property
    def _json(self) -> Json:
        return self._documents.root.schema

    @cached_property
    def canonical(self) -> str:
        return text.write(self._json)

    def normalized(self) -> JsonSchema:
        return JsonSchema(text.write(text.sorted_keys(self._json)), self._references)

    def formatted(self, form: str) -> str:
        return self.canonical

    def unreadable(self, written: ParsedSchema, *, lenient: bool = False) -> list[Incompatibility]:
        if not isinstance(written, JsonSchema):
            return [Incompatibility("TYPE_CHANGED", _OTHER_TYPE, _OTHER_TYPE)]
        accepted = LENIENT if lenient else COMPATIBLE
        return [incompatibility(each) for each in self.differences(written, accepted) if each.kind not in accepted]

    def differences(self, written: JsonSchema, accepted: frozenset[str] = COMPATIBLE) -> list[Difference]:
        """All changes from `written` to this schema, including accepted ones. The length of the list is bounded; it is
        compatible only if all changes are."""
        return Comparison(written._documents, self._documents, accepted).differences()

    def has_top_level_field(self, name: str) -> bool:
        return name in mapping(mapping(self._json).get("properties"))

    def tags(self) -> dict[Entity, frozenset[str]]:
        found: dict[Entity, frozenset[str]] = {}
        of_fields: set[int] = set()
        for entity, raw in tags.entities(Schemas(self._documents, Interner()).root):
            names = tags.tags_at(raw)
            if entity.kind == "SR_FIELD":
                of_fields.add(id(raw))
            elif id(raw) in of_fields:
                continue  # the tags of a field's own schema count as tags of the field
            if names:
                found[entity] = frozenset(names)
        return found

    def with_tags(self, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> JsonSchema:
        copy = JsonSchema(self.canonical, self._references)
        places = dict(tags.entities(Schemas(copy._documents, Interner()).root))
        for entity in {**added, **removed}:
            place = places.get(entity)
            if not isinstance(place, dict):
                raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
            names = dict.fromkeys([*tags.tags_at(place), *added.get(entity, ())])
            kept: list[Json] = [name for name in names if name not in removed.get(entity, ())]
            if kept:
                place[tags.TAGS] = kept
            else:
                place.pop(tags.TAGS, None)
        return JsonSchema(text.write(copy._json), self._references)


class JsonSchemaFormat:
    """Parses JSON Schemas."""

    schema_type = "JSON"

    def parse(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> JsonSchema:
        parsed = JsonSchema(text, references)
        if strict:
            for name in mapping(mapping(parsed._json).get("properties")):
                if name.startswith("$$"):
                    raise InvalidSchema(f"#/properties/{name[:200]}: Field names cannot start with $$ prefix")
        return parsed


FORMAT = JsonSchemaFormat()
