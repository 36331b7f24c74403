"""Programs on confluent-kafka's serialisers, in the form of Confluent's documentation: they register, find and read schemas here.

Only the addresses are ours. Each program sends records through the broker and reads them back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, DeserializingConsumer, Message, Producer, SerializingProducer
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AsyncAvroSerializer, AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, StringDeserializer, StringSerializer
from google.protobuf.message_factory import GetMessageClass

from barnabas.schemas.errors import CannotEncode
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer
from barnabas.testing import Broker

AVRO = json.dumps({
    "type": "record", "name": "User", "namespace": "confluent.io.examples.serialization.avro", "fields": [
        {"name": "name", "type": "string"},
        {"name": "favorite_number", "type": "long"},
        {"name": "favorite_color", "type": "string"},
    ],
})  # fmt: skip
JSON = json.dumps({
    "$schema": "http://json-schema.org/draft-07/schema#", "title": "User", "description": "A user", "type": "object",
    "properties": {
        "name": {"description": "a name", "type": "string"},
        "favorite_number": {"description": "a number", "type": "number", "exclusiveMinimum": 0},
        "favorite_color": {"description": "a colour", "type": "string"},
    },
    "required": ["name", "favorite_number", "favorite_color"],
})  # fmt: skip
PROTO = 'syntax = "proto3"; message User { string name = 1; int64 favorite_number = 2; string favorite_color = 3; }'


class User:
    def __init__(self, name: str, favorite_number: int, favorite_color: str) -> None:
        self.name, self.favorite_number, self.favorite_color = name, favorite_number, favorite_color


def user_to_dict(user: User, ctx: SerializationContext | None) -> dict[str, Any]:
    return {"name": user.name, "favorite_number": user.favorite_number, "favorite_color": user.favorite_color}


def dict_to_user(found: dict[str, Any], ctx: SerializationContext | None) -> User:
    return User(found["name"], found["favorite_number"], found["favorite_color"])


@pytest.fixture
def registry(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as registry:
        yield registry


def poll(consumer: Any) -> Message:
    for _ in range(100):
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None, message.error()
            found: Message = message
            return found
    raise AssertionError("no message came")


def sent_and_read(broker: Broker, topic: str, serializer: Any, deserializer: Any, value: Any) -> Any:
    string_serializer = StringSerializer("utf_8")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    context = SerializationContext(topic, MessageField.VALUE)
    producer.produce(topic=topic, key=string_serializer(str(uuid4())), value=serializer(value, context))
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = poll(consumer)
        return deserializer(message.value(), SerializationContext(topic, MessageField.VALUE))
    finally:
        consumer.close()


def test_avro(broker: Broker, registry: SchemaRegistryClient) -> None:
    serializer = AvroSerializer(registry, AVRO, user_to_dict)
    deserializer = AvroDeserializer(registry, AVRO, dict_to_user)
    user = sent_and_read(broker, "example_serde_avro", serializer, deserializer, User("Ada", 7, "blue"))
    assert user_to_dict(user, None) == {"name": "Ada", "favorite_number": 7, "favorite_color": "blue"}
    assert registry.get_latest_version("example_serde_avro-value").version == 1


def test_json(broker: Broker, registry: SchemaRegistryClient) -> None:
    serializer = JSONSerializer(JSON, registry, user_to_dict)
    deserializer = JSONDeserializer(JSON, from_dict=dict_to_user)
    user = sent_and_read(broker, "example_serde_json", serializer, deserializer, User("Ada", 7, "blue"))
    assert user_to_dict(user, None) == {"name": "Ada", "favorite_number": 7, "favorite_color": "blue"}
    with pytest.raises(Exception, match="less than or equal to the minimum"):
        serializer(User("Ada", -1, "blue"), SerializationContext("example_serde_json", MessageField.VALUE))


def test_protobuf(broker: Broker, registry: SchemaRegistryClient, client: RegistryClient) -> None:
    kind = message_class(client, PROTO)
    serializer = ProtobufSerializer(kind, registry, {"use.deprecated.format": False})
    deserializer = ProtobufDeserializer(kind, {"use.deprecated.format": False})
    sent = kind(name="Ada", favorite_number=7, favorite_color="blue")
    assert sent_and_read(broker, "example_serde_protobuf", serializer, deserializer, sent) == sent
    assert registry.get_latest_version("example_serde_protobuf-value").schema.schema_type == "PROTOBUF"


def message_class(client: RegistryClient, text: str, **more: Any) -> Any:
    codec: Any = Serializer(client, subject=f"class-{uuid4()}", schema=text, schema_type="PROTOBUF", **more).codec
    return GetMessageClass(codec.descriptor)


def test_serialisers_in_the_producer_and_consumer(broker: Broker, registry: SchemaRegistryClient) -> None:
    topic = "serializing"
    producer = SerializingProducer({
        "bootstrap.servers": broker.bootstrap_servers,
        "key.serializer": StringSerializer("utf_8"),
        "value.serializer": AvroSerializer(registry, AVRO, user_to_dict),
    })  # fmt: skip
    producer.produce(topic=topic, key="k", value=User("Ada", 7, "blue"))
    assert producer.flush(30) == 0
    consumer = DeserializingConsumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest",
        "key.deserializer": StringDeserializer("utf_8"),
        "value.deserializer": AvroDeserializer(registry, from_dict=dict_to_user),
    })  # fmt: skip
    consumer.subscribe([topic])
    try:
        message: Any = poll(consumer)
        assert (message.key(), message.value().name) == ("k", "Ada")
    finally:
        consumer.close()


def test_the_latest_version_without_registration(registry: SchemaRegistryClient) -> None:
    topic = "latest"
    context = SerializationContext(topic, MessageField.VALUE)
    value = {"name": "Ada", "favorite_number": 7, "favorite_color": "blue"}
    with pytest.raises(SchemaRegistryError, match="Subject 'latest-value' not found"):
        AvroSerializer(registry, AVRO, conf={"auto.register.schemas": False})(value, context)
    first = registry.register_schema("latest-value", Schema(AVRO, "AVRO"))
    found = AvroSerializer(registry, AVRO, conf={"auto.register.schemas": False})(value, context)
    assert found is not None
    assert found[:5] == b"\0" + first.to_bytes(4, "big")
    wider = json.loads(AVRO)
    wider["fields"].append({"name": "email", "type": ["null", "string"], "default": None})
    second = registry.register_schema("latest-value", Schema(json.dumps(wider), "AVRO"))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    found = AvroSerializer(registry, AVRO, conf=conf)(value, context)
    assert found is not None
    assert found[:5] == b"\0" + second.to_bytes(4, "big")
    assert AvroDeserializer(registry)(found, context) == {**value, "email": None}
    older = AvroSerializer(registry, AVRO, conf={"auto.register.schemas": False})(value, context)
    assert AvroDeserializer(registry, conf={"use.latest.version": True})(older, context) == {**value, "email": None}


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (topic_subject_name_strategy, "{topic}-value"),
        (record_subject_name_strategy, "confluent.io.examples.serialization.avro.User"),
        (topic_record_subject_name_strategy, "{topic}-confluent.io.examples.serialization.avro.User"),
    ],
)
def test_names_of_subjects(registry: SchemaRegistryClient, strategy: Callable[..., Any], subject: str) -> None:
    topic = f"named-{uuid4()}"
    serializer = AvroSerializer(registry, AVRO, user_to_dict, {"subject.name.strategy": strategy, "normalize.schemas": True})
    serializer(User("Ada", 7, "blue"), SerializationContext(topic, MessageField.VALUE))
    assert registry.get_latest_version(subject.format(topic=topic)).schema.schema_type == "AVRO"


def test_references_in_json_and_protobuf(registry: SchemaRegistryClient, registry_url: str, client: RegistryClient) -> None:
    registry.register_schema("colour.json", Schema('{"type": "string", "enum": ["blue"]}', "JSON"))
    referring = json.dumps({"title": "Car", "type": "object", "properties": {"colour": {"$ref": "colour.json"}}})
    schema = Schema(referring, "JSON", [SchemaReference("colour.json", "colour.json", 1)])
    context = SerializationContext("cars", MessageField.VALUE)
    data = JSONSerializer(schema, registry)({"colour": "blue"}, context)
    assert JSONDeserializer(schema, schema_registry_client=registry)(data, context) == {"colour": "blue"}

    registry.register_schema("wheel.proto", Schema('syntax = "proto3"; message Wheel { int32 size = 1; }', "PROTOBUF"))
    kind = message_class(
        client, 'syntax = "proto3"; import "wheel.proto"; message Cart { repeated Wheel wheels = 1; }',
        references=[{"name": "wheel.proto", "subject": "wheel.proto", "version": 1}],
    )  # fmt: skip
    cart = kind()
    cart.wheels.add(size=3)
    context = SerializationContext("carts", MessageField.VALUE)
    data = ProtobufSerializer(kind, registry, {"use.deprecated.format": False})(cart, context)  # also registers the imports
    # the client that registered caches the text, and takes it for a descriptor
    with SchemaRegistryClient({"url": registry_url}) as reading:
        assert ProtobufDeserializer(kind, {"use.deprecated.format": False}, reading)(data, context) == cart
    (reference,) = registry.get_latest_version("carts-value").schema.references or []
    assert (reference.name, reference.subject) == ("wheel.proto", "wheel.proto")


def test_the_asynchronous_client(registry_url: str) -> None:
    async def sent() -> Any:
        async with AsyncSchemaRegistryClient({"url": registry_url}) as registry:
            serializer = await AsyncAvroSerializer(registry, AVRO, user_to_dict)
            return await serializer(User("Ada", 7, "blue"), SerializationContext("asynchronous", MessageField.VALUE))

    with SchemaRegistryClient({"url": registry_url}) as registry:
        found = AvroDeserializer(registry)(asyncio.run(sent()), SerializationContext("asynchronous", MessageField.VALUE))
    assert isinstance(found, dict)
    assert found["name"] == "Ada"


def test_metadata_chooses_a_version(registry: SchemaRegistryClient, client: RegistryClient) -> None:
    for number, stage in ((1, "test"), (2, "production")):
        schema = json.dumps({**json.loads(AVRO), "doc": stage})
        body = {"schema": schema, "metadata": {"properties": {"stage": stage}}}
        assert client.post("subjects", "staged-value", "versions", body=body)["version"] == number
    conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"stage": "test"}}
    data = AvroSerializer(registry, AVRO, user_to_dict, conf)(
        User("Ada", 7, "b"), SerializationContext("staged", MessageField.VALUE)
    )
    assert data is not None
    assert int.from_bytes(data[1:5], "big") == client.get("subjects", "staged-value", "versions", 1)["id"]


@pytest.mark.parametrize("ids", ["payload", "headers"])
def test_our_serialisers_in_their_producer_and_consumer(broker: Broker, client: RegistryClient, ids: str) -> None:
    topic = f"ours-{ids}"
    serializer = Serializer(client, topic, schema=AVRO, ids=ids)
    producer = SerializingProducer({"bootstrap.servers": broker.bootstrap_servers, "value.serializer": serializer})
    value = {"name": "Ada", "favorite_number": 7, "favorite_color": "blue"}
    producer.produce(topic=topic, value=value, headers=[("other", b"x")])
    assert producer.flush(30) == 0
    if ids == "headers":
        context = SerializationContext(topic, MessageField.VALUE, {})
        serializer(value, context)
        assert list(context.headers or {}) == ["__value_schema_id"]
        with pytest.raises(CannotEncode, match="ids in headers need a record with headers"):
            serializer(value)
    consumer = DeserializingConsumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest",
        "value.deserializer": Deserializer(client, reader=AVRO.replace("long", "double")),
    })  # fmt: skip
    consumer.subscribe([topic])
    try:
        message: Any = poll(consumer)
        assert message.value() == {**value, "favorite_number": 7.0}
        assert [name for name, _ in message.headers()] == ["other", *(name for name, _ in serializer.headers)]
    finally:
        consumer.close()
