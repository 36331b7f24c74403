"""The cleaner process: `python -m barnabas.server.cleaning.worker`. The broker starts it for the first log to clean.

Takes orders on standard input and reports on standard output, one JSON object a line:

    in     {"clean": number, "task": {...}} | {"cancel": number} | {"bytes_per_second": rate}
    out    {"clean": number, ...} with "group": [...], "progress": [read, written], "done": [...], "corrupt": [path, position, reason],
           "failed": [errno, text] or "cancelled": true

Rules
  1. The worker ends when its standard input ends, that is, also after a crash of the broker. If the kernel can do so, it kills the worker
     with the broker, before any process learns of the broker's end. So a process that then removes the data folder is alone in it. The
     worker leaves `.cleaned` files; the next cleaning or start of that log removes them.
  2. The worker writes only these files, and runs at a lower priority than the broker.
  3. The first log of more than `COMPILED_FROM_BYTES` makes the worker load numpy and numba. Loading takes 120 MB of memory and 0.4 s of
     CPU time, in which plain Python cleans 24 MB.

Each log in cleaning has its own thread; the kernels release the interpreter's lock.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from barnabas.errors import BarnabasError, CorruptLog
from barnabas.signals import die_with_parent
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.compaction.engine import Engine
from barnabas.storage.compaction.plain import PlainEngine
from barnabas.storage.compaction.task import CleaningTask
from barnabas.storage.files import OsFiles
from barnabas.streams import open_missing_streams

logger = logging.getLogger(__name__)  # writes to the broker's standard error

EXIT_ALONE = 3  # the broker does not read the answers any more
NICENESS = 10
COMPILED_FROM_BYTES = 24 * 1024 * 1024
PROGRESS_EVERY_S = 0.5
LONGEST_WAIT_S = 0.25  # of one sleep, so that a cancelled or sped-up cleaning reacts soon


class Cancelled(BarnabasError):
    """The broker has cancelled the cleaning."""


class Throttle:
    """Limits the reads and writes of all threads together to `bytes_per_second`."""

    def __init__(self) -> None:
        self.bytes_per_second = float("inf")
        self._lock = threading.Lock()
        self._free_at = time.monotonic()  # when the rate allows the next bytes

    def spend(self, size: int) -> float:
        """Count `size` bytes. Returns the seconds to wait."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + size / self.bytes_per_second
            return self._free_at - now


class Worker:
    def __init__(self) -> None:
        self._out_lock = threading.Lock()
        self._engine_lock = threading.Lock()
        self._compiled: Engine | None = None
        self._may_compile = find_spec("numba") is not None
        self._throttle = Throttle()
        self._cancelled: set[int] = set()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            order = json.loads(line)
            if "clean" in order:
                arguments = order["clean"], CleaningTask.from_json(json.dumps(order["task"]))
                threading.Thread(target=self._clean, args=arguments, daemon=True).start()
            elif "cancel" in order:
                self._cancelled.add(order["cancel"])
            else:
                self._throttle.bytes_per_second = order["bytes_per_second"]
        os._exit(0)  # at once, without waiting for the other threads

    def _clean(self, number: int, task: CleaningTask) -> None:
        with self._reported(number):
            meter = Meter(self, number, self._throttle)
            cleaning = clean(task, OsFiles(), self._engine_for(sum(s.size for s in task.segments)), meter.count)
            while True:
                try:
                    group = next(cleaning)
                except StopIteration as end:
                    meter.report()
                    self.say(clean=number, done=end.value)
                    return
                self.say(clean=number, group=group)

    @contextmanager
    def _reported(self, number: int) -> Iterator[None]:
        """Tell the broker how a cleaning failed."""
        try:
            yield
        except Cancelled:
            self.say(clean=number, cancelled=True)
        except CorruptLog as error:
            self.say(clean=number, corrupt=[error.path, error.position, error.reason])
        except OSError as error:
            self.say(clean=number, failed=[error.errno, str(error)])
        except Exception as error:  # noqa: BLE001 - the broker must hear of any failure, and other cleanings must continue
            self.say(clean=number, failed=[None, f"{type(error).__name__}: {error}"])
        finally:
            self._cancelled.discard(number)

    def _engine_for(self, size: int) -> Engine:
        with self._engine_lock:
            if self._compiled is None and size >= COMPILED_FROM_BYTES and self._may_compile:
                try:
                    from barnabas.storage.compaction.compiled import CompiledEngine
                except Exception as error:  # noqa: BLE001 - numba may not fit the machine, or have no folder for compiled code
                    logger.warning("event=compacting-without-numba error=%r", error)
                    self._may_compile = False
                else:
                    self._compiled = CompiledEngine(secrets.randbits(63))
            return self._compiled if self._compiled is not None else PlainEngine()

    def is_cancelled(self, number: int) -> bool:
        return number in self._cancelled

    def say(self, **fields: Any) -> None:
        data = json.dumps(fields).encode() + b"\n"
        with self._out_lock:
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except BrokenPipeError:  # the broker was killed: work here could collide with that of the next cleaner process
                os._exit(EXIT_ALONE)


class Meter:
    """Counts the bytes that one cleaning reads and writes. Reports them from time to time, keeps to the rate, and ends a cancelled
    cleaning.
    """

    def __init__(self, worker: Worker, number: int, throttle: Throttle) -> None:
        self._worker = worker
        self._number = number
        self._throttle = throttle
        self._read = self._written = 0
        self._reported_at = time.monotonic()

    def count(self, read: int, written: int) -> None:
        self._read += read
        self._written += written
        if time.monotonic() - self._reported_at > PROGRESS_EVERY_S:
            self.report()
        wait = self._throttle.spend(read + written)
        while True:
            if self._worker.is_cancelled(self._number):
                raise Cancelled
            if wait <= 0:
                return
            time.sleep(min(wait, LONGEST_WAIT_S))
            wait -= LONGEST_WAIT_S

    def report(self) -> None:
        self._worker.say(clean=self._number, progress=[self._read, self._written])
        self._read = self._written = 0
        self._reported_at = time.monotonic()


def main() -> None:
    # Ctrl-C in the terminal is meant for the broker, which ends this process itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    open_missing_streams()
    die_with_parent()  # the parent thread belongs to a pool that lives as long as the broker
    give_way()
    Worker().run()


def give_way() -> None:
    """Run at low priority: when the processor is idle, and otherwise with a small share of it.

    With autogroups, Linux first shares processors among sessions. This process has its own session, so the session gets the same niceness.
    """
    os.nice(NICENESS)
    if os.getsid(0) == os.getpid():  # otherwise the session contains other processes
        with suppress(OSError), open("/proc/self/autogroup", "w") as group:
            group.write(str(NICENESS))


if __name__ == "__main__":
    main()
