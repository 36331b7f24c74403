"""Delegation tokens over the wire, and clients that log in by one."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.errors import LoginFailed
from barnabas.client.plans import Call
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security import tokens
from barnabas.security.exchange import Identity
from barnabas.security.scram import Credential
from barnabas.security.tokens import credential_for
from barnabas.server.authentication.sasl_listeners import SaslListener
from barnabas.server.authorization.access_control import STANDARD
from barnabas.testing import Broker
from tests.server.in_process import running
from tests.server.pairs import Asked, ask_together
from tests.server.wire import Line

CREATE, RENEW, EXPIRE, DESCRIBE = (38, 3), (39, 2), (40, 2), (41, 3)
USERS = {"alice": "a", "bob": "b"}
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security_inter_broker_protocol": "SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl_jaas_config": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a";',
    "connection_failed_authentication_delay_ms": "0",
    "delegation_token_secret_key": "secret",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config: dict[str, str | int] = {"delegation.token.secret.key": "secret", "connection.failed.authentication.delay.ms": 0}
    with Broker(config, users=USERS) as running:
        yield running


class As(Line):
    """A connection of a user."""

    def __init__(self, broker: Broker, user: str) -> None:
        super().__init__(broker)
        self.ask((17, 1), SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = f"\0{user}\0{USERS[user]}".encode()
        assert self.ask((36, 2), SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse).error_code == 0

    def create(self, **fields: Any) -> CreateDelegationTokenResponse:
        wanted = {"owner_principal_name": None, "owner_principal_type": None, "max_lifetime_ms": -1, **fields}
        return self.ask(CREATE, CreateDelegationTokenRequest(**wanted), CreateDelegationTokenResponse)

    def renew(self, secret: bytes, period_ms: int = -1) -> RenewDelegationTokenResponse:
        return self.ask(RENEW, RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms), RenewDelegationTokenResponse)

    def expire(self, secret: bytes, period_ms: int = -1) -> ExpireDelegationTokenResponse:
        request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
        return self.ask(EXPIRE, request, ExpireDelegationTokenResponse)

    def describe(self, *owners: str) -> DescribeDelegationTokenResponse:
        named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=owner) for owner in owners]
        return self.ask(DESCRIBE, DescribeDelegationTokenRequest(owners=named or None), DescribeDelegationTokenResponse)


def login(broker: Broker, made: CreateDelegationTokenResponse, mechanism: str = "SCRAM-SHA-512") -> ClientConfig:
    password = b64encode(made.hmac).decode()
    options = f'{MODULE} required username="{made.token_id}" password="{password}" tokenauth="true";'
    return ClientConfig.from_options(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": options,
        }
    )


def connected(config: ClientConfig, broker: Broker) -> closing[Connection]:
    return closing(Connection(("127.0.0.1", broker.port), config))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_lets_in_until_it_ends(broker: Broker, mechanism: str) -> None:
    with As(broker, "alice") as alice:
        made = alice.create()
        assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "alice", "alice")
        assert made.issue_timestamp_ms < made.expiry_timestamp_ms < made.max_timestamp_ms
        with BlockingClient(login(broker, made, mechanism)) as client:
            assert client.topics() == {}
        assert alice.expire(made.hmac).error_code == 0
        with BlockingClient(login(broker, made, mechanism)) as client, pytest.raises(LoginFailed):
            client.topics()
        assert alice.renew(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_a_thread_derives_what_a_token_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derived_in: list[threading.Thread] = []

    def noted(token_id: str, mechanism: str, key: str) -> Credential:
        derived_in.append(threading.current_thread())
        return credential_for(token_id, mechanism, key)

    def use(broker: Any) -> None:
        with As(broker, "alice") as alice:
            made = alice.create()
        for _ in range(2):
            with BlockingClient(login(broker, made)) as client:
                assert client.topics() == {}
        wrong = CreateDelegationTokenResponse(token_id=made.token_id, hmac=b"wrong")
        with BlockingClient(login(broker, wrong)) as client, pytest.raises(LoginFailed):
            client.topics()

    monkeypatch.setattr(tokens, "credential_for", noted)
    async with running([tmp_path], **SASL) as client:
        port = client.broker.endpoints[0].port
        await client.in_thread(lambda: use(SimpleNamespace(port=port, bootstrap_servers=f"127.0.0.1:{port}")))
    assert len(derived_in) == 1, "the second time it is kept"
    assert derived_in[0] is not threading.main_thread()


def test_tokens_survive_a_restart_and_are_forgotten_by_nobody_else() -> None:
    config: dict[str, str | int] = {"delegation.token.secret.key": "secret"}
    with Broker(config, users=USERS) as broker:
        with As(broker, "alice") as alice:
            made = alice.create()
        broker.restart()
        with BlockingClient(login(broker, made)) as client:
            assert client.topics() == {}


def test_owner_requester_and_renewers(broker: Broker) -> None:
    with As(broker, "alice") as alice, As(broker, "bob") as bob:
        mine = alice.create(max_lifetime_ms=3_600_000)
        assert bob.renew(mine.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert bob.expire(mine.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        shared = alice.create(renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
        renewed = bob.renew(shared.hmac, 60_000)
        assert 0 < renewed.expiry_timestamp_ms < shared.expiry_timestamp_ms
        described = {token.token_id: token for token in bob.describe("alice").tokens}
        assert described[shared.token_id].expiry_timestamp == renewed.expiry_timestamp_ms
        assert described[shared.token_id].hmac == shared.hmac
        assert [(r.principal_type, r.principal_name) for r in described[shared.token_id].renewers] == [("User", "bob")]
        for_bob = alice.create(owner_principal_type="User", owner_principal_name="bob")
        assert (for_bob.principal_name, for_bob.token_requester_principal_name) == ("bob", "alice")
        assert for_bob.token_id in {token.token_id for token in bob.describe("bob").tokens}
        assert alice.create(renewers=[CreatableRenewers(principal_type="Group", principal_name="x")]).error_code == (
            ErrorCode.INVALID_PRINCIPAL_TYPE
        )
        for made in (mine, shared, for_bob):
            assert alice.expire(made.hmac).error_code == 0


def test_a_list_sees_what_was_made_renewed_and_expired_in_one_write(broker: Broker) -> None:
    described = Asked(DescribeDelegationTokenRequest(owners=None), 3)
    with As(broker, "alice") as alice:
        made, listed = ask_together(alice, [Asked(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3), described])
        assert made.token_id in {token.token_id for token in listed.tokens}
        renewed, listed = ask_together(
            alice, [Asked(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=60_000), 2), described]
        )
        assert {t.expiry_timestamp for t in listed.tokens if t.token_id == made.token_id} == {renewed.expiry_timestamp_ms}
        _, listed = ask_together(
            alice, [Asked(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2), described]
        )
        assert made.token_id not in {token.token_id for token in listed.tokens}


def test_an_authorizer_hides_tokens_of_others() -> None:
    config = {"delegation.token.secret.key": "secret", "authorizer.class.name": STANDARD, "super.users": "User:alice"}
    with Broker(config, users=USERS) as broker, As(broker, "alice") as alice, As(broker, "bob") as bob:
        alices, bobs = alice.create(), bob.create()
        assert {token.token_id for token in bob.describe().tokens} == {bobs.token_id}
        assert {token.token_id for token in alice.describe().tokens} == {alices.token_id, bobs.token_id}


def test_who_came_by_a_token_gets_none(broker: Broker) -> None:
    with As(broker, "alice") as alice:
        made = alice.create()
        with connected(login(broker, made), broker) as connection:
            connection.send(Call(DescribeDelegationTokenRequest(owners=None)))
            assert connection.receive().error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_there_are_no_tokens() -> None:
    with Broker(users=USERS) as broker, As(broker, "alice") as alice:
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        answers: list[Any] = [alice.create(), alice.renew(b"x"), alice.expire(b"x"), alice.describe()]
        assert {answer.error_code for answer in answers} == {disabled}


def test_nobody_in_particular_gets_no_token() -> None:
    with Broker({"delegation.token.secret.key": "secret"}) as broker, Line(broker) as line:
        answer = line.ask(DESCRIBE, DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_what_is_over_is_removed() -> None:
    config: dict[str, str | int] = {"delegation.token.secret.key": "secret", "delegation.token.expiry.check.interval.ms": 20}
    with Broker(config, users=USERS) as broker, As(broker, "alice") as alice:
        alice.create(max_lifetime_ms=1)
        while alice.describe().tokens:
            pass


@pytest.mark.parametrize(
    ("most_ms", "expires_ms", "lifetime_ms"),
    [(0, None, None), (0, 150, 50), (0, 90, 0), (30, None, 30), (30, 150, 30), (300, 150, 50)],
)
def test_a_session_ends_with_its_token(most_ms: int, expires_ms: int | None, lifetime_ms: int | None) -> None:
    sasl_listener: Any = SimpleNamespace(
        mechanisms={"X": SimpleNamespace(max_reauth_ms=most_ms)}, _sasl_listeners=SimpleNamespace(now_ms=lambda: 100)
    )
    assert SaslListener.lifetime_ms(sasl_listener, "X", Identity("alice", expires_ms)) == lifetime_ms
