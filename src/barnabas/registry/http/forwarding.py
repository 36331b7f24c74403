"""Forwards a request to the leader, which is the only registry that writes, and returns its answer."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from urllib.parse import quote, urlencode, urlsplit

from barnabas import limits
from barnabas.registry.core import errors
from barnabas.web.routing import Request, Response

FORWARDED = "x-forward"  # marks a forwarded request, which must not be forwarded again
TIMEOUT_S = 60.0
NO_LEADER = b'"error_code":50004'  # the other registry has done nothing, so the request may be repeated
PRINCIPAL, HOST = "x-forward-principal", "x-forward-host"  # the caller that the certificate identifies
KEPT = ("content-type", "accept", "authorization")


async def forward(url: str, request: Request, context: ssl.SSLContext | None = None) -> Response | None:
    """The leader's answer; None if the request did not reach it, or if it is not the leader. Raises HttpError 50003 if the
    answer is lost."""
    try:
        response = await asyncio.to_thread(_send, url, request, context)
        return None if response.status == 500 and NO_LEADER in response.body else response
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException) as error:
        raise errors.forwarding_failed(f"Error while forwarding the request to the leader {url}: {error}") from None


def _send(url: str, request: Request, context: ssl.SSLContext | None) -> Response:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    query = urlencode(request.queries or tuple(request.query.items()))
    headers = {name: request.headers[name] for name in KEPT if name in request.headers} | {FORWARDED: "true"}
    if context is not None and "authorization" not in headers:
        headers |= {PRINCIPAL: quote(request.caller.principal), HOST: request.caller.host}
    try:
        connection.request(request.method, f"{request.path}?{query}" if query else request.path, request.body, headers)
        answer = connection.getresponse()
        body = answer.read(limits.MAX_FORWARDED_ANSWER_BYTES + 1)
        if len(body) > limits.MAX_FORWARDED_ANSWER_BYTES:
            raise http.client.HTTPException("its answer is too large")
        media = answer.getheader("content-type")
        return Response(body, answer.status, () if media is None else ((b"content-type", media.encode()),))
    finally:
        connection.close()
