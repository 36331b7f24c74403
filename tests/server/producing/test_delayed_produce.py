"""A produce request that waits for several partitions: each gets the answer that is its own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.protocol.produce import PartitionAnswer
from barnabas.server.producing.delayed import DelayedProduce
from barnabas.server.request_order import Effect

VERSION = 8
HEAD_BYTES = 8
Settle = Any


class WaitingPartition:
    """A partition whose high watermark moves when the test says so."""

    topic, topic_id = "t", UUID(int=1)

    def __init__(self, index: int) -> None:
        self.index = index
        self.settle: Settle = None

    def wait_acknowledged(self, _last_offset: int, done: Settle, *, acks_all: bool) -> None:
        assert acks_all
        self.settle = done


class Answered:
    def __init__(self) -> None:
        self.mute = None
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def expect_answer(self, _effect: Effect) -> object:
        return object()

    def complete(self, _place: object, parts: list[bytes], *, among_many: bool) -> None:
        self.done.set_result(bytes(parts[0]))

    async def codes(self) -> list[int]:
        response = decode(ProduceResponse, VERSION, await self.done, HEAD_BYTES)
        return [p.error_code for p in response.responses[0].partition_responses]


def wait_for(timeout_ms: int) -> tuple[list[WaitingPartition], Answered]:
    partitions, connection = [WaitingPartition(0), WaitingPartition(1)], Answered()
    answers = [(b"t", [PartitionAnswer(p.index, 0, 5, -1, 0) for p in partitions])]
    broker = cast(Any, SimpleNamespace(loop=asyncio.get_running_loop()))
    waiting = cast(Any, [(p, 5) for p in partitions])
    DelayedProduce(broker, cast(Any, connection), VERSION, 1, answers, waiting, timeout_ms, acks_all=True)
    return partitions, connection


async def test_only_the_partition_that_was_not_committed_has_timed_out() -> None:
    partitions, connection = wait_for(timeout_ms=20)
    partitions[0].settle(None)
    assert await connection.codes() == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    partitions[1].settle(None)  # after the answer: no effect


async def test_the_answer_comes_with_the_last_partition_and_says_what_failed() -> None:
    partitions, connection = wait_for(timeout_ms=60_000)
    partitions[1].settle(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert not connection.done.done()
    partitions[0].settle(None)
    assert await connection.codes() == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
