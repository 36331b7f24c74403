"""How `registry start` and `services start` begin: missing libraries, settings that cannot hold, and a cluster that is away."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from barnabas import limits
from barnabas.cli.main import run
from barnabas.services.listener import parse_listener, reached_at
from barnabas.services.settings import NotedSettings, is_secret, shown
from barnabas.services.table import SERVICES, WEB_SERVER
from barnabas.testing import Broker
from barnabas.testing.services import ServicesProcess
from barnabas.tls.settings import HIDDEN
from tests.waiting import wait_until

REGISTRY = ["registry", "start", "--listener", "http://127.0.0.1:0"]
SERVICES_START = ["services", "start", "--registry-listener", "http://127.0.0.1:0"]


@pytest.fixture
def away() -> Iterator[str]:
    """An address that nobody listens to, and that nobody else gets."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("library", [*WEB_SERVER, *SERVICES["registry"].libraries])
@pytest.mark.parametrize("command", [REGISTRY, SERVICES_START, ["start", "--services", "registry"]], ids=lambda words: words[0])
def test_a_missing_library_is_one_line(
    command: list[str], library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    folder = ["--data-dir", str(tmp_path / "data")] if command[0] == "start" else []
    assert run([*command, *folder]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert library in errors
    assert "pip install 'barnabas[registry]'" in errors


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("kafkastore.init.timeout.ms=soon", "kafkastore.init.timeout.ms"),
        ("listener.ssl.client.auth=perhaps", "listener.ssl.client.auth: one of none, requested, required"),
        ("listener.ssl.client.auth=required", "unless the listener is https://"),
        ("authentication.method=BASIC", "unless security.protocol has SASL"),
        ("security.protocol=SASL", "security.protocol"),
        ("listeners=http://0.0.0.0:8081", "use --listener"),
        ("kafkastore.bootstrap.servers=a:1", "use --bootstrap-server"),
        (
            "kafkastore.ssl.key.password=geheim",
            "'[hidden]' for kafkastore.ssl.key.password: not set here; use ssl.key.password",
        ),
        ("resource.extension.class=a.B", "use ACLs of the cluster"),
        ("schema.compatibility.level=up", "one of none, backward"),
        ("kafkastore.topic.replication.factor=0", "a number from 1 on"),
    ],
)
def test_a_setting_that_cannot_hold_is_one_line(setting: str, part: str, away: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*REGISTRY, "-b", away, "-X", setting]) == 2
    errors = capsys.readouterr().err
    assert (errors.count("\n"), part in errors) == (1, True), errors


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        (["listener.ssl.enabled.protocols=SSLv3"], "listener.ssl.enabled.protocols"),
        ([], "listener.ssl.keystore.location"),
        (
            ["listener.ssl.client.auth=required", "listener.ssl.principal.mapping.rules=RULE:("],
            "listener.ssl.principal.mapping.rules",
        ),
    ],
)
def test_a_tls_setting_that_cannot_hold_names_its_key(
    settings: list[str], part: str, away: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for setting in settings for word in ("-X", setting)]
    assert run(["registry", "start", "--listener", "https://127.0.0.1:0", "-b", away, *words]) == 2
    errors = capsys.readouterr().err
    assert (errors.count("\n"), part in errors) == (1, True), errors


def test_a_cluster_that_stays_away_ends_the_command(
    away: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "SERVICE_SILENT_S", 0.05)
    monkeypatch.setattr(limits, "SERVICE_CLUSTER_RETRY_S", 3600.0)  # the command ends before that
    assert run([*REGISTRY, "-b", away, "-X", "kafkastore.init.timeout.ms=1000"]) == 1
    waiting, ended = capsys.readouterr().err.splitlines()
    assert waiting == f"barnabas: no connection to {away}: Connection refused; waiting for the cluster, 1 s at most"
    assert ended == f"barnabas: no broker of the cluster could be reached in 1 s: no connection to {away}: Connection refused"


