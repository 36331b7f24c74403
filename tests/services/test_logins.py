"""Callers log in: the cluster checks them by SASL."""

from __future__ import annotations

from base64 import b64encode

import pytest

from barnabas.client.config import ClientConfig
from barnabas.errors import ConfigError
from barnabas.services.logins import logins_from
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
