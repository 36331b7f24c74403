"""confluent-kafka's serializers against a broker with the schema registry of barnabas beside it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.testing import Broker

TOPIC_RECORD_NAME = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"int"}]}'
OTHER = '{"type":"record","name":"Other","fields":[]}'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as client:
        yield client


@pytest.fixture
def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "enable.idempotence": True})


def create(broker: Broker, name: str, **config: str) -> str:
    settings = {"confluent.value.schema.validation": "true", **{key.replace("_", "."): text for key, text in config.items()}}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, 1, config=settings)]).values():
        made.result()
    return name


def outcome(producer: Producer, topic: str, value: bytes | None, **more: Any) -> int:
    """The error code of a delivery."""
    codes: list[int] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        codes.append(0 if error is None else int(error.code()))

    producer.produce(topic, value=value, on_delivery=delivered, **more)
    assert producer.flush(60) == 0
    return codes[0]


def serialized(registry: SchemaRegistryClient, topic: str, settings: dict[str, Any] | None = None) -> bytes:
    serializer = AvroSerializer(registry, ORDER, conf=settings or {})
    data: bytes = serializer({"id": 1}, SerializationContext(topic, MessageField.VALUE))
    return data


def test_what_serializers_write_passes_and_the_rest_does_not(
    broker: Broker, registry: SchemaRegistryClient, producer: Producer
) -> None:
    topic = create(broker, "orders")
    good = serialized(registry, topic)
    elsewhere = struct.pack(">bi", 0, registry.register_schema("elsewhere", Schema(OTHER, "AVRO")))
    assert outcome(producer, topic, good) == 0
    assert outcome(producer, topic, None, key=b"k") == 0
    assert outcome(producer, topic, elsewhere) == KafkaError.INVALID_RECORD
    assert outcome(producer, topic, struct.pack(">bi", 0, 99_999)) == KafkaError.INVALID_RECORD
    assert outcome(producer, topic, b'{"id": 1}') == KafkaError.INVALID_RECORD
    assert outcome(producer, topic, good) == 0


def test_ids_in_headers(broker: Broker, registry: SchemaRegistryClient, producer: Producer) -> None:
    topic = create(broker, "headed")
    headers: list[tuple[str, str | bytes | None]] = []
    serializer = AvroSerializer(registry, ORDER, conf={"schema.id.serializer": header_schema_id_serializer})
    data = serializer({"id": 1}, SerializationContext(topic, MessageField.VALUE, headers))
    assert [name for name, _ in headers] == ["__value_schema_id"]
    assert outcome(producer, topic, data, headers=headers) == 0
    assert outcome(producer, topic, data) == KafkaError.INVALID_RECORD
    assert outcome(producer, topic, data, headers=[("__value_schema_id", b"\1" + bytes(16))]) == KafkaError.INVALID_RECORD


def test_subjects_of_records(broker: Broker, registry: SchemaRegistryClient, producer: Producer) -> None:
    topic = create(broker, "mixed", confluent_value_subject_name_strategy=TOPIC_RECORD_NAME)
    by_topic = serialized(registry, "another")  # the same schema id, under the subject another-value
    assert outcome(producer, topic, by_topic) == KafkaError.INVALID_RECORD

    def strategy(context: SerializationContext, name: str) -> str:
        return f"{context.topic}-{name}"

    assert serialized(registry, topic, {"subject.name.strategy": strategy}) == by_topic
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    while (code := outcome(producer, topic, by_topic)) != 0:  # the broker caches the refusal for a short time
        assert code == KafkaError.INVALID_RECORD


def test_an_alias_stands_for_its_subject(broker: Broker, registry: SchemaRegistryClient, producer: Producer) -> None:
    topic = create(broker, "aliased")
    value = serialized(registry, "behind")
    registry._rest_client.put("config/aliased-value", body={"alias": "behind-value"})
    assert outcome(producer, topic, value) == 0


def test_settings_are_described(broker: Broker) -> None:
    from confluent_kafka.admin import ConfigResource

    topic = create(broker, "described")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (found,) = [each.result() for each in admin.describe_configs([resource]).values()]
    assert found["confluent.value.schema.validation"].value == "true"
    assert "confluent.key.schema.validation" not in found
    with pytest.raises(KafkaException) as refused:
        create(broker, "wrong", confluent_value_subject_name_strategy="Nope")
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_producers_wait_for_a_registry_that_is_down(broker: Broker) -> None:
    topic = create(broker, "late")
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as registry:
        value = serialized(registry, topic)
    assert broker._registry is not None
    broker._registry.close()
    broker._registry = None
    results: list[int] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        results.append(0 if error is None else int(error.code()))

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    producer.produce(topic, value=value, on_delivery=delivered)
    assert producer.flush(1) == 1, "it waits"
    assert "event=schema-registry-does-not-answer" in broker.log
    with SchemaRegistryClient({"url": broker.schema_registry_url}):
        assert producer.flush(60) == 0
    assert results == [0]
