"""Jobs over Spark: they share one query, Spark and the driver read its micro-batches in turn, and every record counts once for each job."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from barnabas.client.results import NewTopic
from barnabas.engine.driver import small_batches
from barnabas.engine.driver.opening import last_progress, opened
from barnabas.engine.driver.shared_query import SharedQueries
from barnabas.engine.driver.view_job import ViewJob
from barnabas.engine.jobs import Job
from barnabas.protocol.records.record import build_batch
from barnabas.tables.table import table
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping, work
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SPARK_S = 300.0  # the first read of a session starts processes of Spark
OTHER = msgspec.structs.replace(work(), topic="w")


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    with Broker() as broker:
        made = Keeping(broker.bootstrap_servers, tmp_path)
        made.client.create_topics([NewTopic("w", 1, configs={"cleanup.policy": "compact"})])
        yield made
        made.close()


class Jobs:
    """Two jobs, which keep the same rows in the topics `v` and `w`."""

    def __init__(self, spark: SparkSession, keeping: Keeping, folder: Path) -> None:
        self._spark, self._keeping, self._folder, self._settings = spark, keeping, folder, {"bootstrap.servers": keeping.servers}
        self._queries = SharedQueries(spark, self._settings, folder / "queries")
        self.sent = 0

    def start(self) -> list[ViewJob]:
        made = []
        for name, given in (("v", work()), ("w", OTHER)):
            job = Job(name, given)
            path = self._folder / f"{name}.duckdb"
            view = opened(job, self._settings, path, progress=last_progress(job, self._settings))
            made.append(ViewJob(self._spark, view, self._settings, self._queries, logging.getLogger(name)))
            made[-1].start()
        return made

    def send(self, rows: int) -> None:
        now_ms = time.time_ns() // 1_000_000  # retention would remove older records
        self._keeping.client.produce("t", 0, build_batch([(None, b'{"k": "a", "x": 1}')] * rows, timestamp_ms=now_ms))
        self.sent += rows

    def wait(self, jobs: Sequence[ViewJob]) -> None:
        """Wait until both have all rows."""
        wait_until(lambda: any(each.failure() for each in jobs) or self._have_all(), "the rows are missing", within_s=SPARK_S)
        assert [each.failure() for each in jobs] == [None] * len(jobs)

    def _have_all(self) -> bool:
        return {name: self._rows(name) for name in "vw"} == {name: [(self.sent, self.sent)] for name in "vw"}

    def _rows(self, name: str) -> list[tuple[int, int]]:
        with table(name, self._keeping.servers, format="json", columns="c bigint, s bigint", key="k text") as found:
            return [(row["c"], row["s"]) for row in found.newest_by_key().arrow().to_pylist()]


def test_small_and_large_micro_batches_and_a_restart(
    spark: SparkSession, keeping: Keeping, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_batches, "MOST_RECORDS", 10)
    shared = Jobs(spark, keeping, tmp_path)
    for _ in range(2):
        shared.send(50)  # more than a job may read in the driver
        jobs = shared.start()
        try:
            shared.wait(jobs)
            for rows in (3, 4, 30, 5):
                shared.send(rows)
                shared.wait(jobs)
            wait_until(lambda: len(spark.streams.active) == 1, "there is one query for both")
        finally:
            for each in jobs:
                each.stop()
        assert spark.streams.active == []
        assert list((tmp_path / "queries").iterdir()) == []
        assert [each.name for each in threading.enumerate() if each.name.startswith(("taking-", "query-"))] == []


def test_an_error_of_the_query_ends_its_jobs_which_tell_the_reason(spark: SparkSession, keeping: Keeping, tmp_path: Path) -> None:
    shared = Jobs(spark, keeping, tmp_path)
    shared.send(3)
    jobs = shared.start()
    try:
        shared.wait(jobs)
        keeping.client.delete_topics(["t"])
        wait_until(lambda: all(each.failure() for each in jobs), "the jobs do not fail", within_s=SPARK_S)
        first, second = (
            str(each.failure()).replace(f"job restart {name} ", "job restart ") for name, each in zip("vw", jobs, strict=True)
        )
        assert first == second
    finally:
        for each in jobs:
            each.stop()
