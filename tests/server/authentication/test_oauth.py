"""Bearer tokens at a listener: the keys from a file and from a provider that changes them, and clients that show tokens."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import KafkaException, Producer
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import LoginFailed
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.testing import Broker
from tests.client.token_endpoint import Endpoint
from tests.security.tokens import Provider, key_set, unsecured
from tests.waiting import wait_until

TIMEOUT_S = 60
Config = dict[str, str | int | bool]
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LISTENER = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"}
FAST = {"connection.failed.authentication.delay.ms": 0}


def logs_in(broker: Broker, token: str, folder: Path) -> bool:
    """Whether our own client gets in by a token."""
    file = folder / "token"
    file.write_text(token)
    options = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
    }
    with BlockingClient(ClientConfig.from_options(options)) as client:
        try:
            client.topics()
        except LoginFailed as error:
            return '{"status":"invalid_token"}' not in str(error)
    return True


class KeyServer(HTTPServer):
    keys = ""


@pytest.fixture
def jwks() -> Iterator[KeyServer]:
    """A provider that answers with what stands in its `keys`, and an error where that is empty."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = server.keys
            self.send_response(200 if text else 503)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = KeyServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_clients_show_tokens_that_keys_in_a_file_signed(tmp_path: Path) -> None:
    provider, now_s = Provider(), int(time.time())
    keys = tmp_path / "keys.json"
    keys.write_text(key_set(provider.public()))
    config: Config = {
        **LISTENER,
        **FAST,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": "https://id",
        "sasl.oauthbearer.expected.audience": "kafka",
        "connections.max.reauth.ms": 3_600_000,
    }
    token = provider.sign(now_s, iss="https://id", aud="kafka")

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
        def token(self) -> str:
            return token

    with Broker(config) as broker:
        shown = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
        }
        producer = Producer({**shown, "oauth_cb": lambda _: (token, float(now_s + 300))})
        producer.produce("confluent", b"hello")
        assert producer.flush(TIMEOUT_S) == 0
        python = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Tokens(),
        )
        python.send("python", b"hello").get(TIMEOUT_S)
        python.close()
        assert logs_in(broker, token, tmp_path)
        for claims in ({"exp": now_s - 60, "iat": now_s - 100}, {"iss": "https://other"}, {"aud": "x"}, {"sub": None}):
            assert not logs_in(broker, provider.sign(now_s, **{"iss": "https://id", "aud": "kafka", **claims}), tmp_path)
        assert not logs_in(broker, unsecured(exp=now_s + 300), tmp_path)
        refused = Producer({**shown, "log_level": 0, "oauth_cb": lambda _: (unsecured(), float(now_s + 300))})
        with pytest.raises(KafkaException):
            refused.list_topics(timeout=0.5)
        assert token not in broker.log


def test_the_command_line_shows_tokens_of_a_file_and_of_a_provider(tmp_path: Path) -> None:
    """Requests of its own, and those that it has librdkafka send."""
    provider, now_s = Provider(), int(time.time())
    keys, file, properties = tmp_path / "keys.json", tmp_path / "token", tmp_path / "client.properties"
    keys.write_text(key_set(provider.public()))
    file.write_text(provider.sign(now_s))
    with Broker({**LISTENER, **FAST, "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri()}) as broker, Endpoint() as endpoint:
        endpoint.answers = [(200, json.dumps({"access_token": provider.sign(now_s), "expires_in": 300}))]
        granted = f'{endpoint.url}\nsasl.jaas.config={MODULE} required clientId="c" clientSecret="geheim";'
        for number, place in enumerate((file.as_uri(), granted)):
            shown = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER"]
            properties.write_text("\n".join([*shown, f"sasl.oauthbearer.token.endpoint.url={place}", ""]))
            where = ["-b", broker.bootstrap_servers, "--command-config", str(properties)]
            assert barnabas("topic", "create", f"t{number}", *where)[0] == 0
            assert barnabas("produce", f"t{number}", *where, said="hello\n")[0] == 0
            assert barnabas("consume", f"t{number}", *where) == (0, "hello\n")
            assert barnabas("user", "list", *where)[0] == 0
        assert endpoint.asked
        properties.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n")
        assert barnabas("topic", "list", *where)[0] == 2


def barnabas(*words: str, said: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", *words], input=said, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout


def test_keys_that_are_too_large_are_not_taken(tmp_path: Path) -> None:
    provider, now_s = Provider(), int(time.time())
    keys = tmp_path / "keys.json"
    keys.write_text(key_set(provider.public()) + " " * limits.MAX_JWKS_BYTES)
    config: Config = {**LISTENER, **FAST, "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri()}
    with Broker(config) as broker:
        assert not logs_in(broker, provider.sign(now_s), tmp_path)
        assert f"more than {limits.MAX_JWKS_BYTES} bytes" in broker.log


def test_a_provider_that_changes_its_keys_is_asked_again(jwks: KeyServer, tmp_path: Path) -> None:
    one, two, now_s = Provider("one"), Provider("two"), int(time.time())
    config: Config = {
        **LISTENER,
        **FAST,
        "sasl.oauthbearer.jwks.endpoint.url": f"http://127.0.0.1:{jwks.server_port}/keys",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": 10,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": 50,
    }
    with Broker(config) as broker:  # the provider does not run yet
        assert not logs_in(broker, one.sign(now_s), tmp_path)
        jwks.keys = key_set(one.public())
        wait_until(lambda: logs_in(broker, one.sign(now_s), tmp_path))
        assert not logs_in(broker, two.sign(now_s), tmp_path)
        jwks.keys = key_set(two.public())
        wait_until(lambda: logs_in(broker, two.sign(now_s), tmp_path))
        assert not logs_in(broker, one.sign(now_s), tmp_path)
        jwks.keys = ""
        wait_until(lambda: not logs_in(broker, one.sign(now_s), tmp_path) and "503" in broker.log)
        assert logs_in(broker, two.sign(now_s), tmp_path)


def test_tokens_without_a_signature_where_they_are_asked_for(tmp_path: Path) -> None:
    config: Config = {**LISTENER, **FAST, "sasl.jaas.config": f'{MODULE} required unsecuredValidatorPrincipalClaimName="user";'}
    now_s = int(time.time())
    with Broker(config) as broker:
        assert logs_in(broker, unsecured(user="bob", exp=now_s + 60), tmp_path)
        assert not logs_in(broker, unsecured(exp=now_s + 60), tmp_path)
        assert not logs_in(broker, unsecured(user="bob", exp=now_s - 60), tmp_path)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x"}, "sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.server.callback.handler.class": "com.example.Mine"}, "sasl.server.callback.handler.class"),
        ({"sasl.server.callback.handler.class": "x.OAuthBearerValidatorCallbackHandler"}, "sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.jaas.config": f"{MODULE} required unsecuredValidatorAllowableClockSkewMs=soon;"}, "sasl.jaas.config"),
    ],
)
def test_settings_that_do_not_do(settings: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({**LISTENER, **settings})
    assert key in caught.value.key
