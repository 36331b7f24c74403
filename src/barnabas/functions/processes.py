"""The processes that run functions.

Rules
  1. A process runs one call at a time; a call is for some thousand rows. Calls wait for a process if MAX_FUNCTION_PROCESSES have one.
  2. A call that is cancelled, or that takes longer than FUNCTION_CALL_S, ends its process. So whatever the code of a function does, it
     holds nobody but its own statement.
  3. A process gets no settings and no secrets of the server: its environment has the search path alone.
  4. A process whose answer was not read, whatever kept its caller from it, ends too: the next caller would take the answer for its own.
  5. An idle process is kept for the next call, also of other functions; the last user of the pool ends all.
"""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from barnabas import limits
from barnabas.functions.definition import CallFailed, Function
from barnabas.functions.frames import decoded, encoded, receive, send

KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "TMPDIR")
TICK_S = 0.05  # between two looks whether a call was cancelled
SHOWN = {-9: "it was killed, perhaps for want of memory", -11: "it crashed"}


class Cancelled(CallFailed):
    """Nobody waits for the call any more."""


class Process:
    """One process. For one thread at a time."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "barnabas.functions.worker", str(limits.MAX_FUNCTION_MEMORY_BYTES)], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, bufsize=-1,
        )  # fmt: skip
        self._known: set[str] = set()
        self._is_ready = False
        self._owes_answer = True  # that it is ready

    def call(
        self, function: Function, kind: pa.DataType, batch: pa.RecordBatch, is_cancelled: Callable[[], bool]
    ) -> pa.Array[Any]:
        """The results of a call. Raises CallFailed; the process has ended then, if `is_alive` says so."""
        if not self._is_ready:
            self._answer(function, is_cancelled)
            self._is_ready = True
        if function.digest not in self._known:
            schema = pa.schema([pa.field("r", kind)])
            self._asked({"define": msgspec.to_builtins(function)}, schema.serialize(), function, is_cancelled)
            self._known.add(function.digest)
        payload = self._asked({"call": function.digest}, encoded(batch), function, is_cancelled)
        return decoded(payload).column(0)

    def _asked(self, head: dict[str, Any], payload: Any, function: Function, is_cancelled: Callable[[], bool]) -> bytes:
        assert self._process.stdin is not None
        self._owes_answer = True
        try:
            send(self._process.stdin, head, payload)
        except OSError:
            raise self._ended(function) from None
        return self._answer(function, is_cancelled)

    def _answer(self, function: Function, is_cancelled: Callable[[], bool]) -> bytes:
        assert self._process.stdout is not None
        waiting = select.poll()
        waiting.register(self._process.stdout, select.POLLIN)
        deadline = time.monotonic() + limits.FUNCTION_CALL_S
        while not waiting.poll(TICK_S * 1000):
            if is_cancelled():
                self.close()
                raise Cancelled(f"the call of {function.name} was cancelled")
            if time.monotonic() > deadline:
                self.close()
                raise CallFailed(f"a call of the function {function.name} took longer than {limits.FUNCTION_CALL_S:.0f} seconds")
        try:
            found = receive(self._process.stdout, limits.MAX_FUNCTION_MESSAGE_BYTES)
        except ValueError as error:
            self.close()
            raise CallFailed(f"the results of the function {function.name} are too large: {error}") from None
        if found is None:
            raise self._ended(function)
        self._owes_answer = False
        head, payload = found
        if "message" in head:
            raise CallFailed(head["message"], head["detail"])
        return payload

    def _ended(self, function: Function) -> CallFailed:
        self.close()
        code = self._process.returncode
        reason = SHOWN.get(code, f"exit code {code}" if code >= 0 else f"signal {-code}")
        return CallFailed(f"the process of the function {function.name} ended: {reason}")

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a call."""
        return self.is_alive and not self._owes_answer

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it; safe to call twice."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except OSError:  # what was not sent
                    continue


class Workers:
    """The processes of this process. For several threads at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[Process] = []
        self._busy = self._users = 0

    def join(self) -> None:
        """A user more."""
        with self._changed:
            self._users += 1

    def leave(self) -> None:
        """A user less; the last one ends the idle processes."""
        with self._changed:
            self._users -= 1
            is_last = not self._users
        if is_last:
            self.close()

    def close(self) -> None:
        """End the idle processes."""
        with self._changed:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def call(
        self, function: Function, kind: pa.DataType, columns: Sequence[Any], rows: int, is_cancelled: Callable[[], bool]
    ) -> pa.Array[Any]:
        """The results of a function for some rows. Raises CallFailed."""
        names = [str(place) for place in range(len(columns))]
        whole = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
        batch = pa.record_batch([*whole, pa.nulls(rows)], [*names, "rows"])
        process = self._taken(function, is_cancelled)
        try:
            return process.call(function, kind, batch, is_cancelled)
        finally:
            self._give_back(process)

    def _taken(self, function: Function, is_cancelled: Callable[[], bool]) -> Process:
        with self._changed:
            while self._busy >= limits.MAX_FUNCTION_PROCESSES:
                if is_cancelled():
                    raise Cancelled(f"the call of {function.name} was cancelled")
                self._changed.wait(TICK_S)
            self._busy += 1
            found = self._idle.pop() if self._idle else None
        try:
            if found is not None and not found.is_alive:
                found.close()
                found = None
            return Process() if found is None else found
        except BaseException:
            self._leave()
            raise

    def _give_back(self, process: Process) -> None:
        with self._changed:
            is_kept = self._users > 0 and process.is_idle
            if is_kept:
                self._idle.append(process)
        if not is_kept:
            process.close()
        self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify()


WORKERS = Workers()
atexit.register(WORKERS.close)
