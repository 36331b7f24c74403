"""Properties of random schemas. fastavro is the witness that a compatible reader reads what the writer wrote."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barnabas.registry.formats.avro import FORMAT
from barnabas.registry.formats.interface import InvalidSchema
from tests.registry.formats.avro.records import enum, field, fixed, record

VALUES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -7, 2**31 - 1],
    "long": [0, -(2**62)],
    "float": [0.5, -2.0],
    "double": [0.1, 1e300],
    "bytes": [b"", b"ascii"],
    "string": ["", "tea"],
}
DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": False,
    "int": 1,
    "long": 2,
    "float": 0.5,
    "double": 0.1,
    "bytes": "b",
    "string": "s",
}
SYMBOLS = "ABCDE"


class Maker:
    """Makes a writer's schema, a reader's schema that is nearly the same, and values that the writer can write."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"{self.chance.choice(('a', 'a.b'))}.N{self.names}"

    def some(self, probability: float) -> bool:
        return self.chance.random() < probability

    def pair(self, depth: int, *, union: bool = True) -> tuple[Any, Any, Any]:
        """The writer's type, the reader's type and a value."""
        chance = self.chance
        if depth == 0 or self.some(0.35):
            kind = chance.choice(list(VALUES))
            return kind, chance.choice(list(VALUES)) if self.some(0.2) else kind, chance.choice(VALUES[kind])
        makers = [self.array, self.map, self.enum, self.fixed, self.record] + [self.union] * union
        return chance.choice(makers)(depth)

    def array(self, depth: int) -> tuple[Any, Any, Any]:
        writer, reader, value = self.pair(depth - 1)
        return {"type": "array", "items": writer}, {"type": "array", "items": reader}, [value] * self.chance.randint(0, 2)

    def map(self, depth: int) -> tuple[Any, Any, Any]:
        writer, reader, value = self.pair(depth - 1)
        return {"type": "map", "values": writer}, {"type": "map", "values": reader}, {"k": value}

    def enum(self, _: int) -> tuple[Any, Any, Any]:
        name, written = self.name(), self.chance.sample(SYMBOLS, 3)
        read = self.chance.sample(SYMBOLS, self.chance.randint(3, 5)) if self.some(0.5) else written
        more = {"default": read[0]} if self.some(0.4) else {}
        return enum(name, *written), enum(name, *read, **more), self.chance.choice(written)

    def fixed(self, _: int) -> tuple[Any, Any, Any]:
        name = self.name()
        return fixed(name, 2), fixed(name, 3 if self.some(0.1) else 2), b"ab"

    def union(self, depth: int) -> tuple[Any, Any, Any]:
        parts = [self.pair(depth - 1, union=False) for _ in range(self.chance.randint(1, 4))]
        written, read = ({_key(part[side]): part for part in parts} for side in (0, 1))
        writer, reader = [part[0] for part in written.values()], [part[1] for part in read.values()]
        self.chance.shuffle(reader)
        chosen = self.chance.choice(list(written.values()))
        name = chosen[0]["name"] if isinstance(chosen[0], dict) and "name" in chosen[0] else None
        return writer, reader, (name, chosen[2]) if name and isinstance(chosen[2], dict) else chosen[2]

    def record(self, depth: int) -> tuple[Any, Any, Any]:
        name = self.name()
        written, read, value = [], [], {}
        for label in "pqrs"[: self.chance.randint(0, 4)]:
            writer, reader, content = self.pair(depth - 1)
            if self.some(0.85):
                written.append(field(label, writer))
                value[label] = content
            if self.some(0.85):
                more = {"default": DEFAULTS[reader]} if isinstance(reader, str) and self.some(0.7) else {}
                read.append(
                    field(f"new_{label}", reader, aliases=[label], **more) if self.some(0.2) else field(label, reader, **more)
                )
        self.chance.shuffle(read)
        other = {"name": f"{name}x", "aliases": [name]} if self.some(0.15) else {"name": name}
        return record(*written, name=name, doc="w"), record(*read, **other), value


def _key(kind: Any) -> str:
    return kind if isinstance(kind, str) else kind.get("name", kind["type"])


MADE = st.integers(0, 2**63).map(lambda seed: Maker(random.Random(seed)).pair(4))


@settings(max_examples=400, deadline=None)
@given(MADE)
def test_a_compatible_reader_reads_what_the_writer_wrote(made: tuple[Any, Any, Any]) -> None:
    writer, reader, value = made
    assume(FORMAT.parse(json.dumps(reader), {}).unreadable(FORMAT.parse(json.dumps(writer), {})) == [])
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(writer), value)
    data.seek(0)
    fastavro.schemaless_reader(data, fastavro.parse_schema(writer), fastavro.parse_schema(reader))
    assert data.read() == b""


@settings(max_examples=300, deadline=None)
@given(MADE)
def test_texts_of_one_schema(made: tuple[Any, Any, Any]) -> None:
    for schema in made[:2]:
        parsed = FORMAT.parse(json.dumps(schema), {}, strict=True)
        assert FORMAT.parse(parsed.canonical, {}).canonical == parsed.canonical
        assert FORMAT.parse(json.dumps(_reversed(schema)), {}).canonical == parsed.canonical
        normalized = parsed.normalized()
        assert normalized.normalized().canonical == normalized.canonical
        assert normalized.unreadable(parsed) == parsed.unreadable(normalized) == parsed.unreadable(parsed) == []


def _reversed(schema: Any) -> Any:
    """The same schema with its attributes in another order."""
    if isinstance(schema, dict):
        return {key: _reversed(schema[key]) for key in reversed(schema)}
    return [_reversed(part) for part in schema] if isinstance(schema, list) else schema


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["record", "enum", "fixed", "array", "int", "R", "R.S", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "namespace",
                    "fields",
                    "items",
                    "values",
                    "symbols",
                    "size",
                    "default",
                    "aliases",
                    "order",
                    "doc",
                    "p",
                ]
            ),
            inner,
        )
    ),
    max_leaves=30,
)


@settings(max_examples=400, deadline=None)
@given(JSON, st.booleans())
def test_any_json_is_a_schema_or_an_invalid_schema(value: Any, strict: bool) -> None:
    try:
        parsed = FORMAT.parse(json.dumps(value), {}, strict=strict)
    except InvalidSchema:
        return
    assert FORMAT.parse(parsed.canonical, {}).canonical == parsed.canonical
    parsed.normalized()
    parsed.tags()
