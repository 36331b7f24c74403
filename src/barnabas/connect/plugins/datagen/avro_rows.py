"""Rows by a schema in Avro, whose `arg.properties` say what values are like, as Confluent's datagen reads them.

Known are `options`, `range`, `iteration`, `length`, `regex`, `prefix`, `suffix`, `odds`, and `keys` of maps.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.plugins.datagen.patterns import maker_of

PROPERTIES = "arg.properties"
KNOWN = {"options", "range", "iteration", "length", "regex", "prefix", "suffix", "odds", "keys"}
Maker = Callable[[Random, int], Any]  # a value from chance and the number of the row
LETTERS = string.ascii_letters + string.digits
LENGTHS, MOST = (8, 16), 10_000  # of texts, arrays and maps without a length; of any
DEEPEST = 32
KINDS: Mapping[str, Any] = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "bytes": pa.binary(), "enum": pa.string(), "fixed": pa.binary(),
}  # fmt: skip
LOGICAL: Mapping[str, Any] = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
}  # fmt: skip
RANGES = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1), "float": (0.0, 1.0), "double": (0.0, 1.0)}


class Unknown(ValueError):
    """A schema that no rows can be made by; the text says why in one line."""


class Made(NamedTuple):
    """What makes values.

    Args:
        kind: the type of the values.
        make: makes one.
        optional: whether it may be null.
    """

    kind: Any
    make: Maker
    optional: bool = False


class Record(NamedTuple):
    """What makes rows.

    Args:
        name: that of the schema, with its namespace.
        schema: of the rows.
    """

    name: str
    schema: pa.Schema
    make: Maker


def record_of(text: str) -> Record:
    """What makes rows by a schema in JSON. Raises Unknown."""
    try:
        schema = json.loads(text)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise Unknown("the schema is no record")
        made = _Schemas().made(schema, "", 0)
    except Unknown:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unknown(f"the schema is no schema in Avro: {type(error).__name__} {error}") from None
    space, name = schema.get("namespace"), schema["name"]
    return Record(name if not space or "." in name else f"{space}.{name}", pa.schema(list(made.kind)), made.make)


class _Schemas:
    """Schemas with their names, so that later ones may refer to them."""

    def __init__(self) -> None:
        self._named: dict[str, Made] = {}

    def made(self, schema: Any, path: str, depth: int) -> Made:
        if depth > DEEPEST:
            raise Unknown(f"{path} is nested more than {DEEPEST} times")
        if isinstance(schema, list):
            return self._union(schema, path, depth)
        if isinstance(schema, str):
            schema = {"type": schema}
        kind = schema["type"]
        if isinstance(kind, dict | list) and PROPERTIES not in schema:
            return self.made(kind, path, depth + 1)
        if kind in self._named:
            return self._named[kind]
        properties = schema.get(PROPERTIES) or {}
        if unknown := set(properties) - KNOWN:
            raise Unknown(f"{path or 'the record'}: {PROPERTIES} {sorted(unknown)[0]} is not known")
        found = self._of_kind(kind, schema, properties, path, depth)
        if "options" in properties:
            found = found._replace(make=_option(properties["options"], path))
        if name := schema.get("name") if kind in {"record", "enum", "fixed"} else None:
            self._named[name] = self._named[f"{schema.get('namespace')}.{name}"] = found
        return found

    def _union(self, schemas: Sequence[Any], path: str, depth: int) -> Made:
        parts = [self.made(each, path, depth + 1) for each in schemas]
        others = [each for each in parts if not pa.types.is_null(each.kind)]
        if len(others) != 1:
            raise Unknown(f"{path} is a union of {len(others)} types, not of one and null")
        ways = [each.make for each in parts]
        return Made(others[0].kind, lambda chance, number: chance.choice(ways)(chance, number), optional=len(parts) > 1)

    def _of_kind(self, kind: Any, schema: Mapping[str, Any], properties: Mapping[str, Any], path: str, depth: int) -> Made:
        match kind:
            case "record":
                return self._record(schema, path, depth)
            case "array" | "map":
                its = self.made(schema["items" if kind == "array" else "values"], path, depth + 1)
                field = pa.field("item" if kind == "array" else "value", its.kind, its.optional)
                return _list(its, field, properties) if kind == "array" else self._map(its, field, properties, path, depth)
            case "enum":
                symbols = list(schema["symbols"])
                return Made(pa.string(), lambda chance, _number: chance.choice(symbols))
            case "fixed":
                size = _bounded(schema["size"])
                return Made(pa.binary(), lambda chance, _number: chance.randbytes(size))
        if kind not in KINDS:
            raise Unknown(f"{path or 'the record'}: the type {kind} is not known")
        logical = schema.get("logicalType")
        return Made(LOGICAL.get(str(logical), KINDS[kind]), _plain(kind, properties, path))

    def _record(self, schema: Mapping[str, Any], path: str, depth: int) -> Made:
        fields = {
            each["name"]: self.made(each["type"], f"{path}.{each['name']}".lstrip("."), depth + 1) for each in schema["fields"]
        }
        kind = pa.struct([pa.field(name, each.kind, each.optional) for name, each in fields.items()])
        makers = [(name, each.make) for name, each in fields.items()]
        return Made(kind, lambda chance, number: {name: make(chance, number) for name, make in makers})

    def _map(self, its: Made, field: Any, properties: Mapping[str, Any], path: str, depth: int) -> Made:
        keys = self.made({"type": "string", PROPERTIES: properties.get("keys") or {}}, f"{path} keys", depth + 1).make
        least, most = _lengths(properties)

        def make(chance: Random, number: int) -> Any:
            return list({keys(chance, number): its.make(chance, number) for _ in range(chance.randint(least, most))}.items())

        return Made(pa.map_(pa.string(), field), make)


def _list(its: Made, field: Any, properties: Mapping[str, Any]) -> Made:
    least, most = _lengths(properties)
    return Made(
        pa.list_(field), lambda chance, number: [its.make(chance, number) for _ in range(chance.randint(least, most))]
    )  # fmt: skip


def _bounded(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST:
        raise Unknown(f"the length {value} is no number up to {MOST}")
    return value


def _lengths(properties: Mapping[str, Any]) -> tuple[int, int]:
    given = properties.get("length", {"min": LENGTHS[0], "max": LENGTHS[1] - 1})
    if isinstance(given, int):
        return _bounded(given), given
    least = _bounded(given.get("min", 0))
    return least, max(least, _bounded(given.get("max", MOST)) - 1)


def _option(options: Any, path: str) -> Maker:
    if not isinstance(options, list) or not options:
        raise Unknown(f"{path or 'the record'}: options are no list of values")
    return lambda chance, _number: chance.choice(options)


def _plain(kind: str, properties: Mapping[str, Any], path: str) -> Maker:
    """What makes values of a type without parts."""
    if "iteration" in properties:
        return _iteration(kind, properties["iteration"])
    match kind:
        case "null":
            return lambda _chance, _number: None
        case "boolean":
            odds = float(properties.get("odds", 0.5))
            return lambda chance, _number: chance.random() < odds
        case "string":
            return _text(properties, path)
        case "bytes":
            least, most = _lengths(properties)
            return lambda chance, _number: chance.randbytes(chance.randint(least, most))
    given = properties.get("range") or {}
    least, most = given.get("min", RANGES[kind][0]), given.get("max", RANGES[kind][1])
    if kind in {"int", "long"}:
        return lambda chance, _number: chance.randint(int(least), max(int(least), int(most) - 1))
    return lambda chance, _number: chance.uniform(least, most)


def _iteration(kind: str, given: Mapping[str, Any]) -> Maker:
    """Values that count up with the number of the row."""
    start = given.get("start", 0)
    if kind == "boolean":
        return lambda _chance, number: bool(start) is (number % 2 == 0)
    step, begin, restart = given.get("step", 1), given.get("initial", start), given.get("restart")
    if restart == start:
        raise Unknown(f"an iteration from {start} restarts at {restart}")

    def make(_chance: Random, number: int) -> Any:
        value = begin + step * number
        if restart is not None:
            value = start + (value - start) % (restart - start)
        return str(value) if kind == "string" else value

    return make


def _text(properties: Mapping[str, Any], path: str) -> Maker:
    before, after = properties.get("prefix", ""), properties.get("suffix", "")
    if "regex" in properties:
        try:
            pattern = maker_of(str(properties["regex"]))
        except ValueError as error:
            raise Unknown(f"{path}: no texts can be made by the regex {properties['regex']}: {error}") from None
        return lambda chance, _number: before + pattern(chance) + after
    least, most = _lengths(properties)
    return lambda chance, _number: before + "".join(chance.choices(LETTERS, k=chance.randint(least, most))) + after
