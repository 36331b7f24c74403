"""The driver reads small micro-batches itself, and leaves the others to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.engine.driver.position import StreamOffset
from barnabas.engine.driver.small_batches import MOST_PARTITIONS, MOST_RECORDS, SmallBatches, is_small
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    with Broker() as broker:
        made = Keeping(broker.bootstrap_servers, tmp_path)
        yield made
        made.close()


@pytest.fixture
def small(keeping: Keeping) -> Iterator[SmallBatches]:
    made = SmallBatches({"kafka.bootstrap.servers": keeping.servers, "subscribe": "t", "startingOffsets": "earliest"})
    yield made
    made.close()


def offsets(*ends: int) -> StreamOffset:
    """Of the topic `t`, by partition."""
    return {"t": {str(partition): end for partition, end in enumerate(ends)}}


def test_it_reads_the_records_between_two_offsets_of_the_plan(keeping: Keeping, small: SmallBatches) -> None:
    keeping.produce(*({"k": "a", "x": number} for number in range(5)))
    found = small.read(offsets(1), offsets(4))
    assert isinstance(found, pa.Table)
    assert found.column("offset").to_pylist() == [1, 2, 3]
    assert found.column("topic").to_pylist() == ["t"] * 3
    assert found.column("value").to_pylist()[0] == b'{"k": "a", "x": 1}'


def test_a_view_takes_what_it_reads(keeping: Keeping, small: SmallBatches) -> None:
    keeping.produce({"k": "a", "x": 1}, {"k": "b", "x": 2}, {"k": "a", "x": 3})
    view = keeping.open()
    view.begin()
    for start, end in ((0, 2), (2, 3)):
        found = small.read(offsets(start), offsets(end))
        assert found is not None
        view.take(found, {"t": {"0": end}})
    assert keeping.rows() == {"a": (2, 4), "b": (1, 2)}


def test_spark_reads_what_the_driver_should_not() -> None:
    assert is_small(offsets(5, 5), offsets(6, 5))
    assert not is_small({}, offsets(1))  # the first micro-batch, whose plan has no begin
    assert not is_small(offsets(5), offsets(6, 1))  # a partition was added
    assert is_small(offsets(0), offsets(MOST_RECORDS))
    assert not is_small(offsets(0), offsets(MOST_RECORDS + 1))
    assert not is_small(offsets(*[0] * MOST_PARTITIONS, 0), offsets(*[1] * MOST_PARTITIONS, 1))


def test_a_micro_batch_without_records_is_empty(keeping: Keeping, small: SmallBatches) -> None:
    keeping.produce({"k": "a", "x": 1})
    found = small.read(offsets(1), offsets(1))
    assert found is not None
    assert found.num_rows == 0
