"""Callers log in: the cluster checks them by SASL."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.client.sasl import Credentials
from barnabas.errors import ConfigError
from barnabas.services.logins import Logins, logins_from
from barnabas.testing import Broker
from barnabas.web.routing import HttpError

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
        await logins.principal(alice)  # takes the place of the other caller
        broker.kill()
        for header in (alice, service):
            with pytest.raises(HttpError) as unknown:
                await logins.principal(header)
            assert unknown.value.status == 503
