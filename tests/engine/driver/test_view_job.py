"""Jobs that share micro-batches: each takes what it does not have, in its own thread, and none holds up another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from barnabas.engine.driver.mailbox import Offer
from barnabas.engine.driver.opening import last_progress, opened
from barnabas.engine.driver.position import StreamOffset
from barnabas.engine.driver.shared_query import Member
from barnabas.engine.driver.small_batches import SmallBatches
from barnabas.engine.driver.topics import Topics
from barnabas.engine.driver.view_job import ViewJob
from barnabas.engine.jobs import Job
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping, work
from tests.waiting import wait_until


class FakeContext:
    """Spark's context for a job that needs no job of Spark."""

    def setJobGroup(self, *_: Any, **__: Any) -> None: ...

    def setLocalProperty(self, *_: Any) -> None: ...

    def cancelJobGroup(self, _: str) -> None: ...


class FakeSpark:
    sparkContext = FakeContext()


class FakeQuery:
    error: BaseException | None = None


class FakeQueries:
    """A query whose micro-batches a test cuts."""

    def __init__(self, servers: str) -> None:
        self.query, self.members = FakeQuery(), list[Member]()
        self.begins: list[StreamOffset] = []
        self._small = SmallBatches({"kafka.bootstrap.servers": servers, "subscribe": "t", "startingOffsets": "earliest"})

    def join(self, member: Member, topics: Topics, start: StreamOffset) -> FakeQuery:
        self.begins.append(start)
        self.members.append(member)
        return self.query

    def leave(self, member: Member, topics: Topics, query: FakeQuery) -> None:
        self.members.remove(member)

    def offer(self, start: int, end: int) -> list[Future[None]]:
        """Offer the records of `t` between two offsets to all jobs."""
        first, last = {"t": {"0": start}}, {"t": {"0": end}}
        records = self._small.read(first, last)
        assert records is not None
        offers = [Offer(first, last, records, Future()) for _ in self.members]
        for member, each in zip(self.members, offers, strict=True):
            member.offer(each)
        return [each.taken for each in offers]

    def close(self) -> None:
        self._small.close()


class Sharing:
    """A broker's topic `t`, and jobs over it whose rows lie in `v`."""

    def __init__(self, servers: str, folder: Path) -> None:
        self.keeping, self.queries, self._folder = Keeping(servers, folder), FakeQueries(servers), folder
        self.jobs: list[ViewJob] = []

    def start(self, name: str = "v", *, mode: str = "permissive") -> ViewJob:
        job, settings = Job(name, work(mode=mode)), {"bootstrap.servers": self.keeping.servers}
        view = opened(job, settings, self._folder / f"{name}.duckdb", progress=last_progress(job, settings))
        made = ViewJob(FakeSpark(), view, settings, self.queries, logging.getLogger(name))  # type: ignore[arg-type]  # fakes
        self.jobs.append(made)
        made.start()
        return made

    def stop(self, job: ViewJob) -> None:
        self.jobs.remove(job)
        job.stop()

    def close(self) -> None:
        for each in self.jobs:
            each.stop()
        self.queries.close()
        self.keeping.close()


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[Sharing]:
    with Broker() as broker:
        made = Sharing(broker.bootstrap_servers, tmp_path)
        yield made
        made.close()
        assert not [each.name for each in threading.enumerate() if each.name.startswith("taking-")]


def wait_for(taken: list[Future[None]]) -> None:
    for each in taken:
        each.result(60)


def test_a_job_reads_what_is_there_and_takes_what_comes(sharing: Sharing) -> None:
    sharing.keeping.produce({"k": "a", "x": 1}, {"k": "b", "x": 2})
    job = sharing.start()
    wait_until(job.has_settled)
    assert sharing.keeping.rows() == {"a": (1, 1), "b": (1, 2)}
    sharing.keeping.produce({"k": "a", "x": 5})
    wait_for(sharing.queries.offer(2, 3))
    assert sharing.keeping.rows() == {"a": (2, 6), "b": (1, 2)}
    assert job.failure() is None


def test_micro_batches_that_are_repeated_or_missed_count_once(sharing: Sharing) -> None:
    sharing.keeping.produce({"k": "a", "x": 1})
    wait_until(sharing.start().has_settled)
    sharing.keeping.produce(*({"k": "a", "x": 1} for _ in range(9)))
    for start, end in ((0, 1), (0, 3), (1, 3), (6, 8), (2, 10)):
        wait_for(sharing.queries.offer(start, end))
    assert sharing.keeping.rows() == {"a": (10, 10)}
    assert [n for _, n in sharing.keeping.written()] == [1, 3, 8, 10]


def test_a_job_goes_on_after_a_start_where_it_was(sharing: Sharing) -> None:
    sharing.keeping.produce({"k": "a", "x": 1})
    first = sharing.start()
    wait_until(first.has_settled)
    sharing.stop(first)
    sharing.keeping.produce({"k": "a", "x": 1})
    wait_until(sharing.start().has_settled)
    assert sharing.keeping.rows() == {"a": (2, 2)}
    assert [{"t": begin["t"]} for begin in sharing.queries.begins] == [{"t": {"0": 0}}, {"t": {"0": 1}}]


def test_a_job_that_fails_does_not_stop_another_and_holds_up_nothing(sharing: Sharing) -> None:
    good, strict = sharing.start(), sharing.start("strict", mode="fail")
    for each in (good, strict):
        wait_until(each.has_settled)
    sharing.keeping.produce({"k": "a", "x": "text"}, {"k": "a", "x": 1})
    wait_for(sharing.queries.offer(0, 2))
    wait_until(lambda: strict.failure() is not None)
    assert "t-0" in str(strict.failure())
    wait_until(lambda: len(sharing.queries.members) == 1)
    sharing.keeping.produce({"k": "a", "x": 1})
    wait_for(sharing.queries.offer(2, 3))
    assert good.failure() is None
    assert sharing.keeping.progress().offsets == {"t": {"0": 3}}


def test_an_error_of_the_query_is_one_of_each_job(sharing: Sharing) -> None:
    job = sharing.start()
    wait_until(job.has_settled)
    sharing.queries.query.error = OSError("no broker")
    assert job.failure() == "no broker"
