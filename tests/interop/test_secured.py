"""franz-go, sarama and kafkajs over TLS with certificates, and logged in by every mechanism with passwords that they have."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from barnabas.testing import Broker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
USER, PASSWORD = "alice", 'a "b\\ c,=ü'
SCENARIOS = {"franz": ["codec-none", "admin"], "sarama": ["codec-none", "admin"], "kafkajs": ["codec-none", "admin"]}
MECHANISMS = {
    "franz": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
    "sarama": ["PLAIN"],
    "kafkajs": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
}
LOGINS = [(client, mechanism) for client, mechanisms in MECHANISMS.items() for mechanism in mechanisms]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker whose listener without SASL requires a certificate."""
    listeners = ",".join(f"{name}://127.0.0.1:0" for name in ("SASL_SSL", "SASL_PLAINTEXT", "SSL"))
    config = {
        "listeners": listeners,
        "inter.broker.listener.name": "SSL",
        "listener.name.ssl.ssl.client.auth": "required",
        "group.initial.rebalance.delay.ms": "0",
    }
    with Broker(config, users={USER: PASSWORD}, tls=True) as running:
        yield running


def run(client: str, request: pytest.FixtureRequest, bootstrap: str, prefix: str, environment: dict[str, str]) -> str:
    """The output of a client's program, with the reason for its end as the last line."""
    folder = None
    if client == "kafkajs":
        folder = request.getfixturevalue("js_program")
        command = ["node", "interop.js"]
    else:
        command = [str(request.getfixturevalue("go_program")), client]
    command += [bootstrap, prefix, *SCENARIOS[client]]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode == 0) == (done.stdout.count("ok ") == len(SCENARIOS[client]))
    return done.stdout + done.stderr


def files(broker: Broker, *, certificate: bool = False) -> dict[str, str]:
    found = {"INTEROP_CA": broker.certificates.ca_file}
    if certificate:
        issued = broker.certificates.client("carol")
        found |= {"INTEROP_CERTIFICATE": str(issued.certificate), "INTEROP_KEY": str(issued.key)}
    return found


def login(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {"INTEROP_MECHANISM": mechanism, "INTEROP_USER": USER, "INTEROP_PASSWORD": password}


@pytest.mark.parametrize("client", SCENARIOS)
def test_certificates(client: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    said = run(client, request, broker.listeners["SSL"], f"{client}-ssl", files(broker, certificate=True))
    assert said.count("ok ") == len(SCENARIOS[client]), said


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.parametrize(("client", "mechanism"), LOGINS)
def test_logins(client: str, mechanism: str, protocol: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    environment = login(mechanism) | (files(broker) if protocol == "SASL_SSL" else {})
    said = run(client, request, broker.listeners[protocol], f"{client}-{mechanism}-{protocol}", environment)
    assert said.count("ok ") == len(SCENARIOS[client]), said


@pytest.mark.parametrize(("client", "mechanism"), LOGINS)
def test_a_wrong_password(client: str, mechanism: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    wrong = login(mechanism, "falsch") | files(broker)
    said = run(client, request, broker.listeners["SASL_SSL"], f"{client}-{mechanism}-wrong", wrong)
    assert "ok " not in said
    assert "authenticat" in said.lower()
