"""A follower that asks again before an answer is there: it drops that one, and misses nothing of what it said."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from barnabas.protocol.codec import decode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.server.cluster.in_process import make_executor, running
from tests.server.wire import Line, framed
from tests.waiting import WITHIN_S

FETCH = (1, 12)
RECORDS = 3


class HeldThreads(ThreadPoolExecutor):
    """A thread that waits with its work until it is let go."""

    def __init__(self) -> None:
        super().__init__(1)
        self.begun: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.go_on = threading.Event()

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        def work() -> Any:
            self.begun.put(None)
            assert self.go_on.wait(WITHIN_S)
            return function(*arguments, **named)

        return super().submit(work)


def fetch(replica: int, epoch: int, offset: int | None, *, session_id: int = 0, wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset or 0, partition_max_bytes=2**20)
    topics = [] if offset is None else [FetchTopic(topic="t", partitions=[partition])]
    return FetchRequest(
        replica_id=replica, max_wait_ms=wait_ms, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics
    )


def marks(answer: FetchResponse) -> list[int]:
    return [each.high_watermark for topic in answer.responses for each in topic.partitions]


def ask_twice(line: Line, held: HeldThreads, replica: int) -> list[int]:
    """The high watermarks in the answer to the second of two requests, of which the first is late."""
    session_id = line.ask(FETCH, fetch(replica, 0, RECORDS), FetchResponse).session_id
    first = framed(FETCH, fetch(replica, 1, 0, session_id=session_id))
    second = framed(FETCH, fetch(replica, 2, RECORDS, session_id=session_id, wait_ms=100))
    line.socket.sendall(first + second)  # the broker takes both in one turn of the loop
    held.begun.get(timeout=WITHIN_S)
    held.go_on.set()
    line.receive()
    return marks(decode(FetchResponse, FETCH[1], line.receive(), 5))


async def test_a_high_watermark_in_an_answer_that_came_too_late_is_told_again(tmp_path: Path) -> None:
    held = HeldThreads()

    def executors(count: int, name: str) -> Executor:
        return held if name == "barnabas-reading" else make_executor(count, name)

    async with running(tmp_path, count=2) as cluster:
        topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=2)]
        await cluster.clients[1].ask((19, 7), CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
        (state,) = cluster.controller.metadata.topics["t"].partitions
        leader, follower = state.leader, next(n for n in state.replicas if n != state.leader)
        await cluster.stop(follower)
        for n in range(RECORDS):
            assert await cluster.clients[leader].produce(b"%d" % n) == 0
        await cluster.stop(leader)
        cluster.make_executor = executors
        await cluster.start(leader)  # the broker has not verified the batches on its disk yet
        await cluster.until(lambda: cluster.brokers[leader].metadata.topics["t"].partitions[0].leader == leader)
        client = cluster.clients[leader]
        assert await client.in_thread(lambda: ask_twice(client.line, held, follower)) == [RECORDS]
