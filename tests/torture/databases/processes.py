"""The process of the connectors, started again whenever it ends, as the engine does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

PAUSE_S = 0.2


class Worker:
    """Runs connectors in a process of its own.

    Args:
        log: the file for what the process says.
    """

    def __init__(self, connectors: dict[str, Any], settings: dict[str, str], log: Path) -> None:
        self._command = [
            sys.executable, "-m", "tests.torture.databases.worker", json.dumps({"connectors": connectors, "settings": settings})
        ]  # fmt: skip
        self._log = log
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep)

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def _keep(self) -> None:
        while not self._ended.is_set():
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self._process.wait()
            self._ended.wait(PAUSE_S)

    def kill(self) -> None:
        """Kill it; it comes again."""
        if self._process is not None:
            self._process.kill()

    def tell_stacks(self) -> None:
        """Let it write where its threads are into its log."""
        if self._process is not None:
            self._process.send_signal(signal.SIGUSR1)

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.kill()
        self._thread.join()
