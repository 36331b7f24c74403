"""The clients of the target: who makes the link, tries to write to copies, looks at groups, and promotes topics.

Their pauses are in the time of the simulation, which no clock counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from random import Random

from barnabas.client import operations
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.plans import Call
from barnabas.config.mirror_settings import MIRROR_STATE, OF_LINK
from barnabas.errors import BarnabasError, ErrorCode
from barnabas.mirror.promotion import promoted_settings
from barnabas.mirror.status import PREFIX, PartitionStatus, decode_partition
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.protocol.values import ResourceType
from barnabas.testing.simulation.admins import ask
from barnabas.testing.simulation.history import Register, TopicPartition, Violation
from barnabas.testing.simulation.loop import World
from barnabas.testing.simulation.mirroring.oracle import Oracle

LINK = "link"
SET, DELETE = 0, 1
AGAIN_S = 0.2
PROMOTING, PROMOTING_NOW, READY = "promoting", "promoting-now", "ready"


async def alter(client: AsyncClient, kind: ResourceType, name: str, settings: Mapping[str, str | None]) -> None:
    """Set settings, or remove them (None), until a broker has accepted it; raises Violation if one refuses it for good."""
    configs = [
        AlterableConfig(name=key, value=value, config_operation=DELETE if value is None else SET)
        for key, value in settings.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)]
    )
    while True:
        with suppress(BarnabasError):
            (answer,) = (await client.run(ask(request))).responses
            code = ErrorCode(answer.error_code)
            if not code:
                return
            if not code.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise Violation(f"{dict(settings)} of {name} was refused with {code.name}: {answer.error_message}")
        await asyncio.sleep(AGAIN_S)


async def link_status(client: AsyncClient, brokers: Iterable[int]) -> list[PartitionStatus] | None:
    """The status of copies from all brokers; None if one does not answer."""
    resource = DescribeConfigsResource(resource_type=ResourceType.LINK, resource_name=LINK, configuration_keys=None)
    found = []
    with suppress(BarnabasError):
        await client.run(operations.refresh(client.config, client.cluster, []))  # the addresses of the brokers
    for broker in brokers:
        try:
            answer = await client.request(Call(DescribeConfigsRequest(resources=[resource]), broker))
        except BarnabasError:
            return None
        if answer.results[0].error_code:
            return None
        found += [decode_partition(item.value) for item in answer.results[0].configs if item.name.startswith(PREFIX)]
    return found


async def promote(
    client: AsyncClient,
    brokers: Iterable[int],
    topic: str,
    partitions: int,
    told: Callable[[TopicPartition, int], None],
    *,
    now: bool,
) -> None:
    """Promote a topic as `barnabas mirror promote` does.

    Args:
        told: gets each partition with the end that it was ready with.
    """
    await alter(client, ResourceType.TOPIC, topic, {MIRROR_STATE: PROMOTING_NOW if now else PROMOTING})
    ready: dict[int, PartitionStatus] = {}
    while len(ready) < partitions:
        await asyncio.sleep(AGAIN_S)
        found = await link_status(client, brokers)
        ready = {each.partition: each for each in found or () if each.topic == topic and each.state == READY}
    for index, status in ready.items():
        told((topic, index), status.end_offset)
    settings = promoted_settings(
        list(ready.values()), spare_ids=0, spare_epochs=1
    )  # spare ids would hide that some are given twice
    await alter(client, ResourceType.TOPIC, topic, {**dict.fromkeys(sorted(OF_LINK)), **settings})
    found = None
    while found is None or any(each.topic == topic for each in found):
        await asyncio.sleep(AGAIN_S)
        found = await link_status(client, brokers)


async def intrude(
    world: World, client: AsyncClient, places: list[TopicPartition], is_over: Callable[[], bool], random: Random
) -> None:
    """Try to write to copies, as a client does that takes them for ordinary topics. The oracle finds a batch that gets in."""
    while not is_over():
        await asyncio.sleep(2.0 * random.random())
        batch = build_batch([Record(0, world.now_ms(), b"k", b"an intruder", ())], timestamp_ms=world.now_ms())
        with suppress(BarnabasError):
            await client.produce(*random.choice(places), batch)


async def watch_groups(
    client: AsyncClient, groups: Mapping[TopicPartition, Register], oracle: Oracle, is_over: Callable[[], bool]
) -> None:
    """Look at the offsets of groups in the target."""
    while not is_over():
        for key, group in groups.items():
            with suppress(BarnabasError):
                found = await client.committed_offsets(group.name, [key])
                oracle.check_group(group.name, key, found[key].offset)
            await asyncio.sleep(0.1)


async def wait_for_groups(
    source: AsyncClient, target: AsyncClient, groups: Mapping[TopicPartition, Register], oracle: Oracle
) -> None:
    """Until the target has the offsets of the source."""
    for key, group in groups.items():
        while True:
            with suppress(BarnabasError):
                theirs = (await source.committed_offsets(group.name, [key]))[key].offset
                ours = (await target.committed_offsets(group.name, [key]))[key].offset
                oracle.check_group(group.name, key, ours)
                if theirs < 0 or ours == min(theirs, oracle.partitions[key].mark):
                    break
            await asyncio.sleep(AGAIN_S)
