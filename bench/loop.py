"""A loop that is measured beside the servers, in a process of its own, so that its CPU time is measured separately."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from barnabas.testing.children import Child


class Loop:
    """A module of this package that prints its port when it listens, and runs until it is killed."""

    name = ""

    def __init__(self) -> None:
        self.address = ("127.0.0.1", 0)
        self.ready_after_s = 0.0
        self._stack = ExitStack()
        self._process: Child[str] | None = None

    def _command(self, stack: ExitStack) -> list[str]:
        """The module and its arguments. Resources of the command go into `stack`, which releases them after the end of the
        process."""
        raise NotImplementedError

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            command = [sys.executable, "-m", *self._command(stack)]
            began = time.perf_counter()
            self._process = stack.enter_context(Child(command, stdout=subprocess.PIPE, text=True))
            stack.callback(self._process.end)
            assert self._process.stdout is not None
            port = self._process.stdout.readline()
            if not port:
                raise RuntimeError(f"{self.name}: the process ended with {self._process.wait()}")
            self.ready_after_s = time.perf_counter() - began
            self.address = ("127.0.0.1", int(port))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()
