"""Changes of the source beside records, which follow: settings of a topic, ACLs, quotas, schemas, offsets of a group without members.
A topic loses its records by their age."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from confluent_kafka import Producer

from barnabas.cli.connection import Connection
from barnabas.cli.resources import Change, Operation, alter_settings
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import EARLIEST, LATEST, NewTopic
from barnabas.protocol.values import ResourceType
from tests.differential.mirroring.load import COMMON, PLAIN
from tests.server.mirroring.acls import acls, allow, binding, forbid
from tests.server.mirroring.user_quotas import limit, quotas

SCHEMAS, AGED, IDLE_GROUP = "_schemas", "aged", "audit"
TOPICS = {
    SCHEMAS: {"cleanup.policy": "compact", "segment.ms": "1000"},
    AGED: {"retention.ms": "2000", "segment.ms": "500"},
}
CHANGED = ("max.message.bytes", "max.compaction.lag.ms")
RECORDS = 50  # in each round
LINK = {"sync_topic_acls_enabled": "true", "sync_client_quotas_enabled": "true", "sync_schemas_enabled": "true"}


class Declared:
    """The topics exist in the source as soon as this does."""

    def __init__(self, source: str, target: str, replicas: int) -> None:
        self._source, self._target = source, target
        with BlockingClient.to(source) as client:
            for topic, settings in TOPICS.items():
                client.ensure_topic(NewTopic(topic, 1, replicas, settings))

    partitions = tuple((topic, 0) for topic in TOPICS)

    def change(self, rng: random.Random, number: int) -> None:
        """Change each of them; nobody needs the link for it."""
        if number % 2:
            allow(self._source, binding(PLAIN, f"User:u{number}"))
        else:
            forbid(self._source, PLAIN)
            allow(self._source, binding(PLAIN, "User:everyone"))
        limit(self._source, f"u{number % 3}", rng.choice((None, 10_000_000 + number)))
        settings = [Change(key, Operation.DELETE, None) for key in CHANGED]
        settings[number % 2] = Change(CHANGED[number % 2], Operation.SET, str(2_000_000 + number))
        with Connection(self._source).wire() as wire:
            alter_settings(wire, ResourceType.TOPIC, PLAIN, settings, validate_only=False)
        self._produce(number)
        self._commit(rng)

    def _produce(self, number: int) -> None:
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": self._source, **COMMON, "enable.idempotence": True})

        def told(error: object, _: object) -> None:
            if error is not None:
                failures.append(error)

        for each in range(RECORDS):
            producer.produce(AGED, b"%d-%d" % (number, each), on_delivery=told)
        key = {"keytype": "SCHEMA", "subject": "orders-value", "version": number, "magic": 1}
        value = {"subject": "orders-value", "version": number, "id": number, "schema": '"string"', "deleted": False}
        producer.produce(SCHEMAS, json.dumps(value), key=json.dumps(key), on_delivery=told)
        left = producer.flush(60)
        assert not left, f"{left} records are not answered"
        assert not failures, f"a record was refused: {failures[0]}"

    def _commit(self, rng: random.Random) -> None:
        """Set the offsets of the idle group, forward or back."""
        with BlockingClient.to(self._source) as client:
            partitions = [(PLAIN, index) for index in (0, 1)]
            starts, ends = (client.list_offsets(dict.fromkeys(partitions, at)) for at in (EARLIEST, LATEST))
            client.commit_offsets(IDLE_GROUP, {each: rng.randint(starts[each].offset, ends[each].offset) for each in partitions})

    def differing(self) -> str:
        """The first change that has not followed yet; "" if all have."""
        return next(
            (f"{what} are {ours}, and {theirs} in the source" for what, theirs, ours in self._pairs() if theirs != ours), ""
        )

    def _pairs(self) -> Iterator[tuple[str, object, object]]:
        yield "ACLs", acls(self._source), acls(self._target)
        yield "quotas", quotas(self._source), quotas(self._target)
        with BlockingClient.to(self._source) as source, BlockingClient.to(self._target) as target:
            theirs, ours = (client.describe_topic_config(PLAIN, only_own=True) for client in (source, target))
            yield "settings", {key: theirs.get(key) for key in CHANGED}, {key: ours.get(key) for key in CHANGED}
            partitions = [(PLAIN, index) for index in (0, 1)]
            committed = [client.committed_offsets(IDLE_GROUP, partitions) for client in (source, target)]
            offsets = [{each: found[each].offset for each in partitions} for found in committed]
            yield f"offsets of {IDLE_GROUP}", offsets[0], offsets[1]
            last = [client.list_offsets(dict.fromkeys(self.partitions, LATEST)) for client in (source, target)]
            ends = [{each: found[each].offset for each in self.partitions} for found in last]
            yield "ends", ends[0], ends[1]
