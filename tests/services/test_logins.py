"""Callers log in: the cluster checks them by SASL."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.client.sasl import Credentials
from barnabas.errors import ConfigError
from barnabas.security import penalties
from barnabas.security.principals import PrincipalRules
from barnabas.services.application import Application
from barnabas.services.logins import Logins, logins_from
from barnabas.services.metrics import RequestTimes
from barnabas.testing import Broker
from barnabas.tls.authority import Authority
from barnabas.web.routing import HttpError
from barnabas.web.service import ServiceContext
from tests.services.trivial import Trivial
from tests.waiting import until

PASSWORDS = {"service": "of-the-service", "alice": "of-alice"}


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


async def test_the_cluster_decides_and_a_known_caller_is_not_asked_about_again() -> None:
    with Broker(users=PASSWORDS) as broker:
        client = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers, **broker.login()})
        logins = logins_from({"authentication.method": "BASIC"}, client)
        assert logins is not None
        alice = basic("alice", "of-alice")
        assert await logins.principal(alice) == "User:alice"
        for header in ("", "Basic !", basic("alice", "wrong"), basic("bob", "of-alice"), "Bearer a.b.c"):
            with pytest.raises(HttpError) as refused:
                await logins.principal(header)
            assert refused.value.status == 401
        broker.kill()
        assert await logins.principal(alice) == "User:alice"
        with pytest.raises(HttpError) as unknown:
            await logins.principal(basic("service", "of-the-service"))
        assert unknown.value.status == 503


@pytest.mark.parametrize("settings", [{"authentication.method": "DIGEST"}, {"authentication.method": "BASIC"}])
def test_settings_that_cannot_hold_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="authentication"):
        logins_from(settings, ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"}))


def test_without_the_setting_nobody_logs_in() -> None:
    assert logins_from({}, ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})) is None


async def test_the_cache_is_bounded_and_short_and_the_cluster_is_asked_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_LOGINS", 1)
    monkeypatch.setattr(limits, "MAX_SERVICE_LOGINS_AT_ONCE", 1)
    running, most = 0, 0

    class Counting(Logins):
        def _ask(self, credentials: Credentials) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            super()._ask(credentials)
            running -= 1

    alice, service = basic("alice", "of-alice"), basic("service", "of-the-service")
    with Broker(users=PASSWORDS) as broker:
        client = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers, **broker.login()})
        logins = Counting(client, frozenset({"BASIC"}), "PLAIN")
        await asyncio.gather(*(logins.principal(each) for each in (alice, service) * 3))
        assert most == 1
        await logins.principal(service)
        monkeypatch.setattr(limits, "SERVICE_LOGIN_KEPT_S", 0.0)
        await logins.principal(alice)  # replaces the other caller in the cache
        broker.kill()
        for header in (alice, service):
            with pytest.raises(HttpError) as unknown:
                await logins.principal(header)
            assert unknown.value.status == 503


class Believing(Logins):
    """Asks no cluster."""

    asked = 0

    def _ask(self, credentials: Credentials) -> None:
        self.asked += 1


def token(**claims: object) -> str:
    parts = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims))
    return f"Bearer {'.'.join(parts)}."


AT_ALL = ClientConfig((("127.0.0.1", 1),))


async def test_a_token_counts_no_longer_than_it_says() -> None:
    logins = Believing(AT_ALL, frozenset({"BEARER"}), "PLAIN")
    ends_s = time.time()
    for header, asked in ((token(sub="alice", exp=ends_s + 600), 1), (token(sub="alice", exp=ends_s), 2)):
        logins.asked = 0
        for _ in range(2):
            assert await logins.principal(header) == "User:alice"
        assert logins.asked == asked


async def test_the_claim_that_names_the_user_is_a_setting() -> None:
    logins = Believing(AT_ALL, frozenset({"BEARER"}), "PLAIN", subject_claim="email")
    assert await logins.principal(token(sub="x", email="alice@here", exp=time.time() + 60)) == "User:alice@here"


DEEP = f"Bearer a.{urlsafe_b64encode(b'[' * 40_000).decode()}.c"


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer a.b.c", "Bearer a.!.c", token(sub=5, exp=9e9), token(sub="", exp=9e9), token(exp=9e9), token(sub="a"),
     token(sub="a", exp="soon"), token(sub="a", exp=9e9) + "\x01x", DEEP, "Basic ÿ", "Basic OmE=", "Basic YTo=", "Digest a", "x" * 60_000],
)  # fmt: skip
async def test_a_header_that_is_none_is_refused(header: str) -> None:
    logins = Believing(AT_ALL, frozenset({"BASIC", "BEARER"}), "PLAIN")
    with pytest.raises(HttpError) as refused:
        await logins.principal(header)
    assert (refused.value.status, refused.value.message, logins.asked) == (401, "Unauthorized", 0)
    assert [value for _, value in logins.challenges] == [b'Basic realm="barnabas"', b'Bearer realm="barnabas"']


async def test_a_certificate_names_its_owner_by_rules(tmp_path: Path) -> None:
    issued = Authority.create(tmp_path / "ca", password="geheim").issue("Alice")
    shown = ssl.PEM_cert_to_DER_cert(
        issued.certificate.read_text().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----"
    )
    by_rule = Believing(AT_ALL, frozenset({"BASIC"}), "PLAIN", rules=PrincipalRules("RULE:^CN=([A-Z].*)$/$1/L"))
    assert await by_rule.principal("", shown) == "User:alice"
    assert await by_rule.principal(basic("bob", "of-bob"), shown) == "User:bob", (
        "what a proxy hands on counts more than its certificate"
    )
    for logins, certificate in (
        (by_rule, None),
        (Believing(AT_ALL, frozenset({"BASIC"}), "PLAIN"), shown),
        (Believing(AT_ALL, frozenset(), "PLAIN", rules=PrincipalRules("RULE:^CN=bob$/bob/")), shown),
    ):
        with pytest.raises(HttpError) as refused:
            await logins.principal("", certificate)
        assert refused.value.status == 401


@pytest.mark.parametrize(("methods", "seen"), [(frozenset[str](), False), (frozenset({"BASIC"}), True)])
async def test_a_service_sees_a_header_only_if_it_was_checked(tmp_path: Path, methods: frozenset[str], seen: bool) -> None:
    issued = Authority.create(tmp_path / "ca", password="geheim").issue("Alice")
    logins = Believing(AT_ALL, methods, "PLAIN", rules=PrincipalRules("DEFAULT"))
    service = Trivial(ServiceContext(AT_ALL, "https://127.0.0.1:0", {}))
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> Mapping[str, Any]:
        raise AssertionError

    state = {
        "certificate": ssl.PEM_cert_to_DER_cert(
            issued.certificate.read_text().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----"
        )
    }
    headers = [(b"authorization", basic("bob", "of-bob").encode())]
    scope = {
        "method": "GET", "raw_path": b"/echo/a", "query_string": b"", "client": ("127.0.0.1", 1), "headers": headers, "state": state,
    }  # fmt: skip
    await Application("trivial", service, RequestTimes(), logins)(scope, receive, send)
    assert json.loads(sent[1]["body"])["authorized"] is seen


class Refusing(Logins):
    """A cluster that knows nobody but alice."""

    asked = 0

    def _ask(self, credentials: Credentials) -> None:
        self.asked += 1
        if credentials.username != "alice":
            raise HttpError(401, "Unauthorized")


async def test_a_guesser_is_slowed_down_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_LOGIN_DELAY_MS", 10_000)
    monkeypatch.setattr(limits, "SERVICE_LOGIN_KEPT_S", 0.0)
    monkeypatch.setattr(limits, "MAX_WAITING_LOGINS", 4)
    monkeypatch.setattr(penalties, "FREE_FAILURES", 0)
    logins, alice = Refusing(AT_ALL, frozenset({"BASIC"}), "PLAIN"), basic("alice", "of-alice")
    assert await logins.principal(alice, None, "10.0.0.1") == "User:alice"
    guesses = [asyncio.create_task(logins.principal(basic("guest", str(each)), None, "10.0.0.1")) for each in range(5)]
    await until(lambda: logins.asked == 6, "the first guesses were not checked")
    await until(lambda: len(logins._penalties) == 1, "no guess was refused")
    waiting = [asyncio.create_task(logins.principal(basic("guest", str(each)), None, "10.0.0.1")) for each in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(HttpError) as refused:
        await logins.principal(basic("guest", "x"), None, "10.0.0.1")
    assert refused.value.status == 429
    assert await logins.principal(alice, None, "10.0.0.1") == "User:alice", "a user who is known there"
    assert await logins.principal(alice, None, "10.0.0.2") == "User:alice", "another address"
    assert logins.asked == 8, "the guesses that wait are not checked"
    for task in (*guesses, *waiting):
        task.cancel()
    await asyncio.gather(*guesses, *waiting, return_exceptions=True)
