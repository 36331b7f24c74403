"""Headers that transforms make have the bytes of Kafka Connect 4.3.

`header-texts.tsv` is the output of `HeaderTexts.java`, which `java -cp 'libs/*' HeaderTexts.java` runs with the jars of Kafka.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.converters.header_converters import HEADERS, decoded, encoded
from barnabas.connect.converters.registry import header_converter
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.chain import Chain

RECORDED = Path(__file__).with_name("header-texts.tsv")
STORAGE, JSON = "org.apache.kafka.connect.storage.", "org.apache.kafka.connect.json.JsonConverter"
CONFIGS = {
    "Simple": {},
    "String": {"header.converter": f"{STORAGE}StringConverter"},
    "Plain": {"header.converter": JSON, "header.converter.schemas.enable": "false"},
    "Json": {"header.converter": JSON},
}
VALUE: dict[str, Any] = {
    "i": pa.array([7], pa.int32()),
    "f": pa.array([1e10], pa.float64()),
    "s": pa.array(['q"'], pa.string()),
    "t": pa.array([datetime.datetime(2020, 1, 1, 10, 11, 12, 123_000, datetime.UTC)], pa.timestamp("ms", "UTC")),
    "d": pa.array([datetime.date(2020, 1, 1)], pa.date32()),
    "b": pa.array([b"ab"], pa.binary()),
    "z": pa.array([True], pa.bool_()),
    "l": pa.array([["a", 'b"c', None]], pa.list_(pa.string())),
    "n": pa.array([Decimal("1.10")], pa.decimal128(38, 2)),
    "o": pa.array([None], pa.string()),
}


def record() -> pa.Table:
    return pa.table({"value": pa.StructArray.from_arrays(list(VALUE.values()), list(VALUE)), "topic": ["t"]})


def header(what: str, converter: str) -> bytes | None:
    """The header that a transform makes, as it is written."""
    kind, _, text = what.partition(" ")
    config = {"type": "HeaderFrom$Value", "fields": text, "headers": "h", "operation": "copy"}
    if kind == "literal":
        config = {"type": "InsertHeader", "header": "h", "value.literal": text}
    chain = Chain(
        {"transforms": "x", **{f"transforms.x.{key}": each for key, each in config.items()}},
        header_converter(CONFIGS[converter], {}),
    )
    found: bytes | None = chain.apply(record()).column("headers")[0].as_py()[0]["value"]
    return found


def recorded() -> list[tuple[str, str, bytes | None]]:
    lines = [line.split("\t") for line in RECORDED.read_text("utf-8").splitlines()]
    return [(what, name, None if data == "null" else bytes.fromhex(data)) for what, name, data in lines]


def is_known(what: str, name: str, wanted: bytes | None) -> bool:
    """Whether a header is documented to differ: `StringConverter` shows times, bytes and nested values as Java's objects do; fields
    that may be null are not told apart; and Kafka Connect has no schema for a list of different things."""
    if name == "String":
        return what[:7] in {"field t", "field d", "field b", "field l"} or b"UTC" in (wanted or b"") or what[8:9] in {"[", "{"}
    return name in {"Json", "Plain"} and what in {"field s", "literal 1e400", "literal []", 'literal [1,"a"]', "literal {}"}


def test_headers_of_transforms_are_those_of_kafka_connect() -> None:
    pairs = [(what, name, wanted, header(what, name)) for what, name, wanted in recorded()]
    differing = [each for each in pairs if not is_known(*each[:3]) and not is_same(each[1], each[2], each[3])]
    assert differing == []
    assert len(pairs) > 250


def is_same(name: str, wanted: bytes | None, found: bytes | None) -> bool:
    """Whether bytes are equal; in JSON, numbers may be spelled in other ways."""
    if wanted == found or name in {"Simple", "String"} or wanted is None or found is None:
        return wanted == found
    return bool(json.loads(wanted) == json.loads(found))


def test_headers_of_a_source_that_are_no_bytes_are_converted() -> None:
    given: Any = {"value": ["x", "y"], "headers": pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int64()))}
    found = encoded(pa.table(given), header_converter({}, {})).column("headers").to_pylist()
    assert found == [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], None]
    kept: Any = {"headers": pa.array([[{"key": "a", "value": b"\0"}]], HEADERS)}
    assert (
        encoded(pa.table(kept), header_converter(CONFIGS["Json"], {})).column("headers").to_pylist()
        == kept["headers"].to_pylist()
    )
    with pytest.raises(ConnectError, match="headers are a list of structs with key and value, or a map; these are int64"):
        encoded(pa.table({"headers": [1]}), header_converter({}, {}))
    with pytest.raises(ConnectError, match="Invalid schema type for ByteArrayConverter: int64"):
        encoded(pa.table(given), header_converter({"header.converter": "ByteArrayConverter"}, {}))


def test_headers_for_a_sink_become_texts() -> None:
    lists = [[("a", b'{"x": 1}'), ("b", b'"t"')], None, [("c", b"{")], [], [("d", None)]]
    shaped = [None if each is None else [{"key": key, "value": value} for key, value in each] for each in lists]
    records = pa.table({"headers": pa.array(shaped, HEADERS)})
    found, bad = decoded(records, header_converter(CONFIGS["Plain"], {}))
    assert list(bad) == [2]
    assert bad[2].startswith("c: Converting byte[] to Kafka Connect data failed")
    texts = [None if each is None else [one["value"] for one in each] for each in found.column("headers").to_pylist()]
    assert texts == [[b'{"x":1}', b"t"], None, [None], [], [None]]
    same, none = decoded(records, header_converter({}, {}))
    assert same.equals(records)
    assert none == {}


def test_the_worker_names_a_converter_too() -> None:
    assert type(header_converter({}, CONFIGS["String"])).__name__ == "StringConverter"
    with pytest.raises(ConnectError, match="Class Nothing could not be found"):
        header_converter({"header.converter": "Nothing"}, {})
