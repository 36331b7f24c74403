"""The steps with threads or Spark, for `run` and for the single commands: publishing, and the pipeline with its progress.

Rules
  1. The failure of a producer is reported at once, not when the others are done.
  2. A pipeline without an end stops cleanly on Ctrl-C or SIGTERM; its checkpoint lets it continue later.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from demo import data, pipeline, publish, topics
from demo.data import Slice
from demo.pipeline import Status
from demo.progress import Board
from demo.publish import Pace
from demo.session import spark_session


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set during the block; for the main thread only."""
    stopped = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopped.set()) for number in numbers]
    try:
        yield stopped
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Producers:
    """The three producers, each in a thread of `pool`; the two with a pace stop when `stop` is set."""

    def __init__(self, pool: ThreadPoolExecutor, bootstrap: str, part: Slice, board: Board) -> None:
        self._pool, self._bootstrap, self._part = pool, bootstrap, part
        self.stop = threading.Event()
        self._futures: list[Future[int]] = []
        self._reference = board.task("reference (aiokafka)", sum(len(data.table(name)) for name in topics.REFERENCE))
        self._flights = board.task("flights (confluent)", len(part.cut(data.table("flights"))))
        self._weather = board.task("weather (kafka-python)", len(part.cut(data.table("weather"))))

    def start_reference(self) -> Future[int]:
        future = self._pool.submit(publish.publish_reference, self._bootstrap, self._reference.update)
        self._futures.append(future)
        return future

    def start_streams(self, days_per_second: float) -> None:
        """Start publishing flights and weather, with the same pace."""
        pace = Pace(days_per_second, self.stop)
        for work, task in ((publish.publish_flights, self._flights), (publish.publish_weather, self._weather)):
            self._futures.append(self._pool.submit(work, self._bootstrap, self._part, pace, task.update))

    def stream_records(self) -> int:
        """The number of records of the streams, including their closing markers."""
        return sum(task.total + 1 for task in (self._flights, self._weather) if task.total is not None)

    def raise_failure(self) -> None:
        """Raise the error of a producer that ended early, if there is one."""
        for future in self._futures:
            if future.done():
                future.result()

    def wait(self) -> int:
        """Wait until everything is published; returns the number of records. Raises the first failure at once."""
        return sum(future.result() for future in as_completed(self._futures))


def publish_all(bootstrap: str, part: Slice, days_per_second: float, board: Board, *, again: bool) -> None:
    """The step `publish`: create the topics and publish everything."""
    topics.create_topics(bootstrap, again=again)
    with ThreadPoolExecutor(max_workers=3, thread_name_prefix="demo") as pool:
        producers = Producers(pool, bootstrap, part, board)
        try:
            producers.start_reference()
            producers.start_streams(days_per_second)
            board.step(f"{producers.wait():,} records are published")
        finally:
            producers.stop.set()


def run_pipeline(bootstrap: str, work: Path, board: Board, *, available_now: bool) -> Status:
    """The step `pipeline`: run the pipeline until it has read all existing records, or until a signal stops it."""
    topics.end_offsets(bootstrap, topics.FLIGHTS)  # fails early, before Spark's slow start, if the topic does not exist
    # Spark installs its own handler for Ctrl-C when it starts, so ours must come later.
    with spark_session(work) as spark, stop_signals() as stopped:
        board.step("Spark is up")
        query = pipeline.start(spark, bootstrap, work / pipeline.CHECKPOINT, available_now=available_now)
        status = pipeline.follow(query, reporter(board), lambda _: stopped.is_set())
        board.step(f"{status.rows:,} records read, {status.windows:,} windows written in {status.batches} micro-batches")
        return status


def reporter(board: Board, records: int | None = None) -> Callable[[Status], None]:
    """A function that shows the progress of a query in two lines of the board; `records` is the number of records to read, if
    known."""
    rows, windows = board.task("pipeline: records read", records), board.task("pipeline: windows out")

    def report(status: Status) -> None:
        rows.update(status.rows, f"in {status.batches} micro-batches" if status.batches else status.doing.lower())
        windows.update(status.windows, f"up to {status.watermark[:10]}" if status.watermark else "")

    return report
