"""A broker that stands alone serves while it reads what groups and transactions have written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.cluster.metadata.image import OFFSETS_TOPIC
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.server import coordinators
from barnabas.server.coordinators import Coordinators
from tests.server.in_process import TOPIC, running
from tests.waiting import until

GROUPS = [f"group-{number}" for number in range(12)]


async def test_records_come_and_go_while_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running([tmp_path], offsets_topic_num_partitions="5") as client:
        await client.create()
        for number, group in enumerate(GROUPS):
            assert await client.commit_offset(group, number) == 0
    may_read = asyncio.Event()

    async def waits(*_: object) -> None:
        await may_read.wait()

    monkeypatch.setattr(Coordinators, "_all_committed", waits)
    async with running([tmp_path], offsets_topic_num_partitions="5") as client:
        assert await client.produce(b"a") == 0
        assert (await client.fetch())[1] == [b"a"]
        answers = [await client.committed_offset(group) for group in GROUPS]
        assert answers == [(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)] * len(GROUPS)
        may_read.set()
        await until(lambda: len(client.broker.groups.shards) == 5)
        assert [await client.committed_offset(group) for group in GROUPS] == [(0, number) for number in range(len(GROUPS))]


async def test_what_is_read_in_no_time_is_there_for_the_first_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "LOADED_FIRST_S", 60)  # a busy machine needs more than the default
    async with running([tmp_path], offsets_topic_num_partitions="50") as client:
        await client.create()
        assert await client.commit_offset(GROUPS[0], 7) == 0
    async with running([tmp_path], offsets_topic_num_partitions="50") as client:
        assert len(client.broker.groups.shards) == 50
        assert await client.committed_offset(GROUPS[0]) == (0, 7)


async def test_a_broker_that_still_reads_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        assert await client.commit_offset(GROUPS[0], 7) == 0

    async def waits(*_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Coordinators, "_all_committed", waits)
        async with running([tmp_path]) as client:
            assert await client.committed_offset(GROUPS[0]) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    async with running([tmp_path]) as client:
        assert await client.committed_offset(GROUPS[0]) == (0, 7)


async def test_commands_do_not_wait_and_a_topic_deleted_meanwhile_leaves_no_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        await client.create(name="other")
        for name in (TOPIC, "other"):
            assert await client.commit_offset(GROUPS[0], 7, name) == 0
    may_read = asyncio.Event()

    async def waits(*_: object) -> None:
        await may_read.wait()

    monkeypatch.setattr(Coordinators, "_all_committed", waits)
    async with running([tmp_path]) as client:
        await client.delete("other")
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=OFFSETS_TOPIC, count=2, assignments=None)], timeout_ms=10_000
        )
        answer = await client.ask((37, 1), grown, CreatePartitionsResponse)
        assert [each.error_code for each in answer.results] == [0]
        may_read.set()
        await until(lambda: len(client.broker.groups.shards) == 2)
        assert list(client.broker.groups.committed_offsets()) == [(GROUPS[0], TOPIC, 0, 7)]
