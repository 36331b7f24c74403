"""A format of a few lines: a schema is a JSON object of field names and types, and a reader needs every field that it names."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Self, cast

from barnabas.registry.formats.interface import Entity, Incompatibility, InvalidSchema, ParsedSchema, SchemaFormat

FRAME = "{{errorType:'{kind}', description:'{description}'}}"


class FakeSchema:
    """Fields by name. A name that begins with `?` is optional for a reader."""

    def __init__(self, schema_type: str, fields: dict[str, str]) -> None:
        self.schema_type = schema_type
        self.fields = fields

    @property
    def canonical(self) -> str:
        return json.dumps(self.fields, separators=(",", ":"))

    def normalized(self) -> Self:
        return type(self)(self.schema_type, dict(sorted(self.fields.items())))

    def formatted(self, form: str) -> str:
        return "resolved!" if form == "resolved" else self.canonical

    def unreadable(self, written: ParsedSchema, *, lenient: bool = False) -> list[Incompatibility]:
        fields = cast(FakeSchema, written).fields
        missing = [name for name in self.fields if not name.startswith("?") and name not in fields]
        return [Incompatibility.of("MISSING", "the new schema needs {name}", FRAME, name=name) for name in missing]

    def has_top_level_field(self, name: str) -> bool:
        return name in self.fields

    def tags(self) -> dict[Entity, frozenset[str]]:
        found = {name: kind.partition("#")[2] for name, kind in self.fields.items()}
        return {Entity(f".{name}", "SR_FIELD"): frozenset(tags.split("+")) for name, tags in found.items() if tags}

    def with_tags(self, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> Self:
        fields = dict(self.fields)
        for changes, adds in ((added, True), (removed, False)):
            for entity, tags in changes.items():
                name = entity.path.removeprefix(".")
                if name not in fields:
                    raise InvalidSchema(f"No field {name}")
                kind, _, old = fields[name].partition("#")
                kept = {*filter(None, old.split("+"))}
                kept = kept | {*tags} if adds else kept - {*tags}
                fields[name] = "#".join(filter(None, (kind, "+".join(sorted(kept)))))
        return type(self)(self.schema_type, fields)


class FakeFormat:
    """Counts what it parses."""

    def __init__(self, schema_type: str) -> None:
        self.schema_type = schema_type
        self.parsed: list[tuple[str, dict[str, str], bool]] = []

    def parse(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> FakeSchema:
        self.parsed.append((text, dict(references), strict))
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise InvalidSchema(str(error)) from None
        if not isinstance(fields, dict):
            raise InvalidSchema("no object")
        return FakeSchema(self.schema_type, fields)


AVRO, JSON = FakeFormat("AVRO"), FakeFormat("JSON")


def fake_format(schema_type: str) -> SchemaFormat:
    """The table of formats."""
    found = {"AVRO": AVRO, "JSON": JSON}.get(schema_type)
    if found is None:
        raise InvalidSchema(f"Invalid schema type {schema_type}")
    return found