def test_a_cluster_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(limits, "SERVICE_SILENT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert run([*REGISTRY, "-b", address, "-X", "kafkastore.init.timeout.ms=1000"]) == 1
    waiting, ended = capsys.readouterr().err.splitlines()
    assert address in waiting
    assert address in ended


def test_a_refused_log_in_ends_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(users={"alice": "of-alice"}) as broker:
        login = {**broker.login(), "sasl.password": "not-hers"}
        words = [word for key, value in login.items() for word in ("-X", f"{key}={value}")]
        assert run([*REGISTRY, "-b", broker.bootstrap_servers, *words]) == 1
    errors = capsys.readouterr().err
    assert (errors.count("\n"), "not-hers" in errors) == (1, False), errors


def test_a_registry_waits_for_its_cluster() -> None:
    with Broker() as broker:
        broker.stop()
        command = [sys.executable, "-m", "barnabas.cli", *REGISTRY, "-b", broker.bootstrap_servers]
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert waiting.stderr is not None
            assert waiting.stdout is not None
            assert "waiting for the cluster, 60 s at most" in waiting.stderr.readline()
            broker.start()
            found = re.search(r"accepts connections on (\S+)", waiting.stdout.readline())
            assert found is not None
            with urlopen(f"{found[1]}/readyz", timeout=10) as answer:
                assert answer.read() == b"ready\n"
            waiting.terminate()
            assert waiting.wait(60) == 0
        finally:
            waiting.kill()
            waiting.communicate()


@pytest.mark.parametrize(
    "key",
    ["sasl.password", "sasl.jaas.config", "ssl.key.password", "listener.ssl.keystore.password", "listener.ssl.keystore.key",
     "ssl.key.pem", "ssl.keystore.key", "sasl.oauthbearer.client.credentials.client.secret", "basic.auth.user.info"],
)  # fmt: skip
def test_secrets_are_not_shown(key: str) -> None:
    assert is_secret(key)
    assert shown({key: "geheim", "ssl.keystore.location": "here"}) == {key: HIDDEN, "ssl.keystore.location": "here"}


def test_the_settings_are_in_the_log_without_passwords(away: str) -> None:
    words = ["-X", "kafkastore.init.timeout.ms=1", "-X", "listener.ssl.keystore.password=geheim", "--log-level", "info"]
    command = [sys.executable, "-m", "barnabas.cli", *REGISTRY, "-b", away, *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "event=services-settings" in ended.stderr
    assert "'kafkastore.init.timeout.ms': '1'" in ended.stderr
    assert "geheim" not in ended.stderr


@pytest.mark.parametrize(
    ("url", "host_name", "reached"),
    [
        ("http://127.0.0.1:1", None, "http://127.0.0.1:1"), ("http://0.0.0.0:1", None, f"http://{socket.gethostname().lower()}:1"),
        ("https://[::]:1", None, f"https://{socket.gethostname().lower()}:1"), ("http://0.0.0.0:1", "Registry-1", "http://registry-1:1"),
    ],
)  # fmt: skip
def test_others_reach_a_service_by_a_name(url: str, host_name: str | None, reached: str) -> None:
    assert str(reached_at(parse_listener(url, 0), host_name)) == reached


def test_what_nobody_asks_for_is_unused() -> None:
    settings = NotedSettings({"a": "1", "b": "2", "ssl.key.password": "3", "c": "4"})
    assert (settings["a"], settings.get("b"), settings.get("d")) == ("1", "2", None)
    assert settings.unused() == ["c"]


def test_a_registry_begins_with_the_level_of_its_settings_and_names_unknown_ones(tmp_path: Path) -> None:
    settings = {"schema.compatibility.level": "full", "surplus.key": "1"}
    with Broker() as broker:
        process = ServicesProcess("registry", {"bootstrap.servers": broker.bootstrap_servers, **settings}, tmp_path / "log")
        try:
            with urlopen(f"{process.url}/config") as answer:
                assert json.load(answer) == {"compatibilityLevel": "FULL"}
            wait_until(lambda: "event=service-setting-unknown key=" in (tmp_path / "log").read_text())
        finally:
            process.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.rpartition("key=")[2] for line in lines if "setting-unknown" in line] == ["surplus.key"]
