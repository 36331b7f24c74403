"""SASL as Apache Kafka has it: its tools log in, manage users and tokens, and whoever logs in wrongly is told what Kafka tells."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tools.kafka import KafkaNode, free_ports, run_tool

from barnabas.client.sasl import HASHES, Credentials, log_in
from barnabas.errors import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.testing import Broker
from tests.security.tokens import unsecured
from tests.server.wire import SIZE, Line

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
SECURITY = "org.apache.kafka.common.security"
PLAIN, SCRAM = f"{SECURITY}.plain.PlainLoginModule", f"{SECURITY}.scram.ScramLoginModule"
BEARER = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule"
MECHANISMS = ["PLAIN", *HASHES, "OAUTHBEARER"]
PREFIX = "listener.name.secure."
CONFIG = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    f"{PREFIX}plain.sasl.jaas.config": f'{PLAIN} required user_admin="geheim" user_alice="pw";',
    f"{PREFIX}scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    f"{PREFIX}scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    f"{PREFIX}oauthbearer.sasl.jaas.config": f"{BEARER} required;",
    f"{PREFIX}plain.connections.max.reauth.ms": "3600000",
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "secret",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}


class SecuredKafka(KafkaNode):
    """A node with another listener that asks everybody to log in."""

    secure_port = 0

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        (self.secure_port,) = free_ports(1)
        properties = super()._properties(port, controller_port)
        secure = f"SECURE://127.0.0.1:{self.secure_port}"
        return {
            **properties,
            "listeners": f"{properties['listeners']},{secure}",
            "advertised.listeners": f"{properties['advertised.listeners']},{secure}",
        }


@pytest.fixture(scope="module")
def port(server_kind: str) -> Iterator[int]:
    """The port of a server that asks everybody to log in."""
    with ExitStack() as stack:
        if server_kind == "kafka":
            node = SecuredKafka(heap="512m", config=CONFIG)
            stack.enter_context(node)
            yield node.secure_port
        else:
            yield stack.enter_context(Broker({**CONFIG, "listeners": "SECURE://127.0.0.1:0"})).port


@pytest.fixture
def line(port: int) -> Iterator[Line]:
    with Line(port) as opened:
        yield opened


Login = Callable[..., list[str]]


@pytest.fixture
def shown(port: int, tmp_path: Path) -> Login:
    """Arguments by which a tool logs in."""

    def arguments(
        user: str, password: str, mechanism: str = "PLAIN", option: str = "--command-config", more: str = ""
    ) -> list[str]:
        module = PLAIN if mechanism == "PLAIN" else SCRAM
        file = tmp_path / f"{user}.properties"
        file.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={module} required username="{user}" password="{password}" {more};\n'
        )
        return ["--bootstrap-server", f"127.0.0.1:{port}", option, str(file)]

    return arguments


# Tools


@pytest.mark.parametrize("mechanism", HASHES)
def test_users_are_made_log_in_and_are_deleted(shown: Login, mechanism: str) -> None:
    users = ["--entity-type", "users", "--entity-name", "bob"]
    as_admin = shown("admin", "geheim")
    run_tool("kafka-configs", *as_admin, "--alter", *users, "--add-config", f"{mechanism}=[iterations=8192,password=b]")
    described = run_tool("kafka-configs", *as_admin, "--describe", *users).stdout
    assert f"SCRAM credential configs for user-principal 'bob' are {mechanism}=iterations=8192" in described
    topic = f"of-bob-{mechanism}"
    run_tool("kafka-console-producer", *shown("bob", "b", mechanism, "--command-config"), "--topic", topic, text="hello\n")
    as_bob = shown("bob", "b", mechanism, "--command-config")
    found = run_tool(
        "kafka-console-consumer", *as_bob, "--topic", topic, "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000"
    )
    assert found.stdout == "hello\n"
    run_tool("kafka-configs", *as_admin, "--alter", *users, "--delete-config", mechanism)
    refused = run_tool("kafka-topics", *as_bob, "--list", check=False)
    assert refused.returncode != 0
    told = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    assert told in refused.stdout + refused.stderr


def test_tokens_are_made_renewed_used_and_ended(shown: Login) -> None:
    tool = ["kafka-delegation-tokens", *shown("admin", "geheim")]
    created = run_tool(*tool, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:alice").stdout
    token_id, secret = re.findall(r"^(\S{20,})\s+(\S{80,})\s", created, re.MULTILINE)[0]
    assert token_id in run_tool(*tool, "--describe", "--owner-principal", "User:admin").stdout
    as_alice = ["kafka-delegation-tokens", *shown("alice", "pw")]
    assert "Completed renew" in run_tool(*as_alice, "--renew", "--renew-time-period", "-1", "--hmac", secret).stdout
    by_token = shown(token_id, secret, "SCRAM-SHA-512", more='tokenauth="true"')
    run_tool("kafka-topics", *by_token, "--list")
    run_tool(*as_alice, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert run_tool("kafka-topics", *by_token, "--list", check=False).returncode != 0


# Errors of wrong requests


def shake_hands(line: Line, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return line.ask((17, version), SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)


def show(line: Line, token: bytes) -> tuple[int, str | None, bytes, int]:
    answer = line.ask((36, 2), SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    return answer.error_code, answer.error_message, answer.auth_bytes, answer.session_lifetime_ms


def failed(mechanism: str, again: str = "authentication") -> str:
    return f"Authentication failed during {again} due to invalid credentials with SASL mechanism {mechanism}"


OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"
INVALID_PASSWORD = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("mechanism", "token", "told"),
    [
        ("PLAIN", b"\0alice\0falsch", INVALID_PASSWORD),
        ("PLAIN", b"\0nobody\0pw", INVALID_PASSWORD),
        ("PLAIN", b"admin\0alice\0pw", OTHER_ID),
        ("PLAIN", b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        ("PLAIN", b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        ("PLAIN", b"\0\0pw", "Authentication failed: username not specified"),
        ("PLAIN", b"\0alice\0", "Authentication failed: password not specified"),
        ("PLAIN", b"\0alice\0pw\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        ("SCRAM-SHA-256", b"", failed("SCRAM-SHA-256")),
        ("SCRAM-SHA-256", b"n,,x", failed("SCRAM-SHA-256")),
        ("OAUTHBEARER", b"", failed("OAUTHBEARER")),
    ],
)
def test_a_first_message_that_is_refused(line: Line, mechanism: str, token: bytes, told: str) -> None:
    shake_hands(line, mechanism)
    assert show(line, token) == (ErrorCode.SASL_AUTHENTICATION_FAILED, told, b"", 0)
    assert line.is_closed()


def test_a_bearer_token_that_is_refused(line: Line) -> None:
    shake_hands(line, "OAUTHBEARER")
    invalid = '{"status":"invalid_token"}'
    assert show(line, f"n,,\x01auth=Bearer {unsecured(exp=5)}\x01\x01".encode()) == (0, "", invalid.encode(), 0)
    assert show(line, b"\x01") == (ErrorCode.SASL_AUTHENTICATION_FAILED, invalid, b"", 0)
    assert line.is_closed()


def test_a_good_log_in_and_what_comes_after_it(line: Line) -> None:
    answer = shake_hands(line, "PLAIN")
    assert (answer.error_code, sorted(answer.mechanisms)) == (0, sorted(MECHANISMS))
    assert show(line, b"\0alice\0pw") == (0, "", b"", 3_600_000)
    told = "SaslAuthenticate request received after successful authentication"
    assert show(line, b"\0alice\0pw") == (ErrorCode.ILLEGAL_SASL_STATE, told, b"", 0)
    assert shake_hands(line, "PLAIN").error_code == 0
    assert show(line, b"\0admin\0geheim")[:2] == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Cannot change principals during re-authentication from User.alice: User.admin",
    )
    assert line.is_closed()


def test_a_mechanism_that_is_not_enabled(line: Line) -> None:
    answer = shake_hands(line, "GSSAPI")
    assert (answer.error_code, sorted(answer.mechanisms)) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, sorted(MECHANISMS))
    assert line.is_closed()


@pytest.mark.parametrize(
    ("api", "request_", "response"),
    [
        ((16, 4), ListGroupsRequest(), ListGroupsResponse),
        ((17, 1), SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse),
        ((18, 2), ApiVersionsRequest(), ApiVersionsResponse),
    ],
)
def test_other_requests_after_the_handshake(line: Line, api: tuple[int, int], request_: Message, response: Any) -> None:
    shake_hands(line, "PLAIN")
    assert line.ask(api, request_, response).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert line.is_closed()


def test_what_is_closed_without_an_answer(port: int) -> None:
    bare = b"\0alice\0falsch"
    frames: list[list[Any]] = [
        [((3, 12), MetadataRequest())],
        [((36, 2), SaslAuthenticateRequest(auth_bytes=b"\0alice\0pw"))],
        [((17, 0), SaslHandshakeRequest(mechanism="PLAIN")), SIZE.pack(len(bare)) + bare],
        [SIZE.pack(14) + struct.pack(">hhih", 17, 7, 0, -1) + b"\0\2ab"],
    ]
    for each in frames:
        with Line(port) as line:
            for frame in each:
                if isinstance(frame, bytes):
                    line.socket.sendall(frame)
                elif frame[0] == (17, 0):
                    assert shake_hands(line, "PLAIN", 0).error_code == 0
                else:
                    line.send(*frame)
            assert line.is_closed()


def test_the_oldest_handshake(line: Line) -> None:
    assert shake_hands(line, "PLAIN", 0).error_code == 0
    token = b"\0alice\0pw"
    line.socket.sendall(SIZE.pack(len(token)) + token)
    assert line.receive() == b""
    assert line.ask((16, 4), ListGroupsRequest(), ListGroupsResponse).error_code == 0


def test_scram_with_a_wrong_password(line: Line, shown: Login) -> None:
    as_admin = shown("admin", "geheim")
    users = ["--entity-type", "users", "--entity-name", "carol"]
    run_tool("kafka-configs", *as_admin, "--alter", *users, "--add-config", "SCRAM-SHA-256=[password=c]")
    steps = log_in(Credentials("SCRAM-SHA-256", "carol", "falsch"), "it", "nonce")
    next(steps)
    assert shake_hands(line, "SCRAM-SHA-256").error_code == 0
    first = steps.send(SaslHandshakeResponse())
    assert isinstance(first, SaslAuthenticateRequest)
    code, _, token, _ = show(line, first.auth_bytes)
    assert code == 0
    final = steps.send(SaslAuthenticateResponse(auth_bytes=token))
    assert isinstance(final, SaslAuthenticateRequest)
    assert show(line, final.auth_bytes) == (ErrorCode.SASL_AUTHENTICATION_FAILED, failed("SCRAM-SHA-256"), b"", 0)
    assert line.is_closed()
