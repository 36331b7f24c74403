"""One task of a connector: a thread that works until it is stopped or fails.

The thread also opens the task and leaves it, because what some plug-ins open, such as a connection of `sqlite3`, belongs to one thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.runtime.settings import TaskSettings
from barnabas.engine.job_logs import close_log
from barnabas.engine.jobs import Job, JobProgress
from barnabas.engine.reasons import one_line
from barnabas.engine.stores import progress_of
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
STOP_S = 10.0
PROGRESS_S = 1.0


class Task:
    """What sources and sinks have in common; `engine/running_job.py: Work`.

    Args:
        job: of the task.
        settings: of the task.
        log: of the job.
    """

    def __init__(self, job: Job, settings: TaskSettings, log: logging.Logger) -> None:
        self.job, self.settings, self.log = job, settings, log
        self.stopping = threading.Event()
        self._error: BaseException | None = None
        self._open_error: BaseException | None = None
        self._opened = threading.Event()
        self._settled = False
        self._progress = Progress(job, settings)
        self._thread = threading.Thread(target=self._guarded, name=f"task-{job.name}", daemon=True)

    def start(self) -> None:
        """Connect, and begin to work. Raises what hinders it."""
        self._thread.start()
        self._opened.wait()
        if self._open_error is not None:
            raise self._open_error

    def open(self) -> None:
        """Connect to both sides. Raises what hinders it."""
        raise NotImplementedError

    def work(self) -> None:
        """Work until `stopping`."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """End a call of the plug-in that waits."""

    def leave(self) -> None:
        """Release what belongs to the thread of the task; called behind its work."""

    def release(self) -> None:
        """Release everything; called once, by another thread."""

    def settle(self) -> None:
        """Say that the task works."""
        self._settled = True

    def count(self, rows_in: int, rows_out: int) -> None:
        """Take note of records that came through."""
        self._progress.count(rows_in, rows_out)

    def use(self, topics: Iterable[str]) -> None:
        """Take note of topics that are read or written."""
        self._progress.topics.update(topics)

    def idle(self) -> None:
        """Nothing came through at the moment."""
        self.settle()
        self.tell()

    def tell(self) -> None:
        """Tell how far it has come, if that was not told."""
        self._progress.tell()

    def _guarded(self) -> None:
        try:
            self.open()
            self._opened.set()
            self.work()
        except BaseException as error:
            if not self._opened.is_set():
                self._open_error = error
            elif not self.stopping.is_set():
                self._error = error
                self.log.error("event=task-failed error=%r", one_line(error), exc_info=error)
        finally:
            self._leave()
            self._opened.set()

    def _leave(self) -> None:
        try:
            self._progress.close()
            self.leave()
        except Exception as error:
            self.log.warning("event=task-not-closed error=%r", one_line(error), exc_info=error)

    def failure(self) -> str | None:
        """Why it has ended, in one line; None while it runs, and after all of its work."""
        return None if self._error is None else one_line(self._error)

    def hindrance(self) -> str | None:
        """Why it tries something again, in one line; None if it does not, or has just begun to."""
        return None

    def has_settled(self) -> bool:
        """Whether it works."""
        return self._settled

    def cancel(self) -> None:
        """Its start ends with its process."""

    def stop(self) -> None:
        """End the work, and release everything."""
        self.stopping.set()
        self.interrupt()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        if self._thread.is_alive():
            self.log.warning("event=task-does-not-end")
        self.release()
        close_log(self.log)


class Progress:
    """Tells how far a task has come, about once a second."""

    def __init__(self, job: Job, settings: TaskSettings) -> None:
        config = ClientConfig.from_options(settings.client)
        self._job = job
        self._store, self._client = progress_of(config), BlockingClient(config)
        self._batch = self._in = self._out = 0
        self._last = (0, 0)
        self.topics: set[str] = set()
        self._told, self._told_s = 0, 0.0

    def count(self, rows_in: int, rows_out: int) -> None:
        """Add a batch."""
        self._batch += 1
        self._in, self._out, self._last = self._in + rows_in, self._out + rows_out, (rows_in, rows_out)
        self.tell()

    def tell(self) -> None:
        """Write what was not written, unless that was a moment ago. A cluster that does not answer is told at the next call."""
        if self._batch == self._told or time.monotonic() - self._told_s < PROGRESS_S:
            return
        rows_in, rows_out = self._last
        told = JobProgress(
            self._job.name, self._job.generation, self._batch, {}, rows_in, rows_out, self._in, self._out,
            at_ms=time.time_ns() // 1_000_000, topics=tuple(sorted(self.topics)),
        )  # fmt: skip
        self._told_s = time.monotonic()
        try:
            self._store.put(self._client, {self._job.name: told})
            self._told = self._batch
        except BarnabasError as error:
            logger.warning("event=progress-not-told job=%s error=%r", self._job.name, str(error))

    def close(self) -> None:
        """Release the connections."""
        self._store.close()
        self._client.close()
