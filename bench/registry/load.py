"""HTTP load on one address: prepared requests over connections that stay open, with one request at a time on each.

`wrk` sends the GETs if it is installed: it uses less of the other core than Python.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TypeVar, cast

import uvloop

from bench.wire import BadAnswer

TIMEOUT_S = 120.0
WRK = shutil.which("wrk")
Address = tuple[str, int]
T = TypeVar("T")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
_SCRIPT = """local n = 0
request = function() n = n %% %d + 1; return wrk.format("GET", "/schemas/ids/" .. (%d + n)) end
"""


def request(address: Address, method: str, path: str, body: bytes = b"") -> bytes:
    """One request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nAccept: */*\r\n"
    if method != "GET":
        head += f"Content-Type: application/vnd.schemaregistry.v1+json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class _Line(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._data = b""
        self._answer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's transports do not inherit from WriteTransport

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Send a request. The future is done when the whole answer is there; it has BadAnswer if the status is not 200."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._answer

    def data_received(self, data: bytes) -> None:
        data = self._data = self._data + data
        end = data.find(b"\r\n\r\n")
        length = _LENGTH.search(data, 0, end + 2) if end >= 0 else None
        if end < 0 or (length is not None and len(data) < end + 4 + int(length[1])):
            return
        self._data, answer = b"", self._answer
        assert answer is not None
        if not data.startswith(b"HTTP/1.1 200") or length is None:
            answer.set_exception(BadAnswer(data[:300].decode("latin-1")))
        else:
            answer.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(BadAnswer("the connection was closed"))

    def close(self) -> None:
        self._transport.close()


def rate(address: Address, requests: Sequence[bytes], connections: int) -> float:
    """The rate in requests a second; each connection sends its next request after the answer."""
    return _run(_rate(address, requests, connections))


async def _rate(address: Address, requests: Sequence[bytes], connections: int) -> float:
    waiting = iter(requests)

    async def send(line: _Line) -> None:
        for each in waiting:
            await line.send(each)

    lines = await _connect(address, connections)
    began = time.perf_counter()
    await _all(lines, (send(line) for line in lines))
    return len(requests) / (time.perf_counter() - began)


def delays_ms(address: Address, requests: Sequence[bytes], per_s: float, connections: int) -> list[float]:
    """The milliseconds from the planned time of each request to its answer, sorted."""
    return sorted(_run(_paced(address, requests, per_s, connections)))


async def _paced(address: Address, requests: Sequence[bytes], per_s: float, connections: int) -> list[float]:
    delays: list[float] = []
    lines = await _connect(address, connections)
    begin = time.perf_counter() + 0.1

    async def send(line: _Line, first: int) -> None:
        for number in range(first, len(requests), connections):
            planned = begin + number / per_s
            if (pause := planned - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            await line.send(requests[number])
            delays.append((time.perf_counter() - planned) * 1000)

    await _all(lines, (send(line, first) for first, line in enumerate(lines)))
    return delays


async def _connect(address: Address, connections: int) -> list[_Line]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(_Line, *address))[1] for _ in range(connections)]


async def _all(lines: Sequence[_Line], loads: Iterable[Coroutine[None, None, None]]) -> None:
    try:
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            for each in loads:
                group.create_task(each)
    except* BadAnswer as errors:
        raise errors.exceptions[0] from None
    finally:
        for line in lines:
            line.close()


def _run(load: Coroutine[None, None, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(load)


def reads(address: Address, first_id: int, ids: int, connections: int, seconds: float) -> float:
    """The rate of GETs of schemas by id, a second, for `ids` ids from `first_id` on in turn."""
    if WRK is None:
        urls = [request(address, "GET", f"/schemas/ids/{first_id + number}") for number in range(ids)]
        rate(address, urls, connections)  # warm-up before the next call measures the rate
        often = max(1, int(rate(address, urls, connections) * seconds / ids))
        return rate(address, urls * often, connections)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "ids.lua"
        script.write_text(_SCRIPT % (ids, first_id - 1))
        command = [WRK, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script)]
        done = subprocess.run(
            [*command, "http://{}:{}".format(*address)], check=True, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    found = _RATE.search(done.stdout)
    if found is None or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise BadAnswer(f"wrk: {' '.join(done.stdout.split())[-300:]}")
    return float(found[1])
