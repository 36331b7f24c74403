"""The query of a view's job: Spark and the driver read its micro-batches in turn, and every record counts once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.engine.driver import small_batches
from barnabas.engine.driver.view_job import ViewJob
from barnabas.protocol.records.record import build_batch
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SPARK_S = 300.0  # the first read of a session starts processes of Spark


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    with Broker() as broker:
        made = Keeping(broker.bootstrap_servers, tmp_path)
        yield made
        made.close()


def test_small_and_large_micro_batches_and_a_restart(
    spark: SparkSession, keeping: Keeping, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_batches, "MOST_RECORDS", 10)
    settings = {"bootstrap.servers": keeping.servers}
    total = 0
    for _ in range(2):
        job = ViewJob(spark, keeping.open(), settings, tmp_path / "job", logging.getLogger("job"))
        query = job.start()
        try:
            for rows in (3, 4, 30, 5):
                now_ms = time.time_ns() // 1_000_000  # retention would remove older records
                keeping.client.produce("t", 0, build_batch([(None, b'{"k": "a", "x": 1}')] * rows, timestamp_ms=now_ms))
                total += rows
                wanted = {"a": (total, total)}
                wait_until(partial(_has, keeping, job, wanted), f"the view is not {wanted}", within_s=SPARK_S)
                assert job.failure() is None
            by_spark = [each["numInputRows"] for each in query.recentProgress]
            assert 30 in by_spark
            assert 5 not in by_spark  # nothing of Spark's ran for it
        finally:
            job.stop()
            keeping.view = None


def _has(keeping: Keeping, job: ViewJob, wanted: dict[str, tuple[int, int]]) -> bool:
    return job.failure() is not None or keeping.rows() == wanted
