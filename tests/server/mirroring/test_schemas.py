"""Schemas of the source's registry: a registry of the target serves them, refuses others, and takes over after the promotion."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.cli.connection import Connection
from barnabas.cli.resources import Change, Operation, alter_settings
from barnabas.protocol.values import ResourceType
from barnabas.testing import Broker
from tests.server.mirroring.clusters import create_link, promote, records, wait_equal, write
from tests.waiting import wait_until

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
OTHER = '{"type": "record", "name": "Other", "fields": [{"name": "id", "type": "long"}]}'
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def ask(url: str, body: object = None) -> tuple[int, Any]:
    """The status and the answer of a registry."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def register(url: str, subject: str, schema: str) -> tuple[int, Any]:
    return ask(f"{url}/subjects/{subject}/versions", {"schema": schema})


def test_schemas_are_served_by_the_target_and_written_after_the_promotion(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    with SchemaRegistryClient({"url": source.schema_registry_url}) as registry:
        write(theirs, "orders", [AvroSerializer(registry, ORDER)({"id": 42}, CONTEXT)])
    create_link(ours, theirs, sync_schemas_enabled="true")
    wait_equal(theirs, ours, "orders")
    wait_equal(theirs, ours, "_schemas")
    url = target.schema_registry_url
    (value,) = records(ours, "orders")
    with SchemaRegistryClient({"url": url}) as registry:
        assert AvroDeserializer(registry)(value, CONTEXT) == {"id": 42}
    status, refused = register(url, "other-value", OTHER)
    assert (status, refused["error_code"]) == (422, 42205)
    assert "the topic _schemas is a copy of the mirror link link" in refused["message"]
    assert register(url, "orders-value", ORDER)[0] == 200  # a producer may ask for the id of what exists
    status, later = register(source.schema_registry_url, "later-value", OTHER)
    assert status == 200
    names = (200, ["later-value", "orders-value"])
    wait_until(lambda: ask(f"{url}/subjects") == names, "a later schema did not follow", within_s=30)
    promote(ours, ["_schemas"])
    wait_until(lambda: register(url, "other-value", OTHER)[0] == 200, "the registry did not take over", within_s=30)
    status, new = register(url, "new-value", '"string"')
    assert status == 200
    assert new["id"] > later["id"]


def test_schemas_are_not_copied_without_being_asked_for(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    assert register(source.schema_registry_url, "orders-value", ORDER)[0] == 200
    write(theirs, "orders", ["x"])
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    assert register(target.schema_registry_url, "own-value", OTHER)[0] == 200


def test_a_registry_that_writes_stops_when_its_topic_becomes_a_copy(source: Broker, target: Broker) -> None:
    """As in a failback of the old site."""
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    url = target.schema_registry_url
    assert register(url, "orders-value", ORDER)[0] == 200
    create_link(ours, theirs, sync_schemas_enabled="true")
    settings = {"mirror.link": "link", "mirror.state": "comparing", "mirror.lost.topic": "_schemas.lost"}
    changes = [Change(key, Operation.SET, value) for key, value in settings.items()]
    with Connection(ours).wire() as wire:
        alter_settings(wire, ResourceType.TOPIC, "_schemas", changes, validate_only=False)
    wait_until(lambda: register(url, "other-value", OTHER)[0] == 422, "the registry still writes", within_s=60)
    assert register(url, "orders-value", ORDER)[0] == 200
    promote(ours, ["_schemas"], now=True)
    wait_until(lambda: register(url, "other-value", OTHER)[0] == 200, "the registry did not take over", within_s=60)
    assert ask(f"{url}/subjects")[1] == ["orders-value", "other-value"]
