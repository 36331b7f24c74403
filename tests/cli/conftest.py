"""The real command line in this process, against one broker for each module."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from barnabas.cli.main import run
from barnabas.testing import Broker
from tests.retention import NO_RETENTION_CHECKS

UNUSED = "127.0.0.1:1"  # nothing listens on port 1


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ended]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """The broker's address. Set BARNABAS_TEST_BOOTSTRAP to run the same tests against another Kafka."""
    other = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if other:
        yield other
        return
    with Broker(NO_RETENTION_CHECKS) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run one command as a user would: `command("topic", "list", stdin=b"...")`."""
    for name in [name for name in os.environ if name.startswith("BARNABAS_")]:
        monkeypatch.delenv(name)

    def execute(*arguments: object, stdin: bytes = b"") -> Ended:
        out, err = (  # with the error handlers of the program's own streams
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)
            for errors in ("surrogateescape", "backslashreplace")
        )
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = run([str(argument) for argument in arguments])
        return Ended(code, out.buffer.getvalue(), err.buffer.getvalue().decode())

    return execute


@pytest.fixture
def kafka_command(command: Command, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same, with the module's broker as the cluster."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", bootstrap)
    return command


numbers = count()


@pytest.fixture
def name() -> str:
    """A name for a topic or group that no other test uses."""
    return f"t{os.getpid()}-{next(numbers)}"


@pytest.fixture
def topic(kafka_command: Command, name: str) -> str:
    """An empty topic with two partitions."""
    assert kafka_command("topic", "create", name, "-p", 2).code == 0
    eventually(lambda: kafka_command("topic", "describe", name).code == 0)
    return name


def ignoring_sigint(command: Sequence[str]) -> list[str]:
    """`command` as it is started where SIGINT is ignored."""
    return ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]


def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    """Ask until it holds: a cluster of several nodes tells what it accepted a moment later."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
