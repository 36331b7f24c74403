"""The log-in of one connection: its mechanism, its step, and the end of its session (KIP-43, KIP-152, KIP-368).

Owns the state of the log-in, and `connection.authentication`. While this attribute is set, the dispatcher asks it about every frame. A
connection that is logged in has None there, so the dispatcher asks nothing.

Rules
  1. Before the end of a log-in only ApiVersions, SaslHandshake and SaslAuthenticate are allowed, in Kafka's order. Any other request
     closes the connection. After the handshake the peer first gets ILLEGAL_SASL_STATE, if the answer has an error code.
  2. After SaslHandshake version 0 each token comes without a request header, after its size only. Failures then get no answer.
  3. After a failure the broker waits, then sends the error and closes the connection. The peer gets Kafka's error message, which does not
     tell whether the user exists. The delay outlives the connection: the broker handles the next log-in from the address when the delay is
     over (`security/penalties.py`).
  4. The answer tells the end of a session if it has one. After the end the connection may only log in again; any other request closes it.
     Mechanism and user stay the same at a further log-in. A session without an end has no further log-in.
  5. A log-in has limits on its number of frames, on the size of each, and on its time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct as Fields

from barnabas import limits
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode_request
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.protocol.request_headers import RequestHeader, read_request_header
from barnabas.security.exchange import AuthenticationFailed, Exchange, Identity, NotYet
from barnabas.server.answers import encode_answer, response_class
from barnabas.server.authentication.principals import PrincipalRefused

if TYPE_CHECKING:
    from barnabas.security.penalties import Penalties
    from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)
LEAST_SESSION_S = 1.0  # between two log-ins on a connection (KIP-368)
_SIZE = Struct(">i")
M = TypeVar("M", bound=Message)


class Counts(Fields):
    """Log-ins at all listeners since the start of the broker."""

    successes: int = 0
    failures: int = 0
    renewals: int = 0  # re-authentications (KIP-368)
    expired_closed: int = 0  # connections that sent requests after the end of their session


class LoginListener(Protocol):
    """The parts of its listener that a log-in needs."""

    counts: Counts
    penalties: Penalties
    monotonic_ms: Callable[[], float]
    max_request_bytes: int
    max_login_bytes: int

    @property
    def mechanisms(self) -> Mapping[str, object]:
        """By name, in the order of the answer to clients."""
        ...

    def begin(self, mechanism: str) -> Exchange: ...
    def lifetime_ms(self, mechanism: str, identity: Identity) -> int | None:
        """The lifetime in ms of a session that begins now; None if it has no end."""
        ...

    def prepare(self, missing: NotYet) -> asyncio.Future[None]:
        """Prepare data that a log-in waits for."""
        ...

    def name(self, connection: Connection, mechanism: str, identity: Identity) -> None:
        """Set the principal of a connection; raises PrincipalRefused."""
        ...


class Step(Enum):
    HANDSHAKE = "handshake"  # only ApiVersions so far
    BARE_TOKENS = "bare tokens"
    TOKENS = "tokens"
    FAILED = "failed"  # the answer is delayed
    OPEN = "open"  # logged in
    OVER = "over"  # the session has expired


class Login:
    """The log-in of one connection; the module's docstring has the rules.

    Args:
        connection: its `authentication` is this object during a log-in.
        sasl_listener: the listener that accepted the connection.
    """

    def __init__(self, connection: Connection, sasl_listener: LoginListener, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._sasl_listener = sasl_listener
        self._loop = loop
        self._step = Step.HANDSHAKE
        self._frames = 0
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._identity: Identity | None = None  # of the last complete log-in
        self._kept_mechanism = ""
        self._missing: NotYet | None = None  # data that this log-in waits for
        self._ends = False  # whether the session expires
        self._source = sasl_listener.penalties.source(connection.peer_host, None)  # the source that a failure counts against
        self._penalty: asyncio.TimerHandle | None = None  # set while this log-in waits because of earlier failures
        self._has_waited = False
        self._again_s = float("-inf")  # when the last re-authentication began
        self._timer = loop.call_later(limits.LOGIN_TIMEOUT_S, self._take_too_long)
        connection.on_close.append(self._stop)
        self._bar()

    def admits(self, frame: memoryview) -> bool:
        """Whether the dispatcher must handle a frame; if not, this method has handled it.

        Raises:
            ProtocolError: the connection must close.
        """
        if self._step is Step.FAILED:
            return False
        self._frames += 1
        if self._frames > limits.MAX_LOGIN_FRAMES:
            raise ProtocolError(f"more than {limits.MAX_LOGIN_FRAMES} frames without an end of the log-in")
        if self._step is Step.BARE_TOKENS:
            self._receive_bare(bytes(frame))
            return False
        header = read_request_header(frame)
        if self._step is Step.OVER:
            return self._receive_late(header, frame)
        if self._step is Step.TOKENS:
            self._receive_in_tokens(header, frame)
            return False
        if header.api_key == ApiKey.API_VERSIONS:
            return True
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            name = APIS[header.api_key][1] if header.api_key in APIS else header.api_key
            raise ProtocolError(f"request {name} before the SASL handshake")
        self._receive_handshake(header, frame)
        return False

    def begin_again(self, frame: memoryview) -> bool:
        """Take a SaslHandshake on a connection that is logged in; False if it comes too early, or the session has no end."""
        if not self._ends or self._loop.time() - self._again_s < LEAST_SESSION_S:
            return False
        header = read_request_header(frame)
        self._restart()
        self._receive_handshake(header, frame)
        return True

    # Steps

    def _receive_handshake(self, header: RequestHeader, frame: memoryview) -> None:
        request = _decode(SaslHandshakeRequest, header, frame)
        names = list(self._sasl_listener.mechanisms)
        self._mechanism = request.mechanism
        if request.mechanism not in self._sasl_listener.mechanisms:
            answer = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            self._fail(encode_answer(answer, header), f"mechanism {request.mechanism[:40]!r} is not enabled")
            return
        self._step = Step.BARE_TOKENS if header.api_version == 0 else Step.TOKENS
        self._exchange = self._sasl_listener.begin(request.mechanism)
        self._connection.send([encode_answer(SaslHandshakeResponse(mechanisms=names), header)])

    def _receive_in_tokens(self, header: RequestHeader, frame: memoryview) -> None:
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            name = APIS[header.api_key][1] if header.api_key in APIS else str(header.api_key)
            self._fail(_illegal_state(header), f"request {name} during the log-in")
            return
        self._take_token(header, bytes(_decode(SaslAuthenticateRequest, header, frame).auth_bytes))

    def _take_token(self, header: RequestHeader, message: bytes) -> None:
        if self._waits(message, partial(self._take_token, header, message)):
            return
        try:
            token, lifetime_ms = self._evaluate(message)
        except NotYet as missing:
            self._wait_for(missing, partial(self._take_token, header, message))
            return
        except AuthenticationFailed as error:
            again = "authentication" if self._identity is None else "re-authentication"
            told = (
                error.told
                or f"Authentication failed during {again} due to invalid credentials with SASL mechanism {self._mechanism}"
            )
            answer = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told)
            self._fail(encode_answer(answer, header), error.reason)
            return
        answer = SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        self._connection.send([encode_answer(answer, header)])

    def _receive_bare(self, token: bytes) -> None:
        if self._waits(token, partial(self._receive_bare, token)):
            return
        try:
            answer, _ = self._evaluate(token)
        except NotYet as missing:
            self._wait_for(missing, partial(self._receive_bare, token))
            return
        except AuthenticationFailed as error:
            self._fail(None, error.reason)
            return
        self._connection.send([_SIZE.pack(len(answer)) + answer])

    def _waits(self, message: bytes, go_on: Callable[[], None]) -> bool:
        """Whether a message must wait because of earlier failures; then this object calls `go_on` after the wait.

        Raises:
            ProtocolError: too many log-ins wait already.
        """
        claimed = None if self._exchange is None else self._exchange.claims(message)
        if claimed is None or self._has_waited or self._identity is not None:
            return False
        connection, penalties = self._connection, self._sasl_listener.penalties
        self._source = penalties.source(connection.peer_host, claimed)
        wait_ms = penalties.wait_ms(self._source, self._sasl_listener.monotonic_ms())
        if wait_ms <= 0:
            return False
        if not penalties.begin_wait(self._source):
            raise ProtocolError("too many log-ins wait after failures of their address")
        connection.pause("penalty")

        def end() -> None:
            self._end_penalty()
            self._has_waited = True
            go_on()
            connection.resume("penalty")

        self._penalty = self._loop.call_later(wait_ms / 1000, end)
        return True

    def _end_penalty(self) -> None:
        if self._penalty is not None:
            self._penalty.cancel()
            self._penalty = None
            self._sasl_listener.penalties.end_wait(self._source)

    def _wait_for(self, missing: NotYet, go_on: Callable[[], None]) -> None:
        """Read nothing more from the connection until the missing data is there, and then call `go_on`."""
        connection = self._connection
        connection.pause("credential")
        self._missing = missing

        def there(done: asyncio.Future[None]) -> None:
            failure = None if done.cancelled() else done.exception()
            if connection.closed:
                return
            if done.cancelled() or failure is not None:
                logger.error("event=login-given-up peer=%s error=%r", connection.peer, failure)
                connection.close()
                return
            self._missing = None
            go_on()
            if self._missing is None:  # otherwise the data is missing again, and the log-in still waits
                connection.resume("credential")

        self._sasl_listener.prepare(missing).add_done_callback(there)

    def _receive_late(self, header: RequestHeader, frame: memoryview) -> bool:
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            self._sasl_listener.counts.expired_closed += 1
            raise ProtocolError("the session's time is up, and it was not renewed")
        self._restart()
        self._receive_handshake(header, frame)
        return False

    def _evaluate(self, token: bytes) -> tuple[bytes, int]:
        """The answer to a token, and the session's lifetime in ms if the token was the last."""
        assert self._exchange is not None
        if self._identity is not None and self._mechanism != self._kept_mechanism:
            told = f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication of mechanism "
            raise AuthenticationFailed("another mechanism at re-authentication", f"{told}'{self._kept_mechanism}'")
        answer = self._exchange.evaluate(token)
        identity = self._exchange.identity
        if identity is None:
            return answer, 0
        if self._identity is not None and identity.user != self._identity.user:
            told = f"Cannot change principals during re-authentication from User.{self._identity.user}: User.{identity.user}"
            raise AuthenticationFailed("another user at re-authentication", told)
        self._name(identity)
        return answer, self._let_in(identity)

    def _name(self, identity: Identity) -> None:
        """Set the principal, which must not change at a further log-in; raises AuthenticationFailed."""
        connection, before = self._connection, self._connection.principal
        try:
            self._sasl_listener.name(connection, self._mechanism, identity)
        except PrincipalRefused as error:
            raise AuthenticationFailed(str(error)) from error
        if self._identity is not None and connection.principal != before:
            told = f"Cannot change principals during re-authentication from {before}: {connection.principal}"
            raise AuthenticationFailed("another principal at re-authentication", told)

    # Start and end of a session

    def _let_in(self, identity: Identity) -> int:
        connection, counts = self._connection, self._sasl_listener.counts
        if self._identity is None:
            counts.successes += 1
            self._sasl_listener.penalties.logged_in(connection.peer_host, identity.user)
        else:
            counts.renewals += 1
        self._identity, self._kept_mechanism, self._exchange = identity, self._mechanism, None
        self._step, self._frames = Step.OPEN, 0
        self._timer.cancel()
        lifetime_ms = self._sasl_listener.lifetime_ms(self._mechanism, identity)
        self._ends = lifetime_ms is not None
        if lifetime_ms is not None:
            self._timer = self._loop.call_later(lifetime_ms / 1000, self._expire)
        connection.by_token = identity.by_token
        connection.authentication = None
        connection.max_frame_bytes = self._sasl_listener.max_request_bytes
        logger.debug("event=logged-in peer=%s listener=%s mechanism=%s", connection.peer, connection.listener, self._mechanism)
        return lifetime_ms or 0

    def _restart(self) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(limits.LOGIN_TIMEOUT_S, self._take_too_long)
        self._again_s = self._loop.time()
        self._frames = 1
        self._step = Step.HANDSHAKE
        self._bar()

    def _bar(self) -> None:
        self._connection.authentication = self
        self._connection.max_frame_bytes = self._sasl_listener.max_login_bytes
        self._connection.forget_learnt()

    def _expire(self) -> None:
        self._step, self._frames = Step.OVER, 0
        self._connection.authentication = self
        self._connection.forget_learnt()

    def _take_too_long(self) -> None:
        # a client that sends nothing may be the liveness prober of another broker
        level = logging.WARNING if self._frames else logging.DEBUG
        logger.log(level, "event=connection-closed peer=%s reason=%r", self._connection.peer, "no end of the log-in in time")
        self._connection.close()

    def _fail(self, answer: bytearray | None, reason: str) -> None:
        connection = self._connection
        self._step, self._exchange = Step.FAILED, None
        self._timer.cancel()
        self._sasl_listener.counts.failures += 1
        delay_ms = self._sasl_listener.penalties.delay_ms(self._source, self._sasl_listener.monotonic_ms())
        logger.warning(
            "event=login-failed peer=%s listener=%s mechanism=%r reason=%r delay_ms=%d",
            connection.peer, connection.listener, self._mechanism[:40], reason, delay_ms,
        )  # fmt: skip
        connection.pause("login")
        place = connection.expect_answer()

        def close() -> None:
            if answer is not None:
                connection.complete(place, [answer])
            connection.close_after_answers()

        self._timer = self._loop.call_later(delay_ms / 1000, close)

    def _stop(self) -> None:
        self._timer.cancel()
        self._end_penalty()


def _decode(kind: type[M], header: RequestHeader, frame: memoryview) -> M:
    if not kind.FIRST_VERSION <= header.api_version <= kind.LAST_VERSION:
        raise ProtocolError(f"api {APIS[header.api_key][1]} does not have version {header.api_version}")
    return decode_request(kind, header.api_version, frame, header.body)


def _illegal_state(header: RequestHeader) -> bytearray | None:
    """An answer of any API with ILLEGAL_SASL_STATE; None if the version is unknown or the answer has no error code."""
    if header.api_key not in APIS or not APIS[header.api_key][2] <= header.api_version <= APIS[header.api_key][3]:
        return None
    response = response_class(header.api_key)()
    if not hasattr(response, "error_code"):
        return None
    response.error_code = ErrorCode.ILLEGAL_SASL_STATE
    return encode_answer(response, header)
