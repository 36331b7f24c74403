"""confluent-kafka's serialisers with rules of CEL and JSONata: registry_rules.py URL PREFIX. Prints "ok NAME" for every scenario."""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

ID, CARD = {"name": "id", "type": "long"}, {"name": "card", "type": "string"}
ORDER = {"type": "record", "name": "Order", "fields": [ID, CARD]}
TAGGED = {**ORDER, "fields": [ID, {**CARD, "confluent:tags": ["PII"]}]}
RENAME = "$merge([$sift($, function($v, $k) {$k != 'FROM'}), {'TO': $.'FROM'}])"
LATEST = {"auto.register.schemas": False, "use.latest.version": True}


def rule(name: str, kind: RuleKind, mode: RuleMode, type_: str, expr: str, tags: list[str] | None = None) -> Rule:
    return Rule(name, "", kind, mode, type_, tags, None, expr, None, None, False)


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def condition(client: SchemaRegistryClient, topic: str) -> None:
    rules = RuleSet(None, [rule("positive", RuleKind.CONDITION, RuleMode.WRITE, "CEL", "message.id > 0")])
    client.register_schema(f"{topic}-value", Schema(json.dumps(ORDER), "AVRO", [], None, rules))
    write = AvroSerializer(client, None, conf=LATEST)
    read = AvroDeserializer(client)
    value = {"id": 1, "card": "c"}
    assert read(write(value, context(topic)), context(topic)) == value
    try:
        write({"id": -1, "card": "c"}, context(topic))
    except SerializationError:
        return
    raise AssertionError("the rule did not refuse")


def transform_of_tagged_fields(client: SchemaRegistryClient, topic: str) -> None:
    rules = RuleSet(
        None, [rule("mask", RuleKind.TRANSFORM, RuleMode.WRITE, "CEL_FIELD", "typeName == 'STRING' ; '***'", ["PII"])]
    )
    client.register_schema(f"{topic}-value", Schema(json.dumps(TAGGED), "AVRO", [], None, rules))
    found: Any = AvroDeserializer(client)(
        AvroSerializer(client, None, conf=LATEST)({"id": 1, "card": "1234"}, context(topic)), context(topic)
    )
    assert found == {"id": 1, "card": "***"}


def migration(client: SchemaRegistryClient, topic: str) -> None:
    subject = f"{topic}-value"
    client.set_config(subject, ServerConfig(compatibility_group="major"))
    old = {"type": "object", "properties": {"size": {"type": "number"}}}
    new = {"type": "object", "properties": {"height": {"type": "number"}}}
    first = Metadata(None, MetadataProperties({"major": "1"}), None)
    second = Metadata(None, MetadataProperties({"major": "2"}), None)
    client.register_schema(subject, Schema(json.dumps(old), "JSON", [], first, None))
    up, down = (
        rule(name, RuleKind.TRANSFORM, mode, "JSONATA", RENAME.replace("FROM", before).replace("TO", after))
        for name, mode, before, after in (
            ("up", RuleMode.UPGRADE, "size", "height"),
            ("down", RuleMode.DOWNGRADE, "height", "size"),
        )
    )
    client.register_schema(subject, Schema(json.dumps(new), "JSON", [], second, RuleSet([up, down], None)))
    one, two = ({"auto.register.schemas": False, "use.latest.with.metadata": {"major": each}} for each in "12")
    write = JSONSerializer(json.dumps(old), client, conf=one)
    data = write({"size": 7}, context(topic))
    read: Any = JSONDeserializer(
        None, schema_registry_client=client, conf={"use.latest.with.metadata": two["use.latest.with.metadata"]}
    )
    assert read(data, context(topic)) == {"height": 7}


def main() -> None:
    url, prefix = sys.argv[1:]
    for executor in (CelExecutor, CelFieldExecutor, JsonataExecutor):
        executor.register()  # type: ignore[no-untyped-call]
    for run in (condition, transform_of_tagged_fields, migration):
        run(SchemaRegistryClient({"url": url}), f"{prefix}-{run.__name__}")
        print("ok", run.__name__)


if __name__ == "__main__":
    main()
