"""The log-in of a connection, frame by frame over a socket."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.errors import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.penalties import FREE_FAILURES
from barnabas.server.authentication import sasl_login
from barnabas.server.authentication.sasl_listeners import SaslListener
from barnabas.server.broker import Broker as ServingBroker
from barnabas.testing import Broker
from tests.server.in_process import running
from tests.server.wire import SIZE, Line, framed
from tests.waiting import wait_until

HANDSHAKE, HANDSHAKE_V0, AUTHENTICATE, VERSIONS, METADATA, LIST_GROUPS = (17, 1), (17, 0), (36, 2), (18, 3), (3, 12), (16, 4)
HELD_S = 8.0  # an address is held up for ten seconds
GOOD, WRONG = b"\0alice\0geheim", b"\0alice\0falsch"
PLAIN = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security_inter_broker_protocol": "SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN",
    "sasl_jaas_config": 'x.PlainLoginModule required user_alice="geheim" user_bob="b";',
    "connection_failed_authentication_delay_ms": "0",
}
VERSIONS_REQUEST = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"connection.failed.authentication.delay.ms": 0, "sasl.server.max.receive.size": 2000}
    with Broker(config, users={"alice": "geheim", "bob": "b"}) as started:
        yield started


@pytest.fixture(scope="module")
def renewing() -> Iterator[Broker]:
    """A broker whose sessions have an end, and so may be begun again."""
    config = {"connection.failed.authentication.delay.ms": 0, "connections.max.reauth.ms": 3_600_000}
    with Broker(config, users={"alice": "geheim", "bob": "b"}) as started:
        yield started


@pytest.fixture
def line(broker: Broker) -> Iterator[Line]:
    with Line(broker) as opened:
        yield opened


def shake_hands(line: Line, mechanism: str = "PLAIN", api: tuple[int, int] = HANDSHAKE) -> SaslHandshakeResponse:
    return line.ask(api, SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)


def show(line: Line, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return line.ask((36, version), SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)


def asks_topics(line: Line) -> bool:
    return line.ask(METADATA, MetadataRequest(topics=None), MetadataResponse).controller_id >= 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_handshake_and_password_open_the_way(line: Line, version: int) -> None:
    assert line.ask(VERSIONS, VERSIONS_REQUEST, ApiVersionsResponse).error_code == 0
    answer = shake_hands(line)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    done = show(line, GOOD, version)
    assert (done.error_code, done.error_message, done.auth_bytes, done.session_lifetime_ms) == (0, "", b"", 0)
    assert asks_topics(line)


def test_the_oldest_handshake_has_bare_tokens_after_it(line: Line) -> None:
    assert shake_hands(line, api=HANDSHAKE_V0).error_code == 0
    line.socket.sendall(SIZE.pack(len(GOOD)) + GOOD)
    assert line.receive() == b""
    assert asks_topics(line)


def test_a_bare_token_that_is_wrong_closes_without_an_answer(line: Line) -> None:
    shake_hands(line, api=HANDSHAKE_V0)
    line.socket.sendall(SIZE.pack(len(WRONG)) + WRONG)
    assert line.is_closed()


@pytest.mark.parametrize("token", [WRONG, b"\0nobody\0geheim"])
def test_a_wrong_password_and_an_unknown_user_are_told_the_same(line: Line, token: bytes) -> None:
    shake_hands(line)
    answer = show(line, token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert line.is_closed()


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0geheim", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"\xff\0alice\0geheim",
            "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN",
        ),
    ],
)
def test_a_token_that_cannot_be_read(line: Line, token: bytes, told: str) -> None:
    shake_hands(line)
    answer = show(line, token)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, told)
    assert line.is_closed()


def test_another_authorization_id(line: Line) -> None:
    shake_hands(line)
    answer = show(line, b"bob\0alice\0geheim")
    assert answer.error_message == "Authentication failed: Client requested an authorization id that is different from username"
    assert line.is_closed()


def test_a_mechanism_that_is_not_enabled(line: Line) -> None:
    answer = shake_hands(line, "GSSAPI")
    assert (answer.error_code, answer.mechanisms) == (
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
    )
    assert line.is_closed()


@pytest.mark.parametrize("version", [2, 7])
def test_a_version_of_the_handshake_that_nobody_knows(line: Line, version: int) -> None:
    line.socket.sendall(SIZE.pack(14) + struct.pack(">hhih", 17, version, 0, -1) + b"\0\2ab")
    assert line.is_closed()


def test_requests_before_the_handshake_close(line: Line) -> None:
    line.send(METADATA, MetadataRequest(topics=None))
    assert line.is_closed()


def test_an_authentication_before_the_handshake_closes(line: Line) -> None:
    line.send(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=GOOD))
    assert line.is_closed()


@pytest.mark.parametrize(
    ("api", "request_", "response"),
    [
        (LIST_GROUPS, ListGroupsRequest(), ListGroupsResponse),
        (HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse),
        (VERSIONS, VERSIONS_REQUEST, ApiVersionsResponse),
    ],
)
def test_other_requests_after_the_handshake_are_told_of_the_state(
    line: Line, api: tuple[int, int], request_: Message, response: type[ListGroupsResponse]
) -> None:
    shake_hands(line)
    assert line.ask(api, request_, response).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert line.is_closed()


def test_a_request_whose_answer_has_no_code_just_closes(line: Line) -> None:
    shake_hands(line)
    line.send((0, 9), MetadataRequest())
    assert line.is_closed()


def test_a_frame_that_is_too_large_for_a_log_in(line: Line) -> None:
    shake_hands(line)
    line.send(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"x" * 2000))
    assert line.is_closed()


def test_frames_may_be_large_after_it(line: Line) -> None:
    shake_hands(line)
    show(line, GOOD)
    line.send(METADATA, MetadataRequest(topics=None), 0)
    assert line.receive()
    line.socket.sendall(SIZE.pack(1_000_000))
    assert asks_nothing_yet(line)


def asks_nothing_yet(line: Line) -> bool:
    """The broker waits for the rest of the frame."""
    line.socket.settimeout(0.05)
    try:
        return line.socket.recv(1) != b""
    except TimeoutError:
        return True


def test_a_loop_of_versions_has_an_end(line: Line) -> None:
    for _ in range(limits.MAX_LOGIN_FRAMES):
        assert line.ask(VERSIONS, VERSIONS_REQUEST, ApiVersionsResponse).error_code == 0
    with pytest.raises((EOFError, ConnectionError)):
        line.ask(VERSIONS, VERSIONS_REQUEST, ApiVersionsResponse)


def test_pipelined_requests_behind_a_failure_are_not_worked_on(line: Line) -> None:
    shake_hands(line)
    tokens = [framed(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token)) for token in (WRONG, GOOD)]
    line.socket.sendall(b"".join([*tokens, framed(METADATA, MetadataRequest(topics=None))]))
    with suppress(ConnectionError):  # the broker closes with unread requests: the kernel may then drop the answer
        assert struct.unpack_from(">h", line.receive(), 5)[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert line.is_closed()


def test_a_whole_log_in_and_what_comes_after_it_may_be_one_write(line: Line) -> None:
    line.socket.sendall(
        framed(VERSIONS, VERSIONS_REQUEST)
        + framed(HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"))
        + framed(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=GOOD))
        + framed(METADATA, MetadataRequest(topics=None))
    )
    answers = [line.receive() for _ in range(4)]
    assert decode(MetadataResponse, 12, answers[3], 5).controller_id >= 0


def test_an_authentication_after_the_log_in_is_refused(line: Line) -> None:
    shake_hands(line)
    show(line, GOOD)
    answer = show(line, GOOD)
    told = "SaslAuthenticate request received after successful authentication"
    assert (answer.error_code, answer.error_message) == (ErrorCode.ILLEGAL_SASL_STATE, told)
    assert asks_topics(line)


def test_a_session_without_an_end_is_not_begun_again(line: Line) -> None:
    shake_hands(line)
    show(line, GOOD)
    assert shake_hands(line).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert asks_topics(line)


async def test_logging_in_again_keeps_user_and_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sasl_login, "LEAST_SESSION_S", 3_600)
    async with running([tmp_path], **PLAIN, connections_max_reauth_ms="3600000") as client:
        await client.in_thread(lambda: check_logging_in_again(client.broker.endpoints[0].port))


def check_logging_in_again(port: int) -> None:
    changes = {
        b"\0bob\0b": "Cannot change principals during re-authentication from User.alice: User.bob",
        WRONG: "Authentication failed: Invalid username or password",
        b"\xff": "Authentication failed during re-authentication due to invalid credentials with SASL mechanism PLAIN",
    }
    for token, told in changes.items():
        with Line(port) as line:
            shake_hands(line)
            show(line, GOOD)
            assert asks_topics(line)
            assert shake_hands(line).error_code == 0
            assert show(line, GOOD).error_code == 0
            assert shake_hands(line).error_code == ErrorCode.ILLEGAL_SASL_STATE  # too soon after the last log-in
            assert asks_topics(line)
        with Line(port) as line:
            shake_hands(line)
            show(line, GOOD)
            shake_hands(line)
            answer = show(line, token)
            assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, told)
            assert line.is_closed()


def test_another_mechanism_at_re_authentication(renewing: Broker) -> None:
    told = "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    with Line(renewing) as line:
        shake_hands(line)
        show(line, GOOD)
        assert shake_hands(line, "SCRAM-SHA-256").error_code == 0
        assert show(line, b"n,,n=alice,r=x").error_message == told
        assert line.is_closed()


def test_no_secret_gets_into_the_log(broker: Broker) -> None:
    for token in (WRONG, GOOD):
        with Line(broker) as line:
            shake_hands(line)
            show(line, token)
    assert "event=login-failed" in broker.log
    for secret in ("geheim", "falsch"):
        assert secret not in broker.log


def test_without_sasl_a_handshake_is_an_illegal_state() -> None:
    with Broker() as plain, Line(plain) as line:
        assert shake_hands(line).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert show(line, GOOD).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert asks_topics(line)


async def test_a_session_ends_unless_it_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running([tmp_path], **PLAIN, connections_max_reauth_ms="300") as client:
        await client.in_thread(lambda: check_ends_of_sessions(client.broker, monkeypatch))


def check_ends_of_sessions(broker: ServingBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    (endpoint,) = broker.endpoints
    with Line(endpoint.port) as line:
        shake_hands(line)
        assert show(line, GOOD).session_lifetime_ms == 300
        with suppress(EOFError, ConnectionError):
            while asks_topics(line):
                pass
    with Line(endpoint.port) as line:
        port = line.socket.getsockname()[1]
        shake_hands(line)
        (connection,) = (each for each in list(broker.connections) if each.peer_port == port)
        for _ in range(2):  # the second log-in comes after the end of the first session
            assert show(line, GOOD).session_lifetime_ms == 300
            wait_until(lambda: connection.closed or connection.authentication is not None, "the session does not end")
            assert not connection.closed
            assert shake_hands(line).error_code == 0
        monkeypatch.setattr(SaslListener, "lifetime_ms", lambda *_: 3_600_000)  # applies to the next log-in
        show(line, GOOD)
        assert asks_topics(line)


def change(broker: Broker, key: str, value: str) -> tuple[int, str | None]:
    with Line(broker) as line:
        shake_hands(line)
        assert show(line, GOOD).error_code == 0
        configs = [AlterableConfig(name=key, config_operation=0, value=value)]
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = line.ask((44, 1), request, IncrementalAlterConfigsResponse).responses
        return answer.error_code, answer.error_message


def test_users_of_plain_are_changed_while_the_broker_runs_and_for_the_next_start() -> None:
    key, module = "listener.name.sasl_plaintext.plain.sasl.jaas.config", "x.PlainLoginModule required"
    with Broker({"connection.failed.authentication.delay.ms": 0}, users={"alice": "geheim"}) as broker:
        assert change(broker, key, f'{module} user_alice="geheim" user_carol="c";')[0] == 0
        for bad in ("x.Other required;", f"{module} password=geheim;", "geheim"):
            code, told = change(broker, key, bad)
            assert code == ErrorCode.INVALID_REQUEST
            assert "geheim" not in str(told)
        for _ in range(2):
            with Line(broker) as line:
                shake_hands(line)
                assert show(line, b"\0carol\0c").error_code == 0
            broker.restart()
        assert "geheim" not in broker.log


def _guess(opened: ExitStack, broker: Broker, source: str, count: int = 1) -> list[Line]:
    """Show a wrong password of bob's on so many new connections, and do not wait for the answers."""
    lines = [opened.enter_context(Line(broker, source=source)) for _ in range(count)]
    for each in lines:
        shake_hands(each)
        each.send(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0bob\0falsch"))
    return lines


def _log_in(broker: Broker, source: str, token: bytes) -> int:
    with Line(broker, source=source) as line:
        shake_hands(line)
        return show(line, token).error_code


def test_failures_hold_up_the_next_connections_of_their_address() -> None:
    with (
        Broker({"connection.failed.authentication.delay.ms": 100}, users={"alice": "geheim", "bob": "b"}) as broker,
        ExitStack() as opened,
    ):

        def until_failed(count: int) -> None:
            wait_until(lambda: broker.log.count("event=login-failed") == count)

        here, there = "127.0.0.7", "127.0.0.8"
        assert _log_in(broker, here, GOOD) == 0
        _guess(opened, broker, here, FREE_FAILURES + 1)
        until_failed(FREE_FAILURES + 1)  # the broker checks no log-in of this address for the next 200 ms
        for guessing in _guess(opened, broker, here, 20)[limits.MAX_WAITING_LOGINS :]:
            assert guessing.is_closed(), "no more wait than may"
        # the broker checked all waiting log-ins at once; the next ones wait ten seconds
        until_failed(FREE_FAILURES + 1 + limits.MAX_WAITING_LOGINS)
        held_s = time.monotonic()
        with ThreadPoolExecutor(1) as threads, Line(broker, source=here) as line:
            shake_hands(line)  # before others wait
            stranger = threads.submit(show, line, b"\0bob\0b")
            assert _log_in(broker, there, b"\0bob\0b") == 0, "another address"
            assert _log_in(broker, here, GOOD) == 0, "a user who was here before"
            for _ in range(20):
                with ExitStack() as given_up:
                    _guess(given_up, broker, here)
            assert not stranger.done() or time.monotonic() - held_s > HELD_S
            assert stranger.result(60).error_code == 0, "whoever has the right password waits for ten seconds at most"
        assert broker.log.count("event=login-failed") < FREE_FAILURES + 1 + 2 * limits.MAX_WAITING_LOGINS, (
            "nor more guesses than may"
        )
