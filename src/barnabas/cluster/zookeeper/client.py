"""A wrapper of kazoo for the store: requests with a bounded wait, persistent watches, and session events.

Owns kazoo's client with its threads; `connection.py` has the socket and the log-in. Only these two modules use kazoo's
internals.

How it works
  Watches: kazoo knows ZooKeeper's one-time watches only. A persistent recursive watch (ZooKeeper 3.6) is an additional request,
  sent again after every connect; its events are intercepted where kazoo reads them.

  Late requests: a request that was given up while it waited for a connection must never be sent. Otherwise a commit could be
  done long after its caller read that it was not. So each request is claimed once, either by the thread that sends it or by
  the caller that gives it up. If a request was sent and got no answer, its outcome is final when the next read is answered. A
  server executes the requests of a connection in order, and refuses requests from a session's earlier connection.

Ugly: `_call`, `_connection` and the methods that `Connection` overrides are private to kazoo. They have been stable for many
versions, and the conformance suite uses all of them, so it detects a change.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    KazooException,
    OperationTimeoutError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import AsyncResult, KazooTimeoutError
from kazoo.retry import KazooRetry

from barnabas.cluster.store.interface import SessionEvent, SessionState, StoreUnavailable
from barnabas.cluster.zookeeper.access import ANYBODY, ZooKeeperAccess
from barnabas.cluster.zookeeper.connection import Connection, Handler
from barnabas.cluster.zookeeper.requests import AddWatch, MultiRead

MAX_IN_FLIGHT = 1_000  # unanswered requests of a pipeline
READS_AT_ONCE = 64  # reads in one request: about 1 MB of response for partition states
MAX_READS_IN_FLIGHT = 8  # unanswered requests of that size
FIRST_RETRY_S = 0.05
LONGEST_RETRY_S = 0.5
FIRST_ATTEMPT_S = 0.5  # shortest timeout of connecting to one server, before the next is tried
# Share of the session timeout. The rest is a margin: a server may receive a request and fail before it passes
# the request to the leader of the ensemble.
BELIEVED = 5 / 6

LOST = (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooTimeoutError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    SessionClosedRequireSaslError,  # also if another authentication was configured
)


class Request:
    """A kazoo request that is either sent or given up, never both."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self.type = body.type
        self._claim = threading.Lock()

    def claim(self) -> bool:
        """True for the first caller only."""
        return self._claim.acquire(blocking=False)

    def serialize(self) -> bytes:
        if not self.claim():
            raise ConnectionDropped("a request that was given up is not sent")
        return bytes(self._body.serialize())

    def deserialize(self, buffer: bytes, offset: int) -> Any:
        return self._body.deserialize(buffer, offset)


class Reply(AsyncResult):  # type: ignore[misc]  # kazoo comes without types
    """The answer to a request, and the number of the server's last transaction before it."""

    def __init__(self, client: KazooClient, done: Callable[[], None] | None = None) -> None:
        super().__init__(client.handler)
        self._client = client
        self._done = done
        self.zxid = 0

    def set(self, value: Any = None) -> None:
        self.zxid = self._client.last_zxid
        super().set(value)
        if self._done is not None:
            self._done()


