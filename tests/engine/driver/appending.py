"""An insert over topics of a real broker, taken in micro-batches that a test cuts itself, as Spark would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.engine.driver.appended import Appended
from barnabas.engine.driver.opening import last_progress
from barnabas.engine.jobs import PROGRESS, InputTable, InsertWork, Job, JobProgress
from barnabas.engine.stores import progress_of
from barnabas.incremental.appending import open_appending
from barnabas.incremental.plan import Column, Input, Join, Named, Plan, Rows
from barnabas.protocol.records.record import build_batch
from barnabas.tables.table import table

CLICKS = Input("STREAM(s)", (Column("id", "INTEGER"), Column("k", "VARCHAR")), is_stream=True)
NAMES = Input("t", (Column("k", "VARCHAR"), Column("name", "VARCHAR")), is_keyed=True)
OUT = (Named("id", "INTEGER", 'input_0."id"'), Named("name", "VARCHAR", 'input_1."name"'))
JOINED = Plan((CLICKS, NAMES, Join(0, 1, 'input_0."k" = input_1."k"', OUT)))
TARGET = InputTable("out", "json", ("id", "name"), columns="id int, name text")
RENAMES = {"_key": "key", "value": "value", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}


def work(
    plan: Plan = JOINED, target: InputTable = TARGET, *, topic: str = "s", start: Mapping[str, Mapping[str, int]] | None = None,
    required: tuple[str, ...] = (),
) -> InsertWork:  # fmt: skip
    """The names of clicks in the topic `s`, by the table `t`, appended to the topic `out`.

    Args:
        topic: of the clicks.
    """
    tables = {
        "STREAM(s)": InputTable(topic, "json", ("id", "k"), columns="id int, k text"),
        "t": InputTable("t", "json", ("k", "name"), columns="name text", key="k text", is_keyed=True),
    }
    used = {name: each for name, each in tables.items() if name in plan.tables}
    return InsertWork("insert into out select …", plan, used, target, required, start=start or {})


def projected() -> Plan:
    """A plan over the stream alone."""
    return Plan((CLICKS, Rows(0, (Named("id", "INTEGER", "id + 1"), Named("name", "VARCHAR", "k")), "id > 0")))


class Appending:
    """The topics, and one insert at a time over them.

    Args:
        folder: of the state; an insert that is opened again finds it.
    """

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        self.servers, self._folder = bootstrap_servers, folder
        self.config = ClientConfig.from_options({"bootstrap.servers": bootstrap_servers, "isolation.level": "read_committed"})
        self.client = BlockingClient(self.config)
        compacted = {"cleanup.policy": "compact"}
        topics = [NewTopic("s", 1), NewTopic("out", 1), *(NewTopic(each, 1, configs=compacted) for each in ("t", PROGRESS))]
        self.client.create_topics(topics)
        self.job: Appended | None = None

    def close(self) -> None:
        if self.job is not None:
            self.job.close()
        self.client.close()

    def clicks(self, *rows: tuple[int | None, str | None], topic: str = "s") -> None:
        """Append clicks."""
        values = [json.dumps({"id": each, "k": k}).encode() for each, k in rows]
        self.client.produce(topic, 0, build_batch([(None, each) for each in values], timestamp_ms=1_700_000_000_000))

    def names(self, **names: str | None) -> None:
        """Upsert names by their keys, and delete some."""
        pairs = [(k.encode(), None if name is None else json.dumps({"name": name}).encode()) for k, name in names.items()]
        self.client.produce("t", 0, build_batch(pairs, timestamp_ms=1_700_000_000_000))

    def open(self, given: InsertWork | None = None, *, generation: int = 0) -> Appended:
        """The insert after a start of its process: state and progress as they were left."""
        if self.job is not None:
            self.job.close()
        job = Job("i", given or work(), generation=generation)
        assert isinstance(job.work, InsertWork)
        settings = {"bootstrap.servers": self.servers}
        progress = last_progress(job, settings)
        flow = open_appending(job.work.plan, self._folder / f"{generation}.duckdb", 256 << 20, 2)
        self.job = Appended(job, settings, flow, progress=progress)
        return self.job

    def take(self, number: int, **ranges: tuple[int, int]) -> None:
        """Offer the records of topics between two offsets as a micro-batch; the job takes it as a step, or has it already."""
        assert self.job is not None
        position = self.job.position
        if position.offsets is None:
            position.begin({topic: {"0": start} for topic, (start, _) in ranges.items()})
        ahead = position.ahead({topic: {"0": end} for topic, (_, end) in ranges.items()})
        if ahead is None:
            assert self.job.flow.position == number
            return
        assert self.job.flow.position + 1 == number
        assert position.offsets is not None
        assert ahead == {**position.offsets, **{topic: {"0": end} for topic, (_, end) in ranges.items()}}
        parts = [self._records(topic, start, end) for topic, (start, end) in ranges.items()]
        records = pa.concat_tables(parts) if parts else pa.table({})
        self.job.take(records, ahead)

    def _records(self, topic: str, start: int, end: int) -> pa.Table:
        with table(topic, self.servers) as found:
            rows = found.arrow([*RENAMES])
        rows = rows.rename_columns([RENAMES[name] for name in rows.schema.names])
        rows = rows.filter((pc.field("offset") >= start) & (pc.field("offset") < end))
        return rows.append_column("topic", pa.array([topic] * rows.num_rows, pa.string()))

    def written(self, columns: Sequence[str] = ("id", "name")) -> list[tuple[Any, ...]]:
        """The committed rows of `out`."""
        with table("out", self.servers, format="json", columns="id int, name text") as found:
            return [tuple(row[each] for each in columns) for row in found.arrow().to_pylist()]

    def progress(self) -> JobProgress | None:
        """The last committed progress."""
        store = progress_of(self.config)
        try:
            return store.follow().get("i")
        finally:
            store.close()
