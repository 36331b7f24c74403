"""A schema together with those that it references: finds the target of a `$ref`.

It reads only the given texts. A `$ref` without a target in them makes the schema invalid; no file and no URL is opened.
Every walk is a loop over a work list, so that a hostile text cannot exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from barnabas.limits import MAX_JSON_SCHEMA_CHARACTERS
from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.json_schema import drafts, patterns
from barnabas.registry.formats.json_schema.drafts import Draft
from barnabas.registry.formats.json_schema.text import Json, mapping, read

_ONE = [
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
]
_LISTS = ["allOf", "anyOf", "items", "oneOf", "prefixItems"]
_MAPS = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
_REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"]
_METASCHEMA: dict[str, Json] = {"type": ["object", "boolean"]}


class Place(NamedTuple):
    """The place of a schema.

    Args:
        root: the innermost schema around it that has an identifier.
        base: the URI of the root; "" if it has none.
        draft: the draft of its text.
    """

    root: Json
    base: str
    draft: Draft


class Located(NamedTuple):
    """A schema and its place."""

    schema: Json
    place: Place


class Documents:
    """The texts of one schema and its references. Raises InvalidSchema if one is invalid, or a `$ref` has no target.

    Args:
        text: the text of the schema itself.
        references: the texts of the other schemas by the URIs that name them.
    """

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        if len(text) + sum(map(len, references.values())) > MAX_JSON_SCHEMA_CHARACTERS:
            raise InvalidSchema(f"The schema and its references have more than {MAX_JSON_SCHEMA_CHARACTERS} characters")
        self._named: dict[str, Located] = {
            uri: Located(_METASCHEMA, Place(_METASCHEMA, uri, draft)) for draft, uri in drafts.METASCHEMAS.items()
        }
        self._places: dict[int, Place] = {}
        self._targets: dict[int, Located] = {}
        self._pending: list[dict[str, Json]] = []
        self.root = self._add(text, "", Draft.DRAFT_7)
        for name, other in references.items():
            located = self._add(other, _joined(self.root.place.base, name), self.root.place.draft)
            for uri in (name, f"./{name}"):
                self._named.setdefault(uri.rstrip("#"), located)
        for schema in self._pending:  # `_resolve` may add schemas to the list: a target can be outside the known places
            self._targets[id(schema)] = self._resolve(schema)

    def place(self, schema: Json, around: Place) -> Place:
        """The place of a schema inside `around`."""
        return self._places.get(id(schema), around) if isinstance(schema, dict) else around

    def target(self, schema: Json) -> Located:
        """The target of the `$ref` of this schema."""
        return self._targets[id(schema)]

    def _add(self, text: str, uri: str, default: Draft) -> Located:
        schema = read(text)
        draft = drafts.draft_of(schema, default)
        drafts.check(text, schema, draft)
        place = Place(schema, _defragmented(uri)[0], draft)
        self._name(uri, Located(schema, place))
        self._walk(schema, place)
        return Located(schema, self.place(schema, place))

    def _name(self, uri: str, located: Located) -> None:
        self._named.setdefault(uri.rstrip("#"), located)

    def _walk(self, schema: Json, place: Place) -> None:
        work: list[tuple[Json, Place]] = [(schema, place)]
        while work:
            current, around = work.pop()
            if not isinstance(current, dict) or id(current) in self._places:
                continue
            here = self._identify(current, around)
            self._places[id(current)] = here
            _check_patterns(current)
            if _reference(current) is not None:
                self._pending.append(current)
            work.extend((child, here) for child in subschemas(current))

    def _identify(self, schema: dict[str, Json], around: Place) -> Place:
        place = around
        identifier = schema.get("id" if around.draft == Draft.DRAFT_4 else "$id")
        if isinstance(identifier, str) and ("$ref" not in schema or around.draft > Draft.DRAFT_7 or schema is around.root):
            uri = _joined(around.base, identifier)
            base, fragment = _defragmented(uri)
            if not fragment:
                place = Place(schema, base, around.draft)
            self._name(uri, Located(schema, place))
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._name(f"{place.base}#{anchor}", Located(schema, place))
        return place

    def _resolve(self, schema: dict[str, Json]) -> Located:
        reference = _reference(schema) or ""
        place = self._places[id(schema)]
        address, fragment = _defragmented(reference)
        if address:
            uri = _joined(place.base, address)
            found = self._named.get(uri) or self._named.get(address)
            if found is None:
                raise InvalidSchema(f"Unresolved reference '{reference[:200]}': no reference of the schema has this name")
        else:
            found = Located(place.root, place)
        if fragment and not fragment.startswith("/"):
            anchored = self._named.get(f"{found.place.base}#{fragment}")
            if anchored is None:
                raise InvalidSchema(f"Unresolved reference '{reference[:200]}': no schema has this anchor")
            return anchored
        return self._pointed(found, fragment, reference)

    def _pointed(self, located: Located, pointer: str, reference: str) -> Located:
        """The part of a schema that a JSON pointer names; as in Confluent's registry, `$defs` also finds the old
        `definitions`."""
        value, place = located
        for step in unquote(pointer).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if step == "$defs" and isinstance(value, dict) and value is place.root and "definitions" in value:
                value = {**mapping(value["definitions"]), **mapping(value.get("$defs"))}
            elif isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(value):
                value = value[int(step)]
            else:
                raise InvalidSchema(f"Unresolved reference '{reference[:200]}': the schema has no such part")
            place = self.place(value, place)
        if not isinstance(value, dict | bool):
            raise InvalidSchema(f"Unresolved reference '{reference[:200]}': its target is no schema")
        self._walk(value, place)
        return Located(value, self.place(value, place))


def _reference(schema: Mapping[str, Json]) -> str | None:
    for keyword in _REFERENCES:
        value = schema.get(keyword)
        if isinstance(value, str):
            return value
    return None


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        raise InvalidSchema(f"'{reference[:200]}' is no URI") from None


def _defragmented(reference: str) -> tuple[str, str]:
    try:
        address, fragment = urldefrag(reference)
    except ValueError:
        raise InvalidSchema(f"'{reference[:200]}' is no URI") from None
    return address, fragment


def _check_patterns(schema: Mapping[str, Json]) -> None:
    found = list(mapping(schema.get("patternProperties")))
    pattern = schema.get("pattern")
    for expression in [*found, pattern] if isinstance(pattern, str) else found:
        if not patterns.is_valid(expression):
            raise InvalidSchema(f"'{expression[:200]}' is no regular expression")


def subschemas(schema: Mapping[str, Json]) -> Iterator[Json]:
    """The schemas directly inside this one, including those in its definitions."""
    for keyword in _ONE:
        if isinstance(schema.get(keyword), dict | bool):
            yield schema[keyword]
    for keyword in _LISTS:
        value = schema.get(keyword)
        if isinstance(value, list):
            yield from value
    for keyword in _MAPS:
        yield from mapping(schema.get(keyword)).values()
