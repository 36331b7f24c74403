"""The server that clients meet: a barnabas broker, or, to prove the tests themselves, Apache Kafka (`--server=kafka`).

Clients of versions that Kafka 4 dropped are proven with `--server=kafka-3`.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.kafka import KafkaNode
from tools.kafka_3 import Kafka3OnZooKeeper
from tools.kafka_cluster import KafkaCluster

from barnabas.testing import Broker
from tests.retention import NO_RETENTION_CHECKS
from tests.server.cluster.processes import three_brokers

CONFIG = {
    **NO_RETENTION_CHECKS,
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "3",
    "message.max.bytes": "2000000",
    "num.partitions": "1",
}
WARNINGS_OF_OTHERS = [
    "ignore:(read|open)_text is deprecated:DeprecationWarning",  # kafka-python loads its schemas this way
]
SOURCES = Path(__file__).parent
NODES: dict[str, type[KafkaNode]] = {"kafka": KafkaNode, "kafka-3": Kafka3OnZooKeeper}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """The facts that a client needs."""

    kind: str
    bootstrap: str
    data_dir: Path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server", choices=["barnabas", "kafka", "kafka-3"], default="barnabas", help="whom the interop tests talk to"
    )


def pytest_configure(config: pytest.Config) -> None:
    for warning in WARNINGS_OF_OTHERS:
        config.addinivalue_line("filterwarnings", warning)


@contextmanager
def running(kind: str, data_dir: Path | None = None) -> Iterator[Server]:
    """A server of a kind; it is stopped cleanly at the end, and a given data folder stays."""
    if kind in NODES:
        with NODES[kind](config=CONFIG, heap="512m", data_dir=data_dir) as node:
            yield Server(kind, node.bootstrap, node.data_dir)
    else:
        with Broker(config=CONFIG, data_dir=data_dir) as broker:
            yield Server(kind, broker.bootstrap_servers, broker.data_dir)


@contextmanager
def running_three(kind: str) -> Iterator[str]:
    """Three servers of a kind as a cluster; where they are."""
    if kind == "kafka":
        with KafkaCluster(3, heap="512m") as cluster:
            yield cluster.bootstrap
    else:
        with three_brokers({}) as brokers:
            yield ",".join(broker.bootstrap_servers for broker in brokers)


@pytest.fixture(scope="session")
def server_kind(request: pytest.FixtureRequest) -> str:
    kind = request.config.getoption("--server", default="barnabas")
    assert isinstance(kind, str)
    return kind


@pytest.fixture(scope="session")
def server(server_kind: str) -> Iterator[Server]:
    with running(server_kind) as found:
        yield found


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names that no other test uses."""
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")[:80]
    return lambda what: f"{test}-{what}-{next(_numbers)}"


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that `go/` builds."""
    go = shutil.which("go")
    assert go is not None, "these tests need the Go tool chain (go.dev)"
    target = tmp_path_factory.mktemp("go") / "interop"
    subprocess.run([go, "build", "-o", str(target), "."], cwd=SOURCES / "go", check=True)
    return target


@pytest.fixture(scope="session")
def js_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `js/` and its packages, outside the checkout."""
    npm = shutil.which("npm")
    assert npm is not None, "these tests need Node.js and npm (Debian packages: nodejs npm)"
    target = tmp_path_factory.mktemp("js") / "program"
    shutil.copytree(SOURCES / "js", target)
    subprocess.run([npm, "ci", "--silent", "--no-audit", "--no-fund", "--omit=optional"], cwd=target, check=True)
    return target
