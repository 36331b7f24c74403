"""When the clock of views is told, and by what."""

from __future__ import annotations

import datetime as dt
import json

import msgspec

from barnabas.client.results import LATEST
from barnabas.engine.clock import CLOCK, TICK_S, Ticking, reads_clock, record
from barnabas.engine.jobs import InputTable, Job, ViewWork
from tests.engine.cluster import PAUSED, Cluster, view
from tests.waiting import wait_until


def clocked(name: str) -> Job:
    """The job of a view that reads the clock."""
    job = view(name)
    assert isinstance(job.work, ViewWork)
    table = InputTable(CLOCK, "json", ("now",), columns="now timestamptz")
    return msgspec.structs.replace(job, work=msgspec.structs.replace(job.work, tables={"clock": table}))


def test_only_jobs_that_run_and_read_it_need_the_clock() -> None:
    assert reads_clock(clocked("a"))
    assert not reads_clock(view("a"))
    assert not reads_clock(msgspec.structs.replace(clocked("a"), desired=PAUSED))


def test_the_time_is_due_once_in_a_while() -> None:
    ticking, jobs = Ticking(), [view("b"), clocked("a")]
    assert not ticking.is_due([view("b")], 5.0)
    assert ticking.is_due(jobs, 5.0)
    assert not ticking.is_due(jobs, 5.0 + TICK_S / 2)
    assert ticking.is_due(jobs, 5.0 + TICK_S)
    assert not ticking.is_due([], 9.0)


def test_a_record_has_the_time() -> None:
    moment = dt.datetime(2026, 3, 1, 17, 5, 9, 40, tzinfo=dt.UTC)
    assert json.loads(record(moment)) == {"now": "2026-03-01 17:05:09.000040"}


def test_the_active_engine_tells_the_time_while_a_view_reads_it(cluster: Cluster) -> None:
    with cluster.supervisor():
        cluster.declare(clocked("timed"))
        wait_until(lambda: CLOCK in cluster.client.topics(), "there is no clock")
        first = told(cluster)
        wait_until(lambda: told(cluster) > first, "the clock stands still")
        cluster.drop("timed")
    assert told(cluster) > first


def told(cluster: Cluster) -> int:
    """How often the time was told."""
    place = CLOCK, 0
    return cluster.client.list_offsets({place: LATEST})[place].offset
