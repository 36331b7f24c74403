"""The query of a view's job: Spark and the driver read its micro-batches in turn, and every record counts once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.engine.driver import small_batches
from barnabas.engine.driver.view_job import ViewJob
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
                keeping.produce(*({"k": "a", "x": 1} for _ in range(rows)))
                total += rows
                wait_until(lambda: keeping.rows().get("a") == (total, total), f"the view has not {total} records")  # noqa: B023
            assert job.failure() is None
            by_spark = [each["numInputRows"] for each in query.recentProgress]
            assert 30 in by_spark
            assert 5 not in by_spark  # nothing of Spark's ran for it
        finally:
            job.stop()
            keeping.view = None
