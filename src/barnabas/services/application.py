"""One service as an ASGI application: converts the web server's events to a `Request`, and a `Response` back to events.

Owns the common parts of all services: limits of bodies and time, log-in, health pages, metrics, the access log, and errors that
reveal nothing about the code.

Rule: a caller logs in first, so that nobody learns which paths exist without a log-in. Only the health pages are open.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from barnabas import limits
from barnabas.services.logins import Logins
from barnabas.services.metrics import RequestTimes
from barnabas.services.presence import Gone, Presence
from barnabas.web.routing import Caller, Headers, HttpError, Request, Response, not_allowed
from barnabas.web.service import Service

logger = logging.getLogger(__name__)
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
PLAIN_TEXT = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing
OPEN_PAGES = frozenset({"/healthz", "/readyz"})  # probes do not log in


class Application:
    """Args:
    name: the name of the service in logs and metrics.
    logins: checks callers; None if callers do not log in.
    timeout_s: of a request, up to the first byte of its answer; None: SERVICE_REQUEST_TIMEOUT_S.
    follows_clients: whether a request is cancelled when its client goes away.
    """

    def __init__(
        self, name: str, service: Service, times: RequestTimes, logins: Logins | None = None, *,
        timeout_s: float | None = None, follows_clients: bool = False,
    ) -> None:  # fmt: skip
        self._name, self._service, self._times, self._logins = name, service, times, logins
        self._timeout_s = limits.SERVICE_REQUEST_TIMEOUT_S if timeout_s is None else timeout_s
        self._follows_clients = follows_clients
        self._bodies = _Bodies()
        self._pages = {"/healthz": self._health, "/readyz": self._readiness, "/metrics": self._metrics}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = time.perf_counter()
        method, target = scope["method"], scope["raw_path"].decode("latin-1")
        host = scope["client"][0] if scope["client"] else ""
        request = Request(method, target, caller=Caller(host=host))
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._answer(request, scope, receive)
        except Gone:
            return
        except TimeoutError:
            response = self._refuse(HttpError(408, "Request Timeout"), close=True)
        if response.stream is not None:
            sent = await self._send_stream(request, response, response.stream, scope["state"]["presence"], send)
            self._note(request, response.status, sent, time.perf_counter() - began)
            return
        self._note(request, response.status, len(response.body), time.perf_counter() - began)
        headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        body = b"" if method == "HEAD" else response.body
        if len(body) <= limits.SERVICE_ANSWER_BUFFER_BYTES:
            await send({"type": "http.response.body", "body": body})
            return
        view, step = memoryview(body), limits.SERVICE_ANSWER_BUFFER_BYTES
        for start in range(0, len(body), step):  # each piece is sent after the buffer has room again
            await send({"type": "http.response.body", "body": view[start : start + step], "more_body": start + step < len(body)})

    async def _send_stream(
        self, request: Request, response: Response, stream: AsyncGenerator[bytes, None], presence: Presence, send: Send
    ) -> int:
        """Send a stream as the client takes it; returns the count of bytes. A client that goes away ends the stream, also while it
        makes its next piece. After an error the answer stays without its end, and the connection is closed."""
        sent = 0

        async def send_all() -> None:
            nonlocal sent
            await send({"type": "http.response.start", "status": response.status, "headers": list(response.headers)})
            if request.method != "HEAD":
                await send({"type": "http.response.body", "body": response.body, "more_body": True})
                sent = len(response.body)
                async for piece in stream:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    sent += len(piece)
                    await asyncio.sleep(0)  # a stream that never waits leaves others their turn
            await send({"type": "http.response.body", "body": b""})

        async with contextlib.aclosing(stream):
            try:
                await presence.during(send_all())
            except Gone:
                pass
            except Exception as error:
                logger.error(
                    "event=http-answer-broken service=%s method=%s path=%r error=%r",
                    self._name, request.method, request.path, str(error), exc_info=not isinstance(error, HttpError),
                )  # fmt: skip
        return sent

    def malformed(self, host: str) -> Response:
        """The answer to bytes that are not HTTP."""
        response = self._refuse(HttpError(400, "HTTP 400 Bad Request"), close=True)
        self._note(Request("-", "-", caller=Caller(host=host)), response.status, len(response.body), 0.0)
        return response

    def _note(self, request: Request, status: int, size: int, seconds: float) -> None:
        self._times.observe(self._name, request.method, status, seconds)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "event=http-request service=%s method=%s path=%r status=%d bytes=%d ms=%.1f principal=%r host=%s",
                self._name, request.method, request.path, status, size, seconds * 1000,
                request.caller.principal, request.caller.host,
            )  # fmt: skip

    async def _answer(self, request: Request, scope: Scope, receive: Receive) -> Response:
        refused = scope["state"].get("refused")
        try:
            if refused is not None:
                raise refused
            request.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            if request.method not in SAFE and _is_of_another_origin(request.headers):
                raise HttpError(403, "a web page of another origin may only read")
            if scope["query_string"]:
                request.queries = _fields(scope["query_string"].decode("latin-1"))
                request.query = dict(request.queries)
            if self._logins is not None and request.path not in OPEN_PAGES:
                certificate = scope["state"].get("certificate")
                principal = await self._logins.principal(
                    request.headers.get("authorization", ""), certificate, request.caller.host
                )
                request.caller = Caller(principal, request.caller.host)
                if not self._logins.methods:  # the certificate was the log-in, and nobody has checked this header
                    request.headers.pop("authorization", None)
            handler, given = self._find(request)
            request.body = await self._bodies.read(request, scope["state"], receive)
            if self._follows_clients:
                presence: Presence = scope["state"]["presence"]
                return await presence.during(handler(request, *given))
            return await handler(request, *given)
        except HttpError as error:
            return self._refuse(error, close=error.status in {413, 414, 431})
        except (Gone, TimeoutError):
            raise
        except Exception:  # an error in a service must not end the host; callers do not get its text
            logger.exception("event=http-request-failed service=%s method=%s path=%r", self._name, request.method, request.path)
            return self._refuse(HttpError(500, "Internal Server Error"))
        finally:
            self._bodies.held -= len(request.body)

    def _find(self, request: Request) -> tuple[Callable[..., Awaitable[Response]], list[str]]:
        try:
            return self._service.router.find(request.method, request.path)
        except HttpError as error:
            page = self._pages.get(request.path) if error.status == 404 else None
            if page is None:
                raise
            if request.method not in {"GET", "HEAD"}:
                raise not_allowed({"GET"}) from None
            return page, []

    def _refuse(self, error: HttpError, *, close: bool = False) -> Response:
        response = self._service.error(error)
        extra: Headers = (*error.headers, (b"connection", b"close")) if close else error.headers
        if error.status == 401 and self._logins is not None:
            extra += self._logins.challenges
        return response._replace(headers=(*response.headers, *extra)) if extra else response

    async def _health(self, _request: Request) -> Response:
        return Response(b"ok\n", headers=PLAIN_TEXT)

    async def _readiness(self, _request: Request) -> Response:
        is_ready = self._service.is_ready()
        return Response(b"ready\n" if is_ready else b"not ready\n", 200 if is_ready else 503, PLAIN_TEXT)

    async def _metrics(self, _request: Request) -> Response:
        return Response(self._times.page() + await self._service.metrics(), headers=PLAIN_TEXT)


def _is_of_another_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser sends the request for a page that another server gave: the user may not know of it."""
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != headers.get("host")


