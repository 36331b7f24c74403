"""Registered schemas in Spark: versions that evolve within a topic, ids in payloads and headers, batches and streams."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.pipelines.functions import from_barnabas, registered, to_barnabas
from barnabas.pipelines.offsets import OptionError
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
FIRST = {"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]}  # fmt: skip
SECOND: dict[str, Any] = {**FIRST, "fields": [*FIRST["fields"],
    {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
        {"name": "sku", "type": ["null", "string"], "default": None}, {"name": "tags", "type": {"type": "map", "values": "int"}}]}},
        "default": []},
]}  # fmt: skip
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, datetime.UTC)
OLD = {"id": 1, "price": Decimal("1.50"), "at": AT}
NEW = {"id": 2, "price": Decimal("-2.00"), "at": AT, "lines": [{"sku": "a", "tags": {"x": 1}}, {"sku": None, "tags": {}}]}


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


@pytest.fixture
def registry(registry_url: str) -> Iterator[RegistryClient]:
    with RegistryClient(registry_url) as client:
        yield client


def test_versions_in_one_topic(
    registry: RegistryClient,
    registry_url: str,
    topic: Callable[..., str],
    produce: Callable[..., None],
    load: Callable[..., DataFrame],
) -> None:
    name = topic()
    old = Serializer(registry, name, schema=json.dumps(FIRST))
    new = Serializer(registry, name, schema=json.dumps(SECOND), ids="headers")
    key = Serializer(registry, name, schema='"string"', is_key=True)
    produce(name, [
        (0, key.encode("a"), old.encode(OLD)),
        (0, key.encode("b"), new.encode(NEW), {"headers": new.headers}),
        (0, None, None),
        (0, key.encode("c"), b"text"),
        (0, b"no id", old.encode(OLD)),
    ])  # fmt: skip
    frame = load(subscribe=name, includeHeaders="true")
    keys = registered(f"{name}-key", url=registry_url)
    latest = registered(f"{name}-value", url=registry_url)
    rows = from_barnabas(frame, latest, key_schema=keys).orderBy("offset").collect()
    assert [(row.key, row.value and row.value.asDict(recursive=True)) for row in rows] == [
        ("a", {**OLD, "at": AT.replace(tzinfo=None), "lines": []}),
        ("b", {**NEW, "at": AT.replace(tzinfo=None)}),
        (None, None),
        ("c", None),
        (None, {**OLD, "at": AT.replace(tzinfo=None), "lines": []}),
    ]
    assert [(row._corrupt_reason, row._corrupt_value and bytes(row._corrupt_value)) for row in rows[2:]] == [
        (None, None),
        ("value: it carries no id of a schema", b"text"),
        ("key: it carries no id of a schema", old.encode(OLD)),
    ]
    first = from_barnabas(frame, registered(f"{name}-value", version=1, url=registry_url), mode="DROPMALFORMED")
    assert [row.value.id for row in first.where("value is not null").orderBy("offset").collect()] == [1, 2, 1]
    assert "lines" not in first.select("value.*").columns
    with pytest.raises(Exception, match=rf"cannot decode topic {name} partition 0 offset 3 value: it carries no id"):
        from_barnabas(frame, latest, mode="FAILFAST").select("value.id").collect()


@pytest.mark.parametrize("ids", ["payload", "headers"])
def test_rows_become_records_in_a_stream(
    registry: RegistryClient, registry_url: str, spark: SparkSession, kafka_server: str, topic: Callable[..., str],
    produce: Callable[..., None], stream: Callable[..., DataFrame], load: Callable[..., DataFrame], tmp_path: Path, ids: str,
) -> None:  # fmt: skip
    name, copy = topic(), topic()
    source = Serializer(registry, name, schema=json.dumps(SECOND))
    produce(name, [(0, None, source.encode(NEW)), (0, None, source.encode({**OLD, "lines": []}))])
    target = registered(f"{copy}-value", url=registry_url, schema=json.dumps(SECOND))
    keys = registered(f"{copy}-key", url=registry_url, schema='"long"')
    orders = from_barnabas(stream(subscribe=name, startingOffsets="earliest"), registered(f"{name}-value", url=registry_url))
    rows = orders.where("value is not null").select("value.*")
    records = to_barnabas(rows, key="id", key_schema=keys, schema=target, ids=ids)
    writer = records.writeStream.format("barnabas").option("kafka.bootstrap.servers", kafka_server).option("topic", copy)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    found = load(subscribe=copy, includeHeaders="true").orderBy("offset").collect()
    for row, wanted in zip(found, [NEW, {**OLD, "lines": []}], strict=True):
        headers = [(each.key, bytes(each.value)) for each in row.headers or ()]
        assert bool(headers) == (ids == "headers")
        assert Deserializer(registry, is_key=True).decode(bytes(row.key), headers) == wanted["id"]
        assert Deserializer(registry).decode(bytes(row.value), headers) == wanted


def test_json_and_protobuf(registry: RegistryClient, registry_url: str, spark: SparkSession) -> None:
    as_json = registered(
        "j-value", url=registry_url, schema_type="JSON",
        schema='{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"any":{}},"required":["a"]}',
    )  # fmt: skip
    as_proto = registered(
        "p-value", url=registry_url, schema_type="PROTOBUF", message="M",
        schema='syntax = "proto3"; import "google/protobuf/timestamp.proto"; message O {} message M { int64 a = 1; optional string b = 2; '
        "google.protobuf.Timestamp at = 3; map<string, int32> any = 4; }",
    )  # fmt: skip
    rows = spark.createDataFrame([(1, None, {"x": 1}), (2, "z", {})], "a int, b string, any map<string, int>")
    expected: list[tuple[Any, list[tuple[Any, ...]]]] = [
        (as_json, [(1, None, '{"x": 1}'), (2, "z", "{}")]),
        (as_proto, [(1, None, {"x": 1}), (2, "z", {})]),
    ]
    for schema, wanted in expected:
        back = from_barnabas(to_barnabas(rows, key="a", value=["a", "b", "any"], schema=schema), schema)
        assert [(r.key, r.value.a, r.value.b, r.value.any) for r in back.orderBy("key").collect()] == [
            (str(a), a, b, c) for a, b, c in wanted
        ]


def test_mistakes_are_named(registry: RegistryClient, registry_url: str, spark: SparkSession) -> None:
    schema = registered("m-value", url=registry_url, schema=json.dumps(FIRST))
    rows = spark.createDataFrame([("x", 1)], "id string, more int")
    with pytest.raises(OptionError, match="the schema of m-value has no field more; it has id, price, at"):
        to_barnabas(rows, schema=schema)
    with pytest.raises(OptionError, match="ids must be payload or headers, got nowhere"):
        to_barnabas(rows, value=["id"], schema=schema, ids="nowhere")
    with pytest.raises(OptionError, match="key_schema needs"):
        to_barnabas(rows, key_schema=schema)
    with pytest.raises(Exception, match="the value does not fit the Avro schema: id: 'x' is not long"):
        to_barnabas(rows, value=["id"], schema=schema).collect()
    with pytest.raises(ValueError, match="a registered key_schema goes with"):
        from_barnabas(rows, "a int", key_schema=schema)
    text = '{"type":"record","name":"Node","fields":[{"name":"next","type":["null","Node"],"default":null}]}'
    with pytest.raises(Exception, match="the record Node contains itself"):
        registered("node-value", url=registry_url, schema=text)
