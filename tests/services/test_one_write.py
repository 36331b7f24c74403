"""How often the web server writes for an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas import limits
from barnabas.services import web_server
from barnabas.services.one_write import OneWrite
from tests.services.test_application import asked, serving
from tests.services.trivial import LARGE


class Noting:
    """Passes on what is written, and notes how much."""

    def __init__(self, transport: Any, sizes: list[int]) -> None:
        self._transport, self._sizes = transport, sizes
        self.close = transport.close

    def write(self, data: bytes) -> None:
        self._sizes.append(len(data))
        self._transport.write(data)


@pytest.mark.parametrize(
    ("asking", "writes", "size"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, 2),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 1, 0),
        (b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 1, None),
        (b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n", LARGE // limits.SERVICE_ANSWER_BUFFER_BYTES, LARGE),
    ],
)
async def test_an_answer_takes_one_write_unless_it_is_large(
    monkeypatch: pytest.MonkeyPatch, asking: bytes, writes: int, size: int | None
) -> None:
    sizes: list[int] = []

    def noted(cycle: Any) -> OneWrite:
        cycle.transport = Noting(cycle.transport, sizes)
        return OneWrite(cycle)

    monkeypatch.setattr(web_server, "OneWrite", noted)
    async with serving() as (_, port):
        _, head, body = await asked(port, asking)
    assert len(sizes) == writes
    assert sum(sizes) == len(head.encode()) + len(body)
    assert size is None or len(body) == size


async def test_a_client_that_waits_for_leave_to_send_gets_it() -> None:
    request = b"POST /echo/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()
