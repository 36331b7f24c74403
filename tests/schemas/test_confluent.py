"""Our serialisers and confluent-kafka's read each other, with ids in the payload and in headers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer

AVRO = json.dumps({
    "type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
})  # fmt: skip
ORDER = {"id": 7, "price": Decimal("1.50"), "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, datetime.UTC), "note": "é"}
JSON = json.dumps({"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}}, "required": ["id"]})
PROTO = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
message Other { string x = 1; }
message Order { message Line { int32 n = 1; } int64 id = 1; google.protobuf.Timestamp at = 2; repeated Line lines = 3; }
"""


@pytest.fixture
def theirs(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client


def context(topic: str, headers: list[Any] | None = None, *, is_key: bool = False) -> SerializationContext:
    return SerializationContext(topic, MessageField.KEY if is_key else MessageField.VALUE, [] if headers is None else headers)


def listed(sent: SerializationContext) -> list[Any]:
    assert isinstance(sent.headers, list)
    return sent.headers


IN_HEADERS = {"schema.id.serializer": header_schema_id_serializer}
forms = pytest.mark.parametrize("ids", ["payload", "headers"])
keys = pytest.mark.parametrize("is_key", [False, True])


@forms
@keys
def test_avro(client: RegistryClient, theirs: SchemaRegistryClient, ids: str, is_key: bool) -> None:
    topic = "avro"
    ours = Serializer(client, topic, schema=AVRO, ids=ids, is_key=is_key)
    data = ours.encode(ORDER)
    assert AvroDeserializer(theirs)(data, context(topic, ours.headers, is_key=is_key)) == ORDER
    sent = context(topic, is_key=is_key)
    payload = AvroSerializer(theirs, AVRO, conf=IN_HEADERS if ids == "headers" else {})(ORDER, sent)
    assert payload == data
    assert [(name, bytes(value)) for name, value in listed(sent)] == ours.headers
    assert Deserializer(client, is_key=is_key).decode(payload, listed(sent)) == ORDER


@forms
def test_json(client: RegistryClient, theirs: SchemaRegistryClient, ids: str) -> None:
    ours = Serializer(client, "json", schema=JSON, schema_type="JSON", ids=ids)
    data = ours.encode({"id": 7})
    assert JSONDeserializer(JSON, schema_registry_client=theirs)(data, context("json", ours.headers)) == {"id": 7}
    sent = context("json")
    payload = JSONSerializer(JSON, theirs, conf=IN_HEADERS if ids == "headers" else {})({"id": 7}, sent)
    assert [(name, bytes(value)) for name, value in listed(sent)] == ours.headers
    assert Deserializer(client).decode(payload, listed(sent)) == {"id": 7}


@forms
@pytest.mark.parametrize("message", ["shop.Other", "shop.Order", "shop.Order.Line"])
def test_protobuf(client: RegistryClient, theirs: SchemaRegistryClient, ids: str, message: str) -> None:
    value = {
        "shop.Other": {"x": "y"},
        "shop.Order": {"id": "7", "at": "2026-01-02T03:04:05Z", "lines": [{"n": 1}]},
        "shop.Order.Line": {"n": 3},
    }
    ours = Serializer(client, "proto", schema=PROTO, schema_type="PROTOBUF", message=message, ids=ids)
    data = ours.encode_json(value[message])
    codec: Any = ours.codec
    kind = GetMessageClass(codec.descriptor)
    read = ProtobufDeserializer(kind, {}, theirs)(data, context("proto", ours.headers))
    assert ours.codec.to_json(read) == value[message]
    sent = context("proto")
    conf = {"auto.register.schemas": False, "use.latest.version": True, "use.deprecated.format": False}
    theirs_serializer = ProtobufSerializer(kind, theirs, {**conf, **(IN_HEADERS if ids == "headers" else {})})
    # with use.latest.version, Confluent's serializer looks for a nested message at the top level
    if message != "shop.Order.Line":
        assert theirs_serializer(read, sent) == data
        assert [(name, bytes(value)) for name, value in listed(sent)] == ours.headers
    sent = context("registered-by-them")
    registering = ProtobufSerializer(kind, theirs, {"use.deprecated.format": False, **(IN_HEADERS if ids == "headers" else {})})
    assert Deserializer(client).decode_json(registering(read, sent), listed(sent)) == value[message]


def test_references(client: RegistryClient, theirs: SchemaRegistryClient) -> None:
    address = '{"type":"record","name":"Address","namespace":"shop","fields":[{"name":"street","type":"string"}]}'
    fields = [{"name": "home", "type": "Address"}, {"name": "work", "type": "shop.Address"}]
    person = json.dumps(["null", {"type": "record", "name": "Person", "namespace": "shop", "fields": fields}])
    client.post("subjects", "address", "versions", body={"schema": address})
    reference: dict[str, Any] = {"name": "shop.Address", "subject": "address", "version": 1}
    value = {"home": {"street": "a"}, "work": {"street": "b"}}
    data = Serializer(client, "people", schema=person, references=[reference]).encode(value)
    assert AvroDeserializer(theirs)(data, context("people")) == value
    named = Schema(person, "AVRO", [SchemaReference(**reference)])
    assert AvroSerializer(theirs, named)(value, context("people")) == data
    assert Deserializer(client).decode(data) == value

    client.post(
        "subjects",
        "a.proto",
        "versions",
        body={"schema": 'syntax = "proto3"; message A { string s = 1; }', "schemaType": "PROTOBUF"},
    )
    text = 'syntax = "proto3"; import "a.proto"; message B { A a = 1; }'
    to_a = {"name": "a.proto", "subject": "a.proto", "version": 1}
    serializer = Serializer(client, "b", schema=text, schema_type="PROTOBUF", references=[to_a])
    assert Deserializer(client).decode_json(serializer.encode_json({"a": {"s": "x"}})) == {"a": {"s": "x"}}

    client.post("subjects", "id.json", "versions", body={"schema": '{"type":"integer"}', "schemaType": "JSON"})
    to_id = {"name": "id.json", "subject": "id.json", "version": 1}
    schema = '{"type":"object","properties":{"id":{"$ref":"id.json"}}}'
    by_json = Serializer(client, "j", schema=schema, schema_type="JSON", references=[to_id])
    assert Deserializer(client).decode(by_json.encode({"id": 1})) == {"id": 1}
    with pytest.raises(Exception, match="/id: "):
        by_json.encode({"id": "x"})


def test_bytes_without_a_length(client: RegistryClient, theirs: SchemaRegistryClient) -> None:
    data = Serializer(client, "raw", schema='"bytes"').encode(b"abc")
    assert data is not None
    assert data.endswith(b"abc")
    assert len(data) == 8
    assert AvroSerializer(theirs, '"bytes"')(b"abc", context("raw")) == data
    assert Deserializer(client).decode(data) == b"abc"
