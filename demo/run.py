"""The whole demo in one command: a broker of its own, the producers, the pipeline, the watching group, the proof and the chart.

How it works
    Producers and the watching group run in threads, Spark's driver in the main thread (it wants the signals). The year begins when
    the pipeline is up, at a pace that lets it write windows while flights are still published; begun before, the first micro-batch
    is half a year and takes most of the run. The pipeline is done when its watermark stands where the closing markers put it, the
    group when it has read all that the pipeline wrote.

Rules
  1. Whatever ends the run, all is stopped in order: query, Spark with its JVM, producers, group, broker.
  2. The first failure stops the rest and is the one that is shown.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from demo import chart, pipeline, topics, verify
from demo.data import Slice
from demo.pipeline import Status
from demo.progress import Board
from demo.session import spark_session
from demo.steps import Producers, reporter, stop_signals
from demo.watch import Worst, watch


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run was asked for. `bootstrap` is empty for a broker of its own."""

    part: Slice
    work: Path
    days_per_second: float
    bootstrap: str = ""
    again: bool = False


def run(settings: Settings, board: Board) -> bool:
    """Run it all; True when every window was right."""
    shutil.rmtree(settings.work / "checkpoint", ignore_errors=True)  # of an earlier run, on topics that are gone
    with _broker(settings.bootstrap) as bootstrap:
        board.step(f"broker at {bootstrap}")
        topics.create_topics(bootstrap, again=settings.again)
        worst = Streams(settings, bootstrap, board).run()
        board.step("all windows are written")
        board.console.print(worst.table())
        results = list(verify.read_results(bootstrap))
        verdict = verify.verify(results, settings.part, board.say)
        picture = settings.work / "delays.png"
        chart.draw(results, picture)
        board.step(f"chart in {picture}")
    board.step("done")
    return verdict.passed


@contextmanager
def _broker(bootstrap: str) -> Iterator[str]:
    """The address of the broker: the one that was given, or one in a temporary folder for the length of the block."""
    if bootstrap:
        yield bootstrap
        return
    from barnabas.testing import Broker

    with Broker() as broker:
        yield broker.bootstrap_servers


class Streams:
    """Everything that runs at the same time: three producers, the pipeline and the watching group."""

    def __init__(self, settings: Settings, bootstrap: str, board: Board) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._board = board
        self._stop_watching = threading.Event()
        self._results: int | None = None  # how many records the finished pipeline wrote

    def run(self) -> Worst:
        """Run until the last window is written and watched; the first failure is raised, after all else was stopped."""
        with ThreadPoolExecutor(max_workers=4, thread_name_prefix="demo") as pool:
            producers = Producers(pool, self._bootstrap, self._settings.part, self._board)
            try:
                watching = pool.submit(self._watch)
                self._run_pipeline(producers, watching)
                self._results = sum(last - first for first, last in topics.end_offsets(self._bootstrap, topics.RESULTS).values())
                return watching.result()
            finally:
                producers.stop.set()
                self._stop_watching.set()

    def _run_pipeline(self, producers: Producers, watching: Future[Worst]) -> None:
        closed = self._settings.part.closing - pd.Timedelta(pipeline.WATERMARK_DELAY)

        def is_closed(status: Status) -> bool:
            if stopped.is_set():
                raise KeyboardInterrupt
            producers.raise_failure()
            if watching.done():
                watching.result()
            return bool(status.watermark) and pd.Timestamp(status.watermark) >= closed

        reference = producers.start_reference()
        # From here on a signal is an event: an exception in the middle of a call to the JVM leaves a broken connection.
        with spark_session(self._settings.work) as spark, stop_signals() as stopped:
            self._board.step("Spark is up")
            reference.result()
            query = pipeline.start(spark, self._bootstrap, self._settings.work / "checkpoint")
            self._board.step("the pipeline runs: the year begins")
            producers.start_streams(self._settings.days_per_second)
            pipeline.follow(query, reporter(self._board, producers.stream_records()), is_closed)

    def _watch(self) -> Worst:
        task = self._board.task("windows watched")

        def enough(seen: int) -> bool:
            return self._stop_watching.is_set() or (self._results is not None and seen >= self._results)

        return watch(self._bootstrap, self._board.say, task.update, enough)
