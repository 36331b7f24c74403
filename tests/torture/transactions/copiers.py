"""The copiers as processes: started, killed, started again when they end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.kafka import fetch, java

from barnabas.testing.children import Child
from tests.torture.transactions.plan import (
    ABORTED_SHARE,
    BATCH_RECORDS,
    GROUP,
    SESSION_TIMEOUT_MS,
    SHARED,
    TRANSACTION_TIMEOUT_MS,
    output_of,
)

CHECKOUT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).parent / "java" / "Copier.java"
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
COMPILE_S = 120.0


class Copier:
    """One instance: a command that is run again and again."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.ends = 0  # exits without a kill: the client could not continue
        self._command = command
        self._log = log
        self._process: Child[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = Child([*self._command], cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def keep(self) -> None:
        """Start it again if it has ended on its own."""
        if self._process is not None and self._process.poll() is not None:
            self.ends += 1
            self.start()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


class Copiers:
    """One copier of each client."""

    def __init__(self, bootstrap: str, seed: int, *, with_java: bool) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="barnabas-copiers-")
        self.folder = Path(self._scratch.name)
        commands = {
            "confluent": _python("confluent", bootstrap, seed),
            "confluent-2": _python("confluent", bootstrap, seed + 1, "confluent-2"),
            "asynchronous": _python("asynchronous", bootstrap, seed),
        }
        if with_java:
            del commands["confluent-2"]
            commands["java"] = self._java(bootstrap, seed)
        self.all = [Copier(name, command, self.folder / f"{name}.log") for name, command in commands.items()]

    def _java(self, bootstrap: str, seed: int) -> list[str]:
        jars = fetch()
        subprocess.run(
            ["javac", "-cp", f"{jars}/*", "-d", str(self.folder), str(SOURCE)], check=True, timeout=COMPILE_S, capture_output=True
        )
        options = {
            "bootstrap": bootstrap,
            "name": "java",
            "seed": seed,
            "group": GROUP,
            "input": SHARED,
            "output": output_of(SHARED),
            "batch": BATCH_RECORDS,
            "aborted-share": ABORTED_SHARE,
            "session-timeout-ms": SESSION_TIMEOUT_MS,
            "transaction-timeout-ms": TRANSACTION_TIMEOUT_MS,
        }
        command = java("Copier", *(f"{name}={value}" for name, value in options.items()), jvm=JVM)
        at = command.index("-cp") + 1
        command[at] = f"{self.folder}:{command[at]}"
        return command

    def __enter__(self) -> Self:
        for each in self.all:
            each.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for each in self.all:
            each.kill()
        self._scratch.cleanup()

    @property
    def ends(self) -> dict[str, int]:
        return {each.name: each.ends for each in self.all}

    def keep(self) -> None:
        for each in self.all:
            each.keep()


def _python(module: str, bootstrap: str, seed: int, name: str = "") -> list[str]:
    return [sys.executable, "-m", f"tests.torture.transactions.{module}", bootstrap, name or module, str(seed)]
