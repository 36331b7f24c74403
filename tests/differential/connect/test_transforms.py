"""Transforms of barnabas against those of Kafka Connect: the same records, the same bytes.

Without a schema the order of the fields in JSON, and fields that are null, may differ: there a batch of records is one table.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.chain import Chain
from barnabas.connect.transforms.interface import column, metadata_of, with_column
from tests.differential.connect.record import TRANSFORMED
from tests.differential.connect.transforms import Case, cases

PAIRS = list(zip(cases(), map(json.loads, TRANSFORMED.read_text().splitlines()), strict=True))


def transformed(case: Case) -> dict[str, Any]:
    """The result of our transforms for a case, in the form of the recorded answers."""
    converters = {
        name: JsonConverter({"schemas.enable": str(case["schemas"]).lower()}, is_key=name == "key") for name in ("key", "value")
    }
    records = pa.table(
        {
            "topic": [case["topic"]], "partition": pa.array([3], pa.int32()), "offset": pa.array([42], pa.int64()),
            "timestamp": pa.array([case["timestamp"]], pa.timestamp("ms", "UTC")),
            "headers": pa.array([[{"key": key, "value": value.encode()} for key, value in case["headers"]]], HEADERS),
        }
    )  # fmt: skip
    config = {f"transforms.x.{key}": value for key, value in case["config"].items()}
    try:
        for name, each in converters.items():
            found = each.decode(pa.array([case[name]], pa.string()).cast(pa.binary()))
            assert not found.bad
            records = with_column(records, name, found.column, found.metadata)
        made = Chain({"transforms": "x", "transforms.x.type": f"org.apache.kafka.connect.transforms.{case['type']}", **config})
        records = made.apply(records)
        return _answer(records, converters) if records.num_rows else {}
    except (ConfigError, ConnectError) as error:
        return {"error": str(error)}


def _answer(records: pa.Table, converters: dict[str, JsonConverter]) -> dict[str, Any]:
    topic: Any = column(records, "topic")[0].as_py()
    headers: Any = column(records, "headers")[0].as_py()
    answer: dict[str, Any] = {"topic": topic}
    for name, each in converters.items():
        values = column(records, name)
        (data,) = [None] if pa.types.is_null(values.type) else each.encode(values, topic, metadata_of(records, name)).to_pylist()
        answer[name] = None if data is None else data.decode()
    pairs = [(one["key"], one["value"]) for one in headers]
    return {**answer, "headers": [[key, None if value is None else value.decode()] for key, value in pairs]}


def reason_to_differ(case: Case) -> str | None:
    """Why a case differs; None for one that is equal."""
    kind, config = case["type"].partition("$")[0], case["config"]
    has_schema, names = case["schemas"], config.get("fields", config.get("field", config.get("spec", "")))
    if case["value"] is None and kind in {"MaskField", "ValueToKey", "HeaderFrom"}:
        return "Kafka Connect fails with a tombstone without a schema; ours leaves it as it is"
    if kind == "Flatten" and case["type"].endswith("Value") and has_schema and "counts" in case["value"]:
        return "Kafka Connect refuses a map; ours leaves it as it is"
    if kind == "MaskField" and has_schema and {"data", "cost"} & set(names.split(",")):
        return "Kafka Connect masks no bytes, and writes a decimal of another scale, which fails"
    if kind == "TimestampConverter" and not has_schema and case["value"] and _makes_time(case):
        return "Kafka Connect's JSON has no times without a schema; ours writes them as numbers"
    if kind == "TimestampConverter" and names == "id" and case["value"]:
        return "Kafka Connect takes numbers of 64 bits alone"
    if kind == "TimestampConverter" and has_schema and json.loads(case["value"])["payload"] is None:
        return "a null is a tombstone"
    if kind == "SetSchemaMetadata" and has_schema and json.loads(case["value"])["schema"]["type"] != "struct":
        return "Kafka Connect lists the fields of a schema that has none"
    if "float32" in names and ((has_schema and "big:float32" in names) or "123456789012" in str(case["value"])):
        return "numbers of 32 bits have other digits"
    return None


def _makes_time(case: Case) -> bool:
    name = case["config"].get("field")
    return case["config"]["target.type"] in {"Timestamp", "Date", "Time"} and (name is None or name in json.loads(case["value"]))


def plain(text: Any) -> Any:
    """JSON without nulls in objects."""
    value = json.loads(text) if isinstance(text, str) else text
    if isinstance(value, dict):
        return {key: plain(each) if isinstance(each, dict) else each for key, each in value.items() if each is not None}
    return value


def comparable(answer: dict[str, Any], *, has_schema: bool) -> dict[str, Any]:
    """An answer as far as it is to be equal."""
    if "error" in answer:
        return {"error": "an error"}
    return answer if has_schema else {**answer, **{name: plain(answer[name]) for name in ("key", "value") if name in answer}}


def differs(case: Case, wanted: dict[str, Any]) -> bool:
    found = transformed(case)
    return comparable(found, has_schema=case["schemas"]) != comparable(wanted, has_schema=case["schemas"])


@pytest.mark.parametrize("kind", sorted({case["type"] for case, _ in PAIRS}))
def test_records_are_those_of_kafka_connect(kind: str) -> None:
    of_kind = [(case, wanted) for case, wanted in PAIRS if case["type"] == kind]
    wrong = [(case, wanted) for case, wanted in of_kind if differs(case, wanted) != (reason_to_differ(case) is not None)]
    assert [(case["config"], case["value"], transformed(case), wanted) for case, wanted in wrong] == []
