"""Fixtures and checks for every test: the same examples in every run, however slow the machine is; processes that start quickly
and can be interrupted; few files that stay open behind it."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.syntax import parsed
from tests.waiting import wait_while

if TYPE_CHECKING:
    from barnabas.testing.zookeeper import ZooKeeper

settings.register_profile(
    "barnabas", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("barnabas")

# If the environment forbids compiled modules on disk, every broker and command of a test would compile all of barnabas. This takes longer
# than the rest of its start. So the compiled modules go to a folder of the tests.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.pycache_prefix = os.environ.setdefault(
        "PYTHONPYCACHEPREFIX", str(Path(__file__).resolve().parent.parent / ".cache/pycache")
    )
    sys.dont_write_bytecode = False  # of this process too: pytest rewrites the asserts of every file with tests

# A shell makes its background processes ignore SIGINT, and nohup makes them ignore SIGHUP. Child processes inherit this, so a test could
# not interrupt the processes that it starts. Children do not inherit a handler: they get the system's default.
for _each in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_each) is signal.SIG_IGN:
        signal.signal(_each, lambda _number, _frame: None)

# py4j logs a traceback when an object is collected after its gateway has ended, at any time. Python 3.11 reads the source again to write
# a traceback, and if this happens within `ast.parse`, the parse fails.
logging.getLogger("py4j").setLevel(logging.WARNING)

DESCRIPTORS = Path("/proc/self/fd")
MOST_LEFT_OPEN = 8  # files: a log or two
CLOSED_WITHIN_S = 10.0
MANY_MODULES = 50
KAFKA_PYTHON = re.compile(r"^\s*(?:from|import) kafka\b", re.MULTILINE)


def open_files() -> set[tuple[str, str]]:
    """Descriptors of this process that are of files, and of which; sockets and pipes may belong to threads of clients, which end later."""
    found = set()
    for descriptor in os.listdir(DESCRIPTORS) if DESCRIPTORS.exists() else ():
        with suppress(FileNotFoundError):  # the listing's own is closed by now
            path = os.readlink(DESCRIPTORS / descriptor)
            if path.startswith("/") and not path.startswith(("/dev/", "/proc/")):
                found.add((descriptor, path))
    return found


@pytest.fixture(autouse=True)
def few_files_stay_open() -> Iterator[None]:
    """A log has plain descriptors, which nobody closes for a test that forgets to; thousands of them leave none for the tests after it."""
    before = open_files()
    yield
    left = open_files() - before
    if len(left) <= MOST_LEFT_OPEN:
        return
    gc.collect()

    def too_many() -> list[str]:
        """A thread of a server may close the files of what the test has dropped."""
        still = left & open_files()
        return sorted(path for _, path in still) if len(still) > MOST_LEFT_OPEN else []

    wait_while(too_many, "files stay open", within_s=CLOSED_WITHIN_S)


@cache
def uses_kafka_python(path: Path) -> bool:
    """Whether a file imports kafka-python, anywhere in it. Its clients leave sockets open when they are closed, and it cannot be told to
    close them: the garbage collector does, at any time, and warns of each."""
    return KAFKA_PYTHON.search(path.read_text()) is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if uses_kafka_python(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <:ResourceWarning"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The sockets that kafka-python left end with the test that made them, where their warnings are ignored."""
    if uses_kafka_python(item.path):
        gc.collect()


def pytest_collection_finish() -> None:
    """Modules and tests stay: the garbage collector need not visit them at the end of each file."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def garbage_ends_with_its_file() -> Iterator[None]:
    """A socket or a file that nobody closed warns when it is collected. Without this, the warning fails a test of another file.

    Libraries that the file imported stay, and are many objects: the garbage collector need not visit them again.
    """
    modules = len(sys.modules)
    yield
    gc.collect()
    if len(sys.modules) > modules + MANY_MODULES:
        gc.freeze()


@pytest.fixture(scope="module")
def syntax_trees() -> Iterator[None]:
    """For files that parse all the code; see `tests/syntax.py`. The garbage collector waits: it takes three times as long as the parser."""
    gc.disable()
    yield
    parsed.cache_clear()
    gc.enable()


@pytest.fixture(scope="session")
def shared_zookeeper() -> Iterator[ZooKeeper]:
    """One server for all tests that stay below a root of their own and leave the server running."""
    from barnabas.testing.zookeeper import ZooKeeper

    with ZooKeeper(longest_session_ms=60_000) as running:  # so that no session ends but those that a test ends
        yield running
