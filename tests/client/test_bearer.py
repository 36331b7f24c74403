"""Where bearer tokens come from: files, and providers that give, refuse, send elsewhere or do not answer."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from barnabas import limits
from barnabas.client import bearer
from barnabas.client.bearer import ClientCredentials, TokenFile, source_from
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, LoginFailed
from barnabas.errors import ConfigError
from tests.client.token_endpoint import Endpoint

FILE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "bootstrap.servers": "127.0.0.1:9"}
GRANTED = {"access_token": "a.b.c", "expires_in": 3600, "token_type": "Bearer"}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(bearer, "_kept", {})
    with Endpoint() as running:
        yield running


def asked(endpoint: Endpoint, scope: str | None = None) -> ClientCredentials:
    return ClientCredentials(endpoint.url, "the client", "ge:heim", scope)


def test_a_provider_is_asked_with_what_is_shown_to_it(endpoint: Endpoint) -> None:
    endpoint.answers = [(200, json.dumps(GRANTED))]
    assert asked(endpoint, scope="kafka").token() == "a.b.c"
    ((headers, body),) = endpoint.asked
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"the+client:ge%3Aheim"
    assert parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["kafka"]}


def test_a_token_is_shown_again_for_most_of_its_life(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    endpoint.answers = [(200, json.dumps({**GRANTED, "access_token": token, "expires_in": 100})) for token in ("one", "two")]
    source = asked(endpoint)
    assert [source.token(), source.token()] == ["one", "one"]
    now_s += 81
    assert source.token() == "two"


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (401, '{"error": "invalid_client"}', LoginFailed),
        (302, "", LoginFailed),
        (503, "", ConnectionFailed),
        (200, "no json", LoginFailed),
        (200, "[]", LoginFailed),
        (200, '{"access_token": 7}', LoginFailed),
        (200, '{"access_token": "x", "expires_in": "soon"}', LoginFailed),
        (200, '{"access_token": "' + "x" * limits.MAX_BEARER_BYTES + '"}', LoginFailed),
    ],
)
def test_no_token(endpoint: Endpoint, status: int, text: str, expected: type[Exception]) -> None:
    endpoint.answers = [(status, text)]
    with pytest.raises(expected) as caught:
        asked(endpoint).token()
    assert len(endpoint.asked) == 1, "it follows nobody"
    assert "heim" not in str(caught.value)


def test_a_provider_that_is_not_there(endpoint: Endpoint) -> None:
    source = asked(endpoint)
    endpoint.close()
    with pytest.raises(ConnectionFailed, match="cannot be reached"):
        source.token()


def test_a_file_is_read_for_each_log_in(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    file.write_text("one\n")
    source = source_from({"sasl.oauthbearer.token.endpoint.url": file.as_uri()})
    assert source == TokenFile(file)
    assert source.token() == "one"
    file.write_text("two")
    assert source.token() == "two"
    for broken in (b"", b"\xff", b"x" * (limits.MAX_BEARER_BYTES + 1)):
        file.write_bytes(broken)
        with pytest.raises(LoginFailed):
            source.token()
    file.unlink()
    with pytest.raises(LoginFailed):
        source.token()


@pytest.mark.parametrize(
    "names",
    [
        ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret"),
        ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
    ],
)
def test_names_of_kafka_and_of_librdkafka(names: tuple[str, str]) -> None:
    options = {**FILE, "sasl.oauthbearer.token.endpoint.url": "https://id/token", names[0]: "c", names[1]: "geheim"}
    config = ClientConfig.from_options({**options, "sasl.login.read.timeout.ms": "500"})
    assert config.credentials is not None
    assert config.credentials.tokens == ClientCredentials("https://id/token", "c", "geheim", None, 500)
    assert "geheim" not in repr(config)


def test_a_login_context_may_say_it() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    text = f'{module} required clientId="c" clientSecret="geheim" scope="kafka";'
    options = {**FILE, "sasl.oauthbearer.token.endpoint.url": "https://id/token", "sasl.jaas.config": text}
    config = ClientConfig.from_options(options)
    assert config.credentials is not None
    assert config.credentials.tokens == ClientCredentials("https://id/token", "c", "geheim", "kafka")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sasl.oauthbearer.token.endpoint.url": "ftp://id/token"},
        {"sasl.oauthbearer.token.endpoint.url": "file:///nowhere/at/all"},
        {"sasl.oauthbearer.token.endpoint.url": "https://id/token"},
        {"sasl.oauthbearer.token.endpoint.url": "https://id/token", "sasl.oauthbearer.client.id": "c"},
    ],
)
def test_what_is_not_enough(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        ClientConfig.from_options({**FILE, **options})


def test_timeouts_that_are_none() -> None:
    options = {"sasl.oauthbearer.client.id": "c", "sasl.oauthbearer.client.secret": "s", "sasl.login.connect.timeout.ms": "soon"}
    with pytest.raises(ConfigError):
        source_from({**options, "sasl.oauthbearer.token.endpoint.url": "https://id/token"})
