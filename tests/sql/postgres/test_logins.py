"""Log-ins that a broker checks, with real clients."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.plans import Call
from barnabas.client.sasl import PASSWORD_MECHANISM
from barnabas.errors import ConfigError
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.authentication import Authenticator
from barnabas.sql.postgres.logins import Gate, LoginRefused, Passwords, connect
from barnabas.sql.postgres.relayed_scram import RelayedScram, _is_for_sessions, relayed
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from tests.sql.postgres.running import Running, message, running, startup

USERS = {"anna": "pass, =word", "bert": "geheim"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"delegation.token.secret.key": "key of a test"}, users=USERS) as found:
        yield found


@pytest.fixture(scope="module")
def settings(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers, **broker.login("bert", "SCRAM-SHA-512")}


@pytest.fixture(params=["password", "scram"])
def server(request: pytest.FixtureRequest, settings: dict[str, str]) -> Iterator[Running]:
    passwords = {**settings, PASSWORD_MECHANISM: "SCRAM-SHA-256"}
    authenticator: Authenticator = Passwords(passwords) if request.param == "password" else RelayedScram(settings)
    with running(authenticator=authenticator) as found:
        yield found


def test_a_user_of_the_cluster_logs_in_and_has_its_own_rights(server: Running, settings: dict[str, str]) -> None:
    for _ in range(2):
        with psycopg.connect(server.dsn, password=USERS["anna"]) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    caller = server.engine.callers[-1]
    assert caller.user == "anna"
    config = ClientConfig.from_options(caller.settings)
    assert config.credentials is not None
    assert USERS["anna"] not in repr(config.credentials)
    assert server.engine.callers[0].settings == caller.settings  # a token of a user is used again
    assert "sasl" not in repr(caller)


def test_tokens_do_not_pile_up(settings: dict[str, str], broker: Broker) -> None:
    used: list[Any] = []
    for _ in range(2):  # servers
        with running(authenticator=RelayedScram(settings)) as server:
            for _ in range(2):
                with psycopg.connect(server.dsn, user="bert", password=USERS["bert"]):
                    used.append(server.engine.callers[-1].settings)
                    peer = list(server.server._peers.values())[-1]
                    assert 11 * 3600 < peer._log_in_ends - server.loop.time() < 24 * 3600  # before the token
    assert used == used[:1] * 4
    credentials = ClientConfig.from_options(used[0]).credentials
    assert credentials is not None
    own = connect(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers, **broker.login("bert")}))
    secret = base64.b64decode(credentials.password)
    assert not answer(own, ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=-1)).error_code
    assert not answer(own, CreateDelegationTokenRequest()).error_code  # the user has a token for another end
    with (
        running(authenticator=RelayedScram(settings)) as server,
        psycopg.connect(server.dsn, user="bert", password=USERS["bert"]),
    ):
        assert server.engine.callers[-1].settings not in used
    known = answer(own, DescribeDelegationTokenRequest(owners=None)).tokens
    own.close()
    assert [each.principal_name for each in known].count("bert") == 2


def answer(connection: Connection, request: Any) -> Any:
    connection.send(Call(request))
    return connection.receive()


@pytest.mark.parametrize(
    ("owner", "renewers", "age_h", "is_good"),
    [
        ("anna", ["anna"], 0, True), ("anna", ["anna"], 11, True), ("anna", ["anna"], 13, False), ("anna", [], 0, False),
        ("anna", ["anna", "bert"], 0, False), ("bert", ["anna"], 0, False),
    ],
)  # fmt: skip
def test_a_token_for_sessions(owner: str, renewers: list[str], age_h: int, is_good: bool) -> None:
    issued = int((time.time() - age_h * 3600) * 1000)
    token = DescribedDelegationToken(
        principal_type="User", principal_name=owner, issue_timestamp=issued, expiry_timestamp=issued + 24 * 3_600_000,
        renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name=each) for each in renewers],
    )  # fmt: skip
    assert _is_for_sessions(token, "anna") is is_good


@pytest.mark.parametrize("make", [Passwords, RelayedScram])
def test_statements_act_with_the_rights_of_the_caller(make: Callable[[dict[str, str]], Authenticator]) -> None:
    rules = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:bert"}
    with Broker({"delegation.token.secret.key": "key of a test", **rules}, users=USERS) as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers, **broker.login("bert")}
        with running(authenticator=make(settings), engine=SqlEngine(ClientConfig.from_options(settings))) as server:
            with psycopg.connect(server.dsn, user="bert", password=USERS["bert"], autocommit=True) as connection:
                connection.execute("create table private (a int)")
                connection.execute("insert into private values (5)")
                assert connection.execute("select a from private").fetchone() == (5,)
            with psycopg.connect(server.dsn, password=USERS["anna"], autocommit=True) as connection:
                with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable)):
                    connection.execute("select a from private")
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("create table another (a int)")
                assert connection.execute("select current_user").fetchone() == ("anna",)


@pytest.mark.parametrize(("user", "password"), [("anna", "wrong"), ("nobody", "geheim"), ("bert", USERS["anna"])])
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(server: Running, user: str, password: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=f'FATAL:  password authentication failed for user "{user}"'):
        psycopg.connect(server.dsn, user=user, password=password)
    assert server.engine.callers == []


async def test_asyncpg_names_the_user(server: Running) -> None:
    connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="anna", password=USERS["anna"], database="d")
    assert await connection.fetchval("select 1") == 1
    await connection.close()


def test_another_message_instead_of_a_proof(server: Running) -> None:
    with server.stranger() as client:
        client.send(startup())
        assert client.receive().kind == "R"
        client.send(message("Q", b"select 1\0"))
        assert b"SFATAL\0" in client.rest()
    with server.stranger() as client:
        client.send(startup(), message("p", b"SCRAM-SHA-1\0\0\0\0\0"))
        assert b"SFATAL\0" in client.rest()


def test_a_password_needs_tls_unless_it_stays_on_the_machine(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker.combined)
    monkeypatch.setattr("barnabas.sql.postgres.logins._is_local", lambda address: False)
    with running(context, Passwords({**settings, PASSWORD_MECHANISM: "PLAIN"})) as server:
        dsn = f"{server.dsn} password='{USERS['bert']}' user=bert"
        with pytest.raises(psycopg.OperationalError, match="a log-in by password needs TLS"):
            psycopg.connect(f"{dsn} sslmode=disable")
        with psycopg.connect(f"{dsn} sslmode=verify-full sslrootcert={certificates.ca_file}") as connection:
            assert connection.execute("select 1").fetchone() == (1,)


def test_a_cluster_without_tokens_or_without_an_answer() -> None:
    with Broker(users=USERS) as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers, **broker.login()}
        with running(authenticator=RelayedScram(settings)) as server:
            with pytest.raises(psycopg.OperationalError, match=r"no delegation token \(DELEGATION_TOKEN_AUTH_DISABLED\)"):
                psycopg.connect(server.dsn, password=USERS["anna"])
            broker.stop()
            with pytest.raises(psycopg.OperationalError, match="the cluster cannot be asked about this log-in"):
                psycopg.connect(server.dsn, password=USERS["anna"])
        with (
            running(authenticator=Passwords(settings)) as server,
            pytest.raises(psycopg.OperationalError, match="the cluster cannot be asked"),
        ):
            psycopg.connect(server.dsn, password=USERS["anna"])


def test_settings_by_which_no_cluster_checks_callers(settings: dict[str, str]) -> None:
    for make in (Passwords, RelayedScram):
        with pytest.raises(ConfigError, match="SASL_SSL or SASL_PLAINTEXT"):
            make({"bootstrap.servers": "127.0.0.1:9092"})
    with pytest.raises(ConfigError, match="one of PLAIN"):
        Passwords({**settings, PASSWORD_MECHANISM: "GSSAPI"})


@pytest.mark.parametrize(
    ("first", "found"),
    [("n,,n=,r=abc", "n,a=a=2Cb,n=,r=abc"), ("y,,n=*,r=abc", "y,a=a=2Cb,n=*,r=abc"), ("n,,n=a=2Cb,r=abc", "n,,n=a=2Cb,r=abc")],
)
def test_the_first_message_gets_the_user(first: str, found: str) -> None:
    assert relayed(first, "a,b") == found


@pytest.mark.parametrize("first", ["", "n", "n,,n=other,r=abc", "p=tls-unique,,n=,r=abc", "n,a=other,n=,r=abc"])
def test_a_first_message_that_is_not_relayed(first: str) -> None:
    with pytest.raises(SqlError):
        relayed(first, "anna")


def test_a_guesser_is_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("barnabas.sql.postgres.logins.time.sleep", slept.append)
    gate: Any = Gate()

    class Guess:
        address = "10.0.0.1"
        startup = type("Startup", (), {"user": "anna"})

    for _ in range(14):
        with pytest.raises(SqlError, match="password authentication failed"), gate.passing(Guess()):
            raise LoginRefused("wrong")
    assert slept[:10] == [limits.SERVICE_LOGIN_DELAY_MS / 1000] * 10
    assert max(slept) > slept[0] * 4
