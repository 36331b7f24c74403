"""The page of metrics bounds what it is asked: heads, connections, time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from barnabas import limits
from barnabas.server.http import HttpEndpoint


@pytest.fixture
async def endpoint() -> AsyncIterator[HttpEndpoint]:
    endpoint = HttpEndpoint({"/": lambda: (200, b"here\n")})
    await endpoint.start("127.0.0.1", 0)
    yield endpoint
    await endpoint.close()


async def ask(endpoint: HttpEndpoint, text: bytes) -> bytes:
    """The answer; nothing if the connection was cut."""
    reader, writer = await asyncio.open_connection(*endpoint.address)
    try:
        writer.write(text)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_head_past_the_limit_is_cut_off(endpoint: HttpEndpoint) -> None:
    assert b" 200 " in await ask(endpoint, b"GET / HTTP/1.1\r\n\r\n")
    assert await ask(endpoint, b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * limits.MAX_HTTP_HEAD_BYTES) == b""
    assert b" 200 " in await ask(endpoint, b"GET / HTTP/1.1\r\n\r\n")


async def test_a_head_that_does_not_end_is_given_up(endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_TIMEOUT_S", 0.1)
    assert await ask(endpoint, b"GET / HT") == b""


async def test_no_more_connections_than_may_be(endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HTTP_CONNECTIONS", 1)
    reader, writer = await asyncio.open_connection(*endpoint.address)
    writer.write(b"GET ")
    assert await ask(endpoint, b"GET / HTTP/1.1\r\n\r\n") == b""
    writer.write(b"/ HTTP/1.1\r\n\r\n")
    assert b"here" in await reader.read()
    writer.close()


@pytest.mark.parametrize(
    "text", [b"\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"GET /%2e%2e/etc/passwd HTTP/1.1\r\n\r\n", b"\xff\r\n\r\n"]
)
async def test_nonsense_gets_a_status(endpoint: HttpEndpoint, text: bytes) -> None:
    assert (await ask(endpoint, text)).split(b" ")[1] in {b"400", b"404", b"405"}


async def test_a_page_that_fails_leaves_no_connection_open() -> None:
    endpoint = HttpEndpoint({"/": lambda: (200 // 0, b"")})
    await endpoint.start("127.0.0.1", 0)
    assert await ask(endpoint, b"GET / HTTP/1.1\r\n\r\n") == b""
    await endpoint.close()
