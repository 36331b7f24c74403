"""Functions whose rows are DataFrames of Spark, and the way from a DataFrame to batches of Arrow."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from barnabas.connect import ConnectError, sink
from barnabas.connect.runtime import frames
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_functions import Run, has_lines
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FILE = """
from barnabas.connect import sink, source

@source(topic="{topic}", key="id", frames="spark")
def numbers(config, offset, spark):
    begin = offset.get("end", 0)
    if begin < 1000:
        yield spark.range(begin, 1000).selectExpr("id", "named_struct('half', id / 2) AS nested"), {{"end": 1000}}
    while True:
        yield None

@sink(topics="{topic}", frames="spark")
def show(frame, identity):
    for row in frame.selectExpr("key", "value.nested.half AS half", "offset").collect():
        with open("{out}", "a") as file:
            print(row.key, row.half, row.offset, sorted(identity.ranges), file=file)
"""


def test_frames_go_into_a_topic_and_out_of_it(spark: SparkSession, tasks: Tasks) -> None:
    tasks.create_topic()
    out, path = tasks.folder / "out.txt", tasks.folder / "frames.py"
    path.write_text(FILE.format(topic=tasks.topic, out=out))
    for _ in range(2):  # the second run finds nothing to do
        running = Run(tasks, path, {})
        wait_until(partial(has_lines, out, 1000), "the rows did not come")
        running.end()
        assert running.failure is None
    found = [json.loads(value or b"") for value in tasks.values()]
    assert sorted(each["id"] for each in found) == list(range(1000))
    assert found[0] == {"id": found[0]["id"], "nested": {"half": found[0]["id"] / 2}}
    lines = sorted((line.split(" ", 3) for line in out.read_text().splitlines()), key=lambda each: int(each[0]))
    assert [float(half) for _, half, _, _ in lines] == [each / 2 for each in range(1000)]
    assert {ranges for *_, ranges in lines} == {str([(tasks.topic, 0)])}


def test_all_rows_of_all_tasks_come(spark: SparkSession) -> None:
    frame = spark.range(0, 100_000, 1, 7)
    found = [number for batch in frames.batches_of(frame, threading.Event()) for number in batch.column(0).to_numpy()]
    assert sorted(found) == list(range(100_000))
    assert list(frames.batches_of(frame.where("id < 0"), threading.Event())) == []


def test_a_reader_that_ends_lets_the_tasks_end(spark: SparkSession) -> None:
    rows = frames.batches_of(spark.range(0, 5_000_000, 1, 2), threading.Event())
    assert next(rows).num_rows > 0
    rows.close()  # type: ignore[attr-defined]  # a generator
    tracker = spark.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds(), "the job did not end")
    wait_until(lambda: not threads_of_frames(), "threads are left")


def threads_of_frames() -> list[str]:
    """The threads that bring rows; Spark's own ones come and go."""
    return [each.name for each in threading.enumerate() if each.name.startswith("frame-")]


def test_a_task_that_connects_at_the_end_holds_nothing_up(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = frames._Receiver(spark)
    shut, late = frames._shut, list[socket.socket]()

    def shut_late(each: socket.socket) -> None:
        if not late:
            late.append(socket.create_connection(receiver.address))  # and says nothing
            wait_until(lambda: "frame-rows" in threads_of_frames(), "it was not taken")
        shut(each)

    monkeypatch.setattr(frames, "_shut", shut_late)
    with closing(receiver):
        pass
    with late[0]:
        assert late[0].recv(1) == b""
    assert "frame-rows" not in threads_of_frames()


def test_an_error_of_spark_passes(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr("raise_error('broken')")
    with pytest.raises(Exception, match="broken"):
        list(frames.batches_of(frame, threading.Event()))


def test_other_frames_are_refused() -> None:
    with pytest.raises(ConnectError, match="frames of show is 'polars'; it may be 'arrow' or 'spark'"):

        @sink(topics="t", frames="polars")  # type: ignore[arg-type]  # the test is about it
        def show(records: object, identity: object) -> None: ...
