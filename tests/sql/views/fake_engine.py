"""Runs the jobs of views in a thread, without Spark: reads their topics whole, and writes changes and progress in one transaction."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.engine.clock import Ticking, tick
from barnabas.engine.driver.appended import Appended
from barnabas.engine.driver.rows import Decoder, Encoder
from barnabas.engine.jobs import PROGRESS, STREAMING, Desired, InsertWork, Job, JobProgress, JobState, State, ViewWork, encode
from barnabas.engine.membership import Member, take_part
from barnabas.engine.stores import jobs_of, states_of
from barnabas.errors import BarnabasError
from barnabas.incremental.appending import open_appending
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import FlowError
from barnabas.incremental.macros import MACROS
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.writing.producing import Producers
from barnabas.tables.client_source import ClientSource
from barnabas.tables.declared import columns_of
from barnabas.tables.source import Bounds, Snapshot
from barnabas.tables.table import Table
from tests.waiting import wait_until

POLL_S = 0.01


class _View:
    """One job: its flow, and how far it has read."""

    def __init__(self, job: Job, config: ClientConfig, folder: Path, registry: RegistryAddress | None) -> None:
        assert isinstance(job.work, ViewWork)
        self.job, self.work, self._config = job, job.work, config
        self.flow = open_flow(job.work.plan, folder / f"{job.name}-{job.generation}.duckdb", 256 << 20, 1, [MACROS])
        self._decoder, self._encoder = Decoder(job.work.tables, registry), Encoder(job.work, registry)
        self._offsets: dict[str, dict[int, int]] = {}
        self._batch, self._rows_in = -1, 0

    def step(self) -> list[tuple[str, list[pa.RecordBatch]]]:
        """The records of a step; none if there is nothing to do."""
        found, ends = [], {topic: dict(parts) for topic, parts in self._offsets.items()}
        for topic in sorted({each.topic for each in self.work.tables.values()}):
            found += _read(topic, self._config, ends.setdefault(topic, {}))
        if ends == self._offsets and self._batch >= 0:
            return []
        records = pa.concat_tables(found) if found else None
        try:
            changes = self.flow.step(self._batch + 1, {} if records is None else self._decoder.inputs(records))
        except FlowError:
            self.flow.rollback()
            raise
        self.flow.commit()
        made = self._encoder.records(changes if self._batch >= 0 else self.flow.snapshot())
        batches = [made.select(["key", "value"]).combine_chunks().to_batches()] if made.num_rows else []
        if self._batch < 0:
            batches.append([self._gone(made.column("key").to_pylist())])
        self._batch += 1
        self.flow.release()
        self._offsets = ends
        self._rows_in = 0 if records is None else records.num_rows
        key, value = self.job.name.encode(), encode(self._progress())
        progress = pa.record_batch({"key": pa.array([key], pa.binary()), "value": pa.array([value], pa.binary())})
        return [*((self.work.topic, each) for each in batches if each[0].num_rows), (PROGRESS, [progress])]

    def _gone(self, kept: Iterable[bytes | None]) -> pa.RecordBatch:
        source = ClientSource(self.work.topic, self._config)
        with Table(source, columns_of(self.work.topic)) as table:
            old = table.newest_by_key().arrow(["_key"]).column("_key").to_pylist()
        keys = list(set(old) - set(kept))
        return pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.nulls(len(keys), pa.binary())})

    def _progress(self) -> JobProgress:
        offsets = {topic: {str(number): end for number, end in parts.items()} for topic, parts in self._offsets.items()}
        rows = self.flow.size().rows
        return JobProgress(
            self.job.name, self.job.generation, self._batch, offsets, self._rows_in, state_rows=rows, took_ms=1.5,
            at_ms=time.time_ns() // 1_000_000, late_rows=self.flow.late(),
        )  # fmt: skip


def _read(topic: str, config: ClientConfig, ends: dict[int, int]) -> list[pa.Table]:
    """The records of a topic behind some offsets, which become those behind the records."""
    source = ClientSource(topic, config)
    try:
        now = source.snapshot()
        parts = {number: Bounds(max(each.start, ends.get(number, 0)), each.end) for number, each in now.partitions.items()}
        ends.update({number: each.end for number, each in parts.items()})
        table = Table(source, columns_of(topic), Snapshot(topic, now.topic_id, parts))
        rows = table.arrow(["_key", "value", "_partition", "_offset", "_timestamp"])
    finally:
        source.close()
    rows = rows.rename_columns(["key", "value", "partition", "offset", "timestamp"])
    return [rows.append_column("topic", pa.array([topic] * rows.num_rows, pa.string()))] if rows.num_rows else []


class _Insert:
    """One job that inserts: the driver's own, over the records that came since its last step."""

    def __init__(self, job: Job, config: ClientConfig, folder: Path, registry: RegistryAddress | None) -> None:
        assert isinstance(job.work, InsertWork)
        self.job, self._config = job, config
        self.flow = open_appending(job.work.plan, folder / f"{job.generation}.duckdb", 256 << 20, 1, [MACROS])
        servers = ",".join(f"{host}:{port}" for host, port in config.bootstrap_servers)
        self._appended = Appended(job, {"bootstrap.servers": servers}, self.flow, registry=registry)
        self._offsets: dict[str, dict[int, int]] | None = None

    def step(self) -> list[tuple[str, list[pa.RecordBatch]]]:
        """Take what came; its sink writes by itself."""
        if self._offsets is None:
            self._appended.begin()
            start = json.loads(self._appended.starting_offsets)
            self._offsets = {
                topic: {} if each == "earliest" else {int(at): max(offset, 0) for at, offset in each.items()}
                for topic, each in start.items()
            }
        ends = {topic: dict(parts) for topic, parts in self._offsets.items()}
        found = [each for topic in self._appended.topics for each in _read(topic, self._config, ends[topic])]
        if ends != self._offsets:
            records = pa.concat_tables(found) if found else pa.table({})
            end = {topic: {str(at): offset for at, offset in parts.items()} for topic, parts in ends.items()}
            self._appended.take(records, end)
            self._offsets = ends
        return []


