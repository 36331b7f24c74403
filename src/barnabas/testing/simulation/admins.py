"""The clients that make changes while others produce and consume: settings, log start offsets, directories of logs, whole
topics.

Each of them is one task. It sends a request, gets an answer or none, and tells the checker which states are possible after
that. It reports a request before it sends it, because the broker may execute it without an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from barnabas.client.errors import ClientError
from barnabas.client.plans import Plan, call
from barnabas.client.results import NewTopic
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.values import ResourceType
from barnabas.testing.simulation.clients import NOT_KNOWN_EVERYWHERE, Producer, Producing
from barnabas.testing.simulation.history import PartitionHistory, Register, TopicPartition, Violation

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.client.asynchronous import AsyncClient
    from barnabas.testing.simulation.loop import World

REFUSED_DELETIONS = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.POLICY_VIOLATION)
NOT_NOW = (ErrorCode.INVALID_REPLICATION_FACTOR,)  # fewer brokers run than the topic needs for its replicas
CHOICES: Mapping[str, tuple[str, ...]] = {
    "retention.ms": ("-1", "2000", "6000"),
    "retention.bytes": ("-1", "3000", "20000"),
    "segment.ms": ("200", "1500", "100000"),
    "compression.type": ("producer", "uncompressed", "lz4", "zstd"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": ("0.01", "0.5"),
    "index.interval.bytes": ("0", "1000", "4096"),
}


class Admin(Struct):
    """The common base."""

    world: World
    client: AsyncClient
    histories: dict[TopicPartition, PartitionHistory]
    lasting: list[TopicPartition]  # partitions that no admin deletes
    pause_s: float
    is_over: Callable[[], bool]
    random: Random

    async def pause(self) -> None:
        await asyncio.sleep(self.pause_s * (0.2 + self.random.random()))


async def delete_records(admin: Admin) -> None:
    """Move the log start offsets with DeleteRecords."""
    while not admin.is_over():
        await admin.pause()
        key = admin.random.choice(admin.lasting)
        history = admin.histories[key]
        if history.compacted or history.high_watermark <= history.log_start:
            continue
        offset = admin.random.randint(history.log_start, history.high_watermark)
        cuts = history.power_cuts
        history.deletable = max(history.deletable, offset)
        try:
            await admin.client.delete_records({key: offset})
        except KafkaError as error:
            if error.code not in REFUSED_DELETIONS and not (history.replicated and error.code in NOT_KNOWN_EVERYWHERE):
                raise Violation(f"{history.name}: deletion below {offset} was refused with {error.code.name}") from error
        except ClientError:
            continue
        else:
            if cuts == history.power_cuts:
                history.deleted = max(history.deleted, offset)


async def tune(admin: Admin, settings: dict[tuple[str, str], Register], choices: Mapping[str, tuple[str, ...]] = CHOICES) -> None:
    """Change the settings of topics."""
    while not admin.is_over():
        await admin.pause()
        topic, _ = admin.random.choice(admin.lasting)
        name = admin.random.choice(sorted(choices))
        value = admin.random.choice(choices[name])
        for (of, _), history in admin.histories.items():
            if of == topic:
                _note(history, name, int(value) if name.startswith("retention") else 0)
        number = settings[topic, name].asking(value)
        item = AlterableConfig(name=name, value=value)
        resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configs=[item])
        try:
            answer = await admin.client.run(ask(IncrementalAlterConfigsRequest(resources=[resource])))
        except BarnabasError:
            continue
        code = ErrorCode(answer.responses[0].error_code)
        if code.retriable:
            continue
        if code:
            raise Violation(f"{name}={value} for {topic} was refused with {answer.responses[0].error_message}")
        settings[topic, name].told(number)


def _note(history: PartitionHistory, name: str, value: int) -> None:
    if name == "retention.ms" and value >= 0:
        history.retention_ms = value if history.retention_ms < 0 else min(value, history.retention_ms)
    elif name == "retention.bytes" and value >= 0:
        history.retention_bytes = value if history.retention_bytes < 0 else min(value, history.retention_bytes)


async def move(admin: Admin, directories: list[str]) -> None:
    """Move logs from one log directory to another."""
    while not admin.is_over():
        await admin.pause()
        topic, partition = admin.random.choice(sorted(admin.histories))
        path = admin.random.choice(directories)
        item = AlterReplicaLogDirTopic(name=topic, partitions=[partition])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[item])])
        try:
            answer = await admin.client.run(ask(request))
        except BarnabasError:
            continue
        code = ErrorCode(answer.results[0].partitions[0].error_code)
        if code and not code.retriable:
            raise Violation(f"the move of {topic}-{partition} to {path} was refused with {code.name}")


async def churn(
    admin: Admin,
    topic: str,
    configs: dict[str, str],
    how: Producing,
    make: Callable[[str], PartitionHistory],
    *,
    replicas: int = 1,
) -> None:
    """Create a topic, write to it, delete it, and repeat with the same name: no record of one topic may be in the next."""
    generation = 0
    key = topic, 0
    ids: set[UUID] = set()
    while not admin.is_over():
        generation += 1
        await until_done(
            lambda: admin.client.create_topics([NewTopic(topic, 1, replicas, configs)]), ErrorCode.TOPIC_ALREADY_EXISTS
        )
        history = admin.histories[key] = make(f"{topic}.{generation}")
        topic_id = await _id_of_next(admin.client, topic, ids)
        ids.add(topic_id)
        producer = Producer(admin.world, admin.client, f"c{generation}", topic, 0, history, how, topic_id=topic_id)
        await producer.run()
        await admin.pause()
        if admin.random.random() < 0.2:
            return
        del admin.histories[key]
        await until_done(lambda: admin.client.delete_topics([topic]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def _id_of_next(client: AsyncClient, topic: str, known: set[UUID]) -> UUID:
    """The id of the topic that has the name now. A broker may still answer with the id of an earlier topic, which is in
    `known`."""
    while True:
        with suppress(BarnabasError):
            found = (await client.topics_by_name([topic])).get(topic)
            if found is not None and found.topic_id not in known:
                return found.topic_id
        await asyncio.sleep(0.1)


async def until_done(ask: Callable[[], Any], done_before: ErrorCode) -> None:
    """Repeat `ask` until the change is done, by this attempt or by an earlier one without an answer."""
    while True:
        try:
            await ask()
        except KafkaError as error:
            if error.code is done_before:
                return
            if not error.code.retriable and error.code not in NOT_NOW:
                raise Violation(f"a topic could not be made or deleted: {error}") from error
        except BarnabasError:
            pass
        else:
            return
        await asyncio.sleep(0.1)


def ask(request: Any) -> Plan[Any]:
    """A plan that sends the request to any broker once and returns the response."""
    return (yield from call(request))
