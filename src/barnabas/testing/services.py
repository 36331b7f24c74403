"""The services beside a broker for tests: a child process that ends with this one."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import barnabas
from barnabas.errors import BarnabasError
from barnabas.services.supervisor import spawn

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
URL = re.compile(r"accepts connections on (https?://\S+)")


class ServicesFailed(BarnabasError):
    """The services did not start."""


class ServicesProcess:
    """One service, on a free port of 127.0.0.1 by default.

    Args:
        name: the name in the table of services.
        properties: client settings, including `bootstrap.servers`.
        log: the file for its standard error.
        listener: the address on which it listens.

    Raises:
        ServicesFailed: the service did not become ready; the text has its standard error.
    """

    def __init__(self, name: str, properties: Mapping[str, str], log: Path, listener: str = "http://127.0.0.1:0") -> None:
        source = str(Path(barnabas.__file__).resolve().parent.parent)
        path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH")) if part)
        with log.open("ab") as errors:
            self._process = spawn(
                {name: listener}, properties, stdout=subprocess.PIPE, stderr=errors.fileno(),
                environment={"PYTHONPATH": path},
            )  # fmt: skip
        try:
            found = URL.search(self._first_line())
        except BaseException:
            self.close()
            raise
        if found is None:
            self.close()
            raise ServicesFailed(f"{name} did not start\n{log.read_text(errors='replace')}")
        self.url = found[1]

    def _first_line(self) -> str:
        assert self._process.stdout is not None
        deadline, line = time.monotonic() + READY_TIMEOUT_S, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n") and selector.select(max(0.0, deadline - time.monotonic())):
                piece = os.read(self._process.stdout.fileno(), 4096)
                if not piece:
                    break
                line += piece
        return line.decode()

    @property
    def pid(self) -> int:
        """The process id of the service."""
        return self._process.pid

    def close(self) -> None:
        """Stop it and wait for its end."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
