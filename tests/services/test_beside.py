"""Services beside a broker: by the fixture of pytest and by `barnabas start`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Producer

from barnabas.cli.services_beside import ServicesAsked, ServicesBeside, beside
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Serializer
from barnabas.testing import Broker
from tests.processes import is_alive
from tests.waiting import wait_until

START = [sys.executable, "-m", "barnabas.cli", "start", "--log-level", "warning"]
HERE = ["--listeners", "PLAINTEXT://127.0.0.1:0"]


def fetched(url: str) -> bytes:
    with urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
        return body


@contextmanager
def started(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [*START, "--data-dir", str(folder / "data"), *options]
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def child_of(process: subprocess.Popen[str]) -> int:
    found: list[str] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return int(found[0])


@pytest.mark.usefixtures("stand_in")
def test_the_fixture_has_a_registry_that_ends_with_it() -> None:
    with Broker() as broker:
        url = broker.schema_registry_url
        assert broker.schema_registry_url == url
        assert fetched(url) == b"{}"
    with pytest.raises(OSError, match="refused"):
        fetched(url)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_child_restarts_and_dies_with_the_broker(tmp_path: Path, how: signal.Signals) -> None:
    with started(tmp_path, *HERE, "--registry-listener", "http://127.0.0.1:0") as process:
        assert process.stdout is not None
        assert "broker 1 accepts" in process.stdout.readline()
        assert "schema registry accepts" in process.stdout.readline()
        os.kill(child_of(process), signal.SIGKILL)
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        assert fetched(found[0]) == b"{}"
        child = child_of(process)
        process.send_signal(how)
        process.wait(30)
        wait_until(lambda: not is_alive(child), "the services outlive the broker")
    assert "the services ended with exit code -9" in (tmp_path / "errors").read_text()


def test_sql_beside_a_broker_knows_the_registry(tmp_path: Path) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
    places = (
        "--registry-listener",
        "http://127.0.0.1:0",
        "--sql-listener",
        "http://127.0.0.1:0",
        "--postgres-listener",
        "127.0.0.1:0",
    )
    with started(tmp_path, *HERE, *places) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        (broker,) = re.findall(r"PLAINTEXT://(\S+)", lines[0])
        registry, sql = re.findall(r"http://\S+", "".join(lines))
        with RegistryClient(registry) as client:
            value = Serializer(client, "typed", schema=schema).encode({"id": 7})
        producer = Producer({"bootstrap.servers": broker})
        producer.produce("typed", value)
        assert producer.flush(30) == 0
        with urlopen(Request(f"{sql}/sql", data=b"select * from typed", method="POST"), timeout=60) as answer:
            assert json.loads(answer.read())["rows"] == [[7]]


def test_a_broker_on_another_listener_runs_alone_unless_asked(tmp_path: Path) -> None:
    with started(tmp_path, *HERE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.communicate(timeout=30)[0] == ""
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--services", "nope"], "there is no service 'nope'"),
        (["--registry-listener", "http://127.0.0.1:TAKEN"], "--registry-listener"),
        (["--registry-listener", "ftp://a"], "is not http://HOST:PORT"),
        (["--sql-listener", "http://127.0.0.1:TAKEN"], "--sql-listener"),
        (["--sql-listener", "http://127.0.0.1:0", "--postgres-listener", "127.0.0.1:TAKEN"], "--postgres-listener"),
        (["--postgres-listener", "nowhere"], "nowhere"),
        (["--no-services", "--services", "registry"], "--no-services"),
    ],
)
def test_impossible_services_end_the_command(tmp_path: Path, options: list[str], line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = [each.replace("TAKEN", str(taken.getsockname()[1])) for each in options]
        command = [*START, "--data-dir", str(tmp_path / "data"), *HERE, *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert line in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.usefixtures("stand_in")
def test_by_default_a_taken_port_costs_one_line_and_the_broker_runs(tmp_path: Path) -> None:
    asked = ServicesAsked(None, False, {"registry": None}, None)
    properties = {"listeners": "PLAINTEXT://127.0.0.1:9092"}
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8081))
            taken.listen()
        except OSError:
            pass  # another program has the port: the same case
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            without = beside(asked, properties, None, "info", by_default=True)
            assert without is not None
            assert not errors.getvalue(), "before the broker is ready"
            (reason,) = (each for each in without.reasons if "registry" in each)
            ServicesBeside(None, [reason]).start("127.0.0.1:9092")
    assert "another program has this port" in errors.getvalue()
    assert errors.getvalue().count("\n") == 1


def test_by_default_only_the_default_listener_has_services() -> None:
    asked = ServicesAsked(None, False, {"registry": None}, None)
    assert beside(asked, {"listeners": "PLAINTEXT://127.0.0.1:0"}, None, "info", by_default=False) is None