def _fields(query: str) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(parse_qsl(query, keep_blank_values=True, max_num_fields=limits.MAX_SERVICE_QUERY_FIELDS))
    except ValueError:
        raise HttpError(400, f"a query has at most {limits.MAX_SERVICE_QUERY_FIELDS} parameters") from None


class _Bodies:
    """Reads the bodies of requests, and counts the bytes of bodies in memory."""

    def __init__(self) -> None:
        self.held = 0

    async def read(self, request: Request, state: Mapping[str, Any], receive: Receive) -> bytes:
        """The body. The caller subtracts its size from `held` when the request is done. Raises HttpError 413, 415 or 503."""
        if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
            return b""
        pieces: list[bytes] = []
        size, more = 0, True
        try:
            _check_head(request)
            while more:
                piece, more = await _piece(receive)
                if "refused" in state:
                    raise state["refused"]
                pieces.append(piece)
                size += len(piece)
                self.held += len(piece)
                if size > limits.MAX_SERVICE_BODY_BYTES:
                    raise _too_large()
                if self.held > limits.MAX_SERVICE_BODIES_BYTES:
                    raise HttpError(503, "too many large requests run; try again", headers=((b"retry-after", b"1"),))
        except HttpError:
            self._let_go(pieces)
            if more and "refused" not in state and "expect" not in request.headers:
                await _drop_rest(receive)
            raise
        except BaseException:
            self._let_go(pieces)
            raise
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _let_go(self, pieces: list[bytes]) -> None:
        self.held -= sum(map(len, pieces))
        pieces.clear()


def _check_head(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise HttpError(415, f"a body is sent without Content-Encoding, not with {encoding[:40]!r}")
    if int(request.headers.get("content-length", 0)) > limits.MAX_SERVICE_BODY_BYTES:
        raise _too_large()


def _too_large() -> HttpError:
    return HttpError(413, f"a body has at most {limits.MAX_SERVICE_BODY_BYTES} bytes")


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    """The next part of a body, and whether more follows."""
    event = await receive()
    if event["type"] != "http.request":
        raise Gone
    return event.get("body", b""), event.get("more_body", False)


async def _drop_rest(receive: Receive) -> None:
    """Read the rest of a refused body: many clients send the whole body before they read, and do not see the answer if the
    connection is closed earlier."""
    size, more = 0, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.SERVICE_DROP_TIMEOUT_S):
            while more and size < limits.MAX_SERVICE_DROPPED_BYTES:
                piece, more = await _piece(receive)
                size += len(piece)