class FakeEngine:
    """The active engine of a cluster, for the time of a `with`.

    Args:
        folder: of the states.
        registry: the URL of a schema registry.
        is_held: while it is set, no view takes a step.
    """

    def __init__(self, bootstrap: str, folder: Path, registry: str | None = None) -> None:
        self._folder = folder
        self._registry = None if registry is None else RegistryAddress(registry)
        self._config = ClientConfig.from_options({"bootstrap.servers": bootstrap})
        self.is_held = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-engine")
        self._is_active = False

    def __enter__(self) -> FakeEngine:
        self._thread.start()
        try:
            wait_until(lambda: self._is_active, "the fake engine is not active")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._elected())

    async def _elected(self) -> None:
        def changed(is_active: bool, _: object) -> None:
            self._is_active = is_active

        election = take_part(self._config, Member("http://127.0.0.1:1", "fake"), changed)
        election.start()
        try:
            await asyncio.to_thread(self._work)
        finally:
            await election.close()

    def _work(self) -> None:
        read = replace(self._config, read_committed=True)
        client, jobs, states = BlockingClient(self._config), jobs_of(self._config), states_of(self._config)
        producers = Producers(client)
        if PROGRESS not in client.topics():
            client.create_topics([NewTopic(PROGRESS, 1, configs={"cleanup.policy": "compact"})])
        views: dict[str, _View | _Insert] = {}
        failed: dict[str, tuple[int, str]] = {}
        ticking = Ticking()
        while not self._ending.wait(POLL_S):
            _tick(ticking, client, jobs.records.values())
            there = {name: job for name, job in jobs.follow().items() if isinstance(job.work, STREAMING)}
            gone = [name for name, each in views.items() if name not in there or there[name].generation != each.job.generation]
            for name in gone:
                views.pop(name).flow.close()
            for name, job in there.items():
                if failed.get(name, (-1, ""))[0] == job.generation or job.desired is Desired.PAUSED or self.is_held.is_set():
                    continue
                try:
                    if name not in views:
                        kind = _View if isinstance(job.work, ViewWork) else _Insert
                        views[name] = kind(job, read, self._folder, self._registry)
                    view = views[name]
                    if records := view.step():
                        producers.write(records)
                except BarnabasError as error:
                    failed[name] = job.generation, str(error)
            known = states.follow()
            made = {name: _state(job, failed.get(name)) for name, job in there.items()}
            changed = {name: each for name, each in made.items() if known.get(name) != each}
            if changed:
                states.put(client, dict(changed))
        producers.close()
        for view in views.values():
            view.flow.close()
        for each in (jobs, states, client):
            each.close()


def _tick(ticking: Ticking, client: BlockingClient, jobs: Iterable[Job]) -> None:
    if ticking.is_due(jobs, time.monotonic()):
        tick(client)


def _state(job: Job, failure: tuple[int, str] | None) -> JobState:
    if failure is not None and failure[0] == job.generation:
        return JobState(job.name, job.generation, job.restarts, State.FAILED, 0, 1, failure[1])
    state = State.PAUSED if job.desired is Desired.PAUSED else State.RUNNING
    return JobState(job.name, job.generation, job.restarts, state, 0)