class ZooKeeperClient:
    """A connected client.

    Args:
        servers: "host:port,host:port".
        access: encryption and log-in of every connection.
        on_session, on_change, on_watching: called on kazoo's connection thread, in the order of the events; they must not
            block. They receive session events, changed paths, and the start of watching after a connect.

    Raises:
        ConfigError: key or trust store of `access` cannot be read.
        StoreUnavailable: no server answered in time.
    """

    def __init__(
        self,
        servers: str,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        on_session: Callable[[SessionEvent], None],
        on_change: Callable[[str], None],
        on_watching: Callable[[], None],
        access: ZooKeeperAccess = ANYBODY,
    ) -> None:
        self.servers = servers
        self.session = SessionEvent(SessionState.SUSPENDED, 0)
        self._timeout_s = connection_timeout_ms / 1000
        self._on_session = on_session
        self._on_watching = on_watching
        self._watched: str | None = None
        self._connected = threading.Event()
        self._closing = False
        handler = Handler(access.tls, attempt_s=max(FIRST_ATTEMPT_S, session_timeout_ms / 6000))
        retry = KazooRetry(max_tries=-1, delay=FIRST_RETRY_S, max_delay=LONGEST_RETRY_S, sleep_func=handler.sleep_func)
        auth = None if access.digest is None else [("digest", access.digest)]
        self._kazoo = KazooClient(servers, session_timeout_ms / 1000, handler=handler, connection_retry=retry, auth_data=auth)
        self._connection = Connection(self._kazoo, on_change, access.login)
        self._kazoo._connection = self._connection
        self._kazoo.add_listener(self._state_changed)
        try:
            self._kazoo.start(self._timeout_s)
        except KazooTimeoutError:
            raise StoreUnavailable(
                self._explained(f"no answer from ZooKeeper at {servers} within {connection_timeout_ms} ms")
            ) from None

    def _explained(self, text: str) -> str:
        """An error with the last trouble of the connection, which explains more than a missing answer."""
        trouble = self._kazoo.handler.trouble
        return f"{text} ({trouble})" if trouble else text

    @property
    def session_timeout_ms(self) -> int:
        """The session timeout that the server granted."""
        return self._connection.session_timeout_ms

    @property
    def believed_ms(self) -> float:
        """How long the session is certain to live from now on."""
        age_ms = (time.monotonic() - self._connection.heard_at_s) * 1000
        return max(0.0, self.session_timeout_ms * BELIEVED - age_ms)

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._become(SessionState.CONNECTED, self._kazoo._session_id)
            self._connected.set()
            if self._watched is not None:
                self._kazoo._call(AddWatch(self._watched), Reply(self._kazoo, self._on_watching))
            return
        self._connected.clear()
        if state == KazooState.SUSPENDED:
            self._become(SessionState.SUSPENDED, self.session.session_id)
        elif not self._closing:
            self._become(SessionState.EXPIRED, self.session.session_id)

    def _become(self, state: SessionState, session_id: int) -> None:
        self.session = SessionEvent(state, session_id)
        self._on_session(self.session)

    def watch(self, path: str) -> None:
        """Watch changes at `path` and below, reported by `on_change`; returns when the watch is active."""
        if self._watched is None:
            self._watched = path
            self.ask(AddWatch(path))

    def ask(self, body: Any) -> Reply:
        """One request and its reply.

        Raises:
            KazooException: the server refused it.
            StoreUnavailable: there was no answer; the request may or may not have been done.
        """
        request, reply = self._begin(body)
        self._wait(request, reply)
        return reply

    def read(self, bodies: Iterable[Any]) -> Iterator[Any]:
        """The answers to many GetData and GetChildren requests, in the form of `pipeline`."""
        waiting = iter(bodies)
        batches = iter(lambda: tuple(islice(waiting, READS_AT_ONCE)), ())
        for outcomes in self.pipeline(map(MultiRead, batches), MAX_READS_IN_FLIGHT):
            if isinstance(outcomes, KazooException):
                raise StoreUnavailable(
                    f"ZooKeeper at {self.servers} does not support multi-read; 3.6 or later is needed"
                ) from outcomes
            yield from outcomes

    def pipeline(self, bodies: Iterable[Any], in_flight: int = MAX_IN_FLIGHT) -> Iterator[Any]:
        """The answers to many requests, in their order; each is a value or a KazooException. Raises StoreUnavailable."""
        under_way: deque[tuple[Request, Reply]] = deque()
        for body in bodies:
            if len(under_way) == in_flight:
                yield self._outcome(*under_way.popleft())
            under_way.append(self._begin(body))
        while under_way:
            yield self._outcome(*under_way.popleft())

    def _outcome(self, request: Request, reply: Reply) -> Any:
        try:
            return self._wait(request, reply)
        except KazooException as error:
            return error

    def _begin(self, body: Any) -> tuple[Request, Reply]:
        if not self._connected.wait(self._timeout_s):
            raise StoreUnavailable(self._explained(f"no connection to ZooKeeper at {self.servers}"))
        request, reply = Request(body), Reply(self._kazoo)
        self._kazoo._call(request, reply)
        return request, reply

    def _wait(self, request: Request, reply: Reply) -> Any:
        try:
            return reply.get(timeout=self._timeout_s)
        except LOST as error:
            request.claim()
            reason = str(error) or type(error).__name__
            raise StoreUnavailable(self._explained(f"no answer from ZooKeeper at {self.servers}: {reason}")) from error

    def close(self) -> None:
        """End the session and the threads."""
        self._closing = True
        try:
            self._kazoo.stop()
        finally:
            self._kazoo.close()
