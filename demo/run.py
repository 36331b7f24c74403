"""The whole demo in one command: a broker of its own, the producers, the pipeline, the watching group, the proof, the chart, and the view
in SQL.

How it works
    Producers and the watching group run in threads, Spark's driver in a process of its own. The year begins when the pipeline
    is up. Its pace lets the pipeline write windows while flights are still published. If the year began earlier, the first
    micro-batch would be half a year and take most of the run. When half of the records are read, the driver is killed, and
    another one continues. The pipeline is done when the closing markers have moved its watermark. The group is done when it has
    read all results of the pipeline.

Rules
  1. Everything is stopped cleanly, for every reason of the run's end: query, Spark with its JVM, producers, group, broker.
  2. The first failure stops everything else, and only this failure is shown.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from demo import chart, pipeline, topics, verify
from demo.data import Slice
from demo.pipeline import Status
from demo.progress import Board
from demo.steps import Producers, reporter, stop_signals
from demo.supervise import Driver
from demo.views import run_views
from demo.watch import Worst, watch


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a run. `bootstrap` is empty for a broker of its own."""

    part: Slice
    work: Path
    days_per_second: float
    bootstrap: str = ""
    again: bool = False


def run(settings: Settings, board: Board) -> bool:
    """Run all steps; returns True if every window and the view were right."""
    # a checkpoint of an earlier run belongs to deleted topics
    shutil.rmtree(settings.work / pipeline.CHECKPOINT, ignore_errors=True)
    with _broker(settings.bootstrap) as bootstrap:
        board.step(f"broker at {bootstrap}")
        topics.create_topics(bootstrap, again=settings.again)
        worst, results = Streams(settings, bootstrap, board).run()
        board.step("all windows are written")
        board.console.print(worst.table())
        verdict = verify.verify(results, settings.part, board.say)
        picture = settings.work / "delays.png"
        chart.draw(results, picture)
        board.step(f"chart in {picture}")
        pace = settings.days_per_second
        is_proved = run_views(bootstrap, settings.part, pace, settings.work, board, again=settings.again)
    board.step("done")
    return verdict.passed and is_proved


@contextmanager
def _broker(bootstrap: str) -> Iterator[str]:
    """The address of the given broker, or of a broker in a temporary folder that runs during the block."""
    if bootstrap:
        yield bootstrap
        return
    from barnabas.testing import Broker

    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        yield broker.bootstrap_servers


class Streams:
    """The parts that run at the same time: three producers, the pipeline and the watching group."""

    def __init__(self, settings: Settings, bootstrap: str, board: Board) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._board = board
        self._stop_watching = threading.Event()
        self._count: int | None = None  # number of windows that the finished pipeline wrote

    def run(self) -> tuple[Worst, list[dict[str, Any]]]:
        """Run until the last window is written and watched; returns the worst windows, and all windows.

        Raises the first failure, after everything else is stopped.
        """
        with ThreadPoolExecutor(max_workers=4, thread_name_prefix="demo") as pool:
            producers = Producers(pool, self._bootstrap, self._settings.part, self._board)
            try:
                watching = pool.submit(self._watch)
                with stop_signals() as stopped:
                    self._run_pipeline(producers, watching, stopped)
                results = list(verify.read_results(self._bootstrap))
                self._count = len(results)
                return watching.result(), results
            finally:
                producers.stop.set()
                self._stop_watching.set()

    def _run_pipeline(self, producers: Producers, watching: Future[Worst], stopped: threading.Event) -> None:
        """Run two drivers: one that is killed, and one that finishes the year."""
        reference = producers.start_reference()
        report = reporter(self._board, producers.stream_records())
        half = producers.stream_records() // 2
        closed = self._settings.part.closing - pd.Timedelta(pipeline.WATERMARK_DELAY)

        def is_closed(status: Status) -> bool:
            return bool(status.watermark) and pd.Timestamp(status.watermark) >= closed

        def follow(driver: Driver, before: Status | None, is_over: Callable[[Status], bool]) -> Status:
            for status in driver.statuses():
                if stopped.is_set():
                    raise KeyboardInterrupt
                producers.raise_failure()
                if watching.done():
                    watching.result()
                whole = status if before is None else before.then(status)
                report(whole)
                if is_over(whole):
                    return whole
            raise AssertionError("statuses have no end")

        with Driver(self._bootstrap, self._settings.work) as driver:
            driver.wait_until_up()
            self._board.step("Spark is up")
            reference.result()
            self._board.step("the pipeline runs: the year begins")
            producers.start_streams(self._settings.days_per_second)
            first = follow(driver, None, lambda s: is_closed(s) or (s.rows >= half and s.doing == pipeline.AT_WORK))
            driver.kill()
            self._board.step(f"[bold red]the driver is killed[/bold red] (SIGKILL) after {first.batches} micro-batches")
        with Driver(self._bootstrap, self._settings.work) as driver:
            driver.wait_until_up()
            self._board.step("[bold]another driver goes on[/bold] from the checkpoint")
            follow(driver, first, is_closed)

    def _watch(self) -> Worst:
        task = self._board.task("windows watched")

        def enough(seen: int) -> bool:
            return self._stop_watching.is_set() or (self._count is not None and seen >= self._count)

        return watch(self._bootstrap, self._board.say, task.update, enough)
