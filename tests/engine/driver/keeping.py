"""A view over topics of a real broker, taken in micro-batches that a test cuts itself, as Spark would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.engine.driver.kept_view import KeptView
from barnabas.engine.driver.opening import last_progress
from barnabas.engine.jobs import PROGRESS, InputTable, Job, ViewWork
from barnabas.engine.stores import progress_of
from barnabas.incremental.flow import open_flow
from barnabas.incremental.plan import Column, Final, Input, Named, OnTime, Plan, Sum, Sums, Until
from barnabas.protocol.records.record import build_batch
from barnabas.tables.table import Table, table

COLUMNS = (Column("k", "VARCHAR"), Column("x", "BIGINT"))
COUNTED = Sums(
    0,
    (Named("k", "VARCHAR", "k"),),
    (Sum("c", "BIGINT", "count"), Sum("s", "HUGEINT", "sum", "x")),
    (Named("k", "VARCHAR", "k"), Named("c", "BIGINT", "c"), Named("s", "BIGINT", "s")),
)
COUNTS = Plan((Input("t", COLUMNS), COUNTED), ("k",))
RENAMES = {"_key": "key", "_value": "value", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}


def work(*, is_keyed: bool = False, mode: str = "permissive") -> ViewWork:
    """Counts and sums by `k` of the topic `t`, in the topic `v`."""
    plan = Plan((Input("t", COLUMNS, is_keyed), *COUNTS.nodes[1:]), COUNTS.key)
    read = InputTable("t", "json", ("k", "x"), columns="k text, x bigint", mode=mode, is_keyed=is_keyed)
    return ViewWork("select k, count(*), sum(x) from t group by k", plan, {"t": read}, "v", "k text", "c bigint, s bigint")


def final_work() -> ViewWork:
    """Counts and sums of the rows of `t` by `x`, which is their time too: each once, when the greatest `x` is two larger."""
    until, columns = Until("x", "w1"), (Named("k", "VARCHAR", "x"), *COUNTED.columns[1:])
    counted = Sums(1, (Named("x", "BIGINT", "x"),), COUNTED.sums, columns, until)
    final = Final(2, tuple(Column(each.name, each.kind) for each in columns), Until("input_0.k::BIGINT", "w1"))
    plan = Plan((Input("t", COLUMNS), OnTime(0, COLUMNS, "x", "input_0.x - 1"), counted, final), ("k",), (), final.until)
    return msgspec.structs.replace(work(), plan=plan)


class Keeping:
    """The topics, and one view at a time over them.

    Args:
        folder: of the state; a view that is opened again finds it.
    """

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        self.servers, self._folder = bootstrap_servers, folder
        self.config = ClientConfig.from_options({"bootstrap.servers": bootstrap_servers, "isolation.level": "read_committed"})
        self.client = BlockingClient(self.config)
        compacted = {"cleanup.policy": "compact"}
        topics = [NewTopic("t", 1), NewTopic("v", 1, configs=compacted), NewTopic(PROGRESS, 1, configs=compacted)]
        self.client.create_topics(topics)
        self.view: KeptView | None = None
        self._known = Table(table("t", bootstrap_servers).source, table("t", bootstrap_servers)._columns)

    def close(self) -> None:
        if self.view is not None:
            self.view.close()
        self._known.close()
        self.client.close()

    def produce(self, *rows: Mapping[str, Any] | bytes | None, keys: Sequence[bytes | None] | None = None) -> None:
        """Append rows to `t`: JSON, bytes as they are, or deletions."""
        values = [each if each is None or isinstance(each, bytes) else json.dumps(each).encode() for each in rows]
        pairs = list(zip(keys or [None] * len(rows), values, strict=True))
        self.client.produce("t", 0, build_batch(pairs, timestamp_ms=1_700_000_000_000))

    def open(self, given: ViewWork | None = None, generation: int = 0) -> KeptView:
        """The view after a start of its process: state and progress as they were left."""
        if self.view is not None:
            self.view.close()
        job = Job("v", given or work(), generation=generation)
        assert isinstance(job.work, ViewWork)
        settings = {"bootstrap.servers": self.servers}
        progress = last_progress(job, settings)
        flow = open_flow(job.work.plan, self._folder / f"{generation}.duckdb", 256 << 20, 1)
        self.view = KeptView(job, settings, flow, progress=progress)
        return self.view

    def take(self, number: int, start: int, end: int) -> None:
        """Offer the records of `t` from one offset to another as a micro-batch; the view takes it as a step, or has it already."""
        assert self.view is not None
        position = self.view.position
        if position.offsets is None:
            position.begin({"t": {"0": 0}})
        ahead = position.ahead({"t": {"0": end}})
        if ahead is None:
            assert self.view.flow.position == number
            return
        assert (self.view.flow.position + 1, position.offsets, ahead) == (number, {"t": {"0": start}}, {"t": {"0": end}})
        rows = self._known.arrow([*RENAMES])
        rows = rows.rename_columns([RENAMES[name] for name in rows.schema.names]).slice(start, end - start)
        rows = rows.append_column("topic", pa.repeat("t", rows.num_rows))
        self.view.take(rows, ahead)

    def rows(self) -> dict[str, tuple[int, int]]:
        """The rows that a reader of `v` sees: counts and sums by key."""
        with table("v", self.servers, format="json", columns="c bigint, s bigint", key="k text") as found:
            return {row["k"]: (row["c"], row["s"]) for row in found.newest_by_key().arrow().to_pylist()}

    def written(self) -> list[tuple[str, int | None]]:
        """Each committed record of `v`: its key and its count, None for a deletion."""
        with table("v", self.servers, format="json", columns="c bigint, s bigint", key="k text") as found:
            return [(row["k"], row["c"]) for row in found.arrow().to_pylist()]

    def progress(self) -> Any:
        """The last committed progress."""
        store = progress_of(self.config)
        try:
            return store.follow().get("v")
        finally:
            store.close()
