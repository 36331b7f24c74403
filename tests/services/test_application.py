"""The web server, its limits and its pages, over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.services.application import Application
from barnabas.services.listener import Listener, bind
from barnabas.services.logins import Logins
from barnabas.services.metrics import RequestTimes
from barnabas.services.web_server import WebServer
from barnabas.web.service import ServiceContext
from tests.services.trivial import LARGE, TRIVIAL, Trivial
from tests.waiting import until

NOWHERE = ClientConfig((("127.0.0.1", 1),))
BASIC = Logins(NOWHERE, frozenset({"BASIC"}), "PLAIN")


@asynccontextmanager
async def serving(
    logins: Logins | None = None, timeout_s: float | None = TRIVIAL.timeout_s
) -> AsyncIterator[tuple[Trivial, int]]:
    service = Trivial(ServiceContext(NOWHERE, "http://127.0.0.1:0", {}))
    await service.start()
    listening = bind(TRIVIAL, Listener("http", "127.0.0.1", 0), "--listener")
    server = service.web = WebServer(
        Application("trivial", service, RequestTimes(), logins, timeout_s=timeout_s), listening, None
    )
    await server.start()
    try:
        yield service, listening.getsockname()[1]
    finally:
        await server.close()


async def asked(port: int, request: bytes) -> tuple[int, str, bytes]:
    """The status, the head and the body of the answer; the connection is closed afterwards."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length"))
        body = b"" if request.startswith(b"HEAD") else await reader.readexactly(size)
        return int(head.split()[1]), head, body
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /", 200), ("HEAD /", 200), ("GET /nowhere", 404), ("PUT /", 405), ("GET /fault", 500), ("GET /healthz", 200),
        ("GET /readyz", 200), ("POST /metrics", 405), ("GET /" + "a" * (limits.MAX_SERVICE_TARGET_BYTES + 1), 414),
    ],
)  # fmt: skip
async def test_statuses(line: str, status: int) -> None:
    async with serving() as (_, port):
        got, _, body = await asked(port, f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert got == status
    assert b"secret" not in body
    if status >= 400:
        assert json.loads(body)["error_code"] == status


@pytest.mark.parametrize(
    ("line", "allowed"), [("PUT /", "GET, HEAD"), ("PUT /echo/a", "GET, HEAD, POST"), ("PUT /metrics", "GET, HEAD")]
)
async def test_a_refused_method_names_the_others(line: str, allowed: str) -> None:
    async with serving() as (_, port):
        _, head, _ = await asked(port, f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert f"allow: {allowed}\r\n" in head


async def test_a_segment_may_hold_a_slash_and_a_request_has_query_and_body() -> None:
    async with serving() as (_, port):
        _, _, body = await asked(port, b"POST /echo/a%2Fb?x=1&x=%32 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
    assert json.loads(body) == {"word": "a/b", "query": {"x": "2"}, "body": 3, "who": "User:ANONYMOUS", "authorized": False}


@pytest.mark.parametrize(
    ("method", "origin", "status"),
    [("POST", "http://evil.example", 403), ("POST", "null", 403), ("POST", "http://a", 200), ("GET", "http://evil.example", 200)],
)
async def test_a_page_of_another_origin_may_only_read(method: str, origin: str, status: int) -> None:
    async with serving() as (_, port):
        request = f"{method} /echo/a HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\nContent-Length: 0\r\n\r\n"
        got, _, _ = await asked(port, request.encode())
    assert got == status


async def test_too_large_bodies_and_heads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_BODY_BYTES", 4)
    monkeypatch.setattr(limits, "SERVICE_DROP_TIMEOUT_S", 0.05)
    async with serving() as (_, port):
        declared = await asked(port, b"POST /echo/a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
        chunked = await asked(
            port, b"POST /echo/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
        )
        filler = b"x: " + b"y" * limits.MAX_SERVICE_HEAD_BYTES
        head = await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n" + filler + b"\r\n\r\n")
    assert [each[0] for each in (declared, chunked, head)] == [413, 413, 431]


async def test_a_client_that_sends_all_of_a_refused_body_reads_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_BODY_BYTES", 1_000)
    size = 8_000_000  # bytes; more than the buffers of the sockets
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /echo/a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        await writer.drain()
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")
        writer.close()


async def test_all_bodies_together_are_limited_and_a_compressed_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_BODIES_BYTES", 100)
    request = b"POST /echo/a HTTP/1.1\r\nHost: a\r\n%sContent-Length: 60\r\n\r\n"
    async with serving() as (_, port):
        _, held = await asyncio.open_connection("127.0.0.1", port)
        held.write(request % b"" + b"x" * 50)
        await until(lambda: held.transport.get_write_buffer_size() == 0)
        statuses = []
        while 503 not in statuses:  # until the server has read the held body
            statuses.append((await asked(port, request % b"" + b"x" * 60))[0])
        held.close()
        while 200 not in statuses:
            statuses.append((await asked(port, request % b"" + b"x" * 60))[0])
        encoded = await asked(port, request % b"Content-Encoding: gzip\r\n" + b"x" * 60)
    assert encoded[0] == 415


async def test_a_query_has_few_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_QUERY_FIELDS", 2)
    async with serving() as (_, port):
        for fields, status in (("a=1&b=2", 200), ("a=1&b=2&c=3", 400)):
            assert (await asked(port, f"GET /?{fields} HTTP/1.1\r\nHost: a\r\n\r\n".encode()))[0] == status


@pytest.mark.parametrize("line", ["GET /", "GET /nowhere", "PUT /", "GET /metrics", "GET /echo/a", "POST /echo/a"])
async def test_before_the_log_in_no_path_is_known(line: str) -> None:
    async with serving(BASIC) as (_, port):
        status, head, body = await asked(port, f"{line} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
    assert (status, json.loads(body)) == (401, {"error_code": 401, "message": "Unauthorized"})
    assert 'www-authenticate: Basic realm="barnabas"' in head


async def test_probes_do_not_log_in() -> None:
    async with serving(BASIC) as (service, port):
        for page in ("/healthz", "/readyz"):
            assert (await asked(port, f"GET {page} HTTP/1.1\r\nHost: a\r\n\r\n".encode()))[0] == 200
        service.is_started = False
        assert (await asked(port, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 503


@pytest.mark.parametrize(
    "text",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01", b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /echo/a HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"POST /echo/a HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo/a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /echo/a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)  # fmt: skip
async def test_what_is_no_http_gets_the_services_own_400(text: bytes) -> None:
    async with serving() as (_, port):
        status, head, body = await asked(port, text)
        assert (status, json.loads(body)["error_code"]) == (400, 400)
        assert "connection: close" in head
        assert b'status="400"' in (await asked(port, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"))[2]


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
NEXT = b"GET /echo/b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    "request_", [
        b"POST /echo/a HTTP/1.1\r\nHost: a\r\n" + OFFER + b"Content-Length: 3\r\n\r\nabc",
        b"POST /echo/a HTTP/1.1\r\nHost: a\r\n" + OFFER + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"GET /echo/a HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)  # fmt: skip
async def test_an_offer_of_another_protocol_is_passed_over(request_: bytes, step: int) -> None:
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for start in range(0, len(request_ + NEXT), step):
            writer.write((request_ + NEXT)[start : start + step])
            await writer.drain()
            await asyncio.sleep(0)
        answers = (await reader.read()).decode()
        writer.close()
    assert answers.count("200 OK") == 2
    body = 3 if request_.startswith(b"POST") else 0
    assert f'"word": "a", "query": {{}}, "body": {body}' in answers
    assert '"word": "b"' in answers


async def test_the_rest_of_a_refused_body_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_BODY_BYTES", 4)
    monkeypatch.setattr(limits, "MAX_SERVICE_DROPPED_BYTES", 10)
    monkeypatch.setattr(limits, "SERVICE_DROP_TIMEOUT_S", 3600.0)
    async with serving() as (_, port):
        begun = b"POST /echo/a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + b"x" * 20
        assert (await asked(port, begun))[0] == 413, "nobody waits for the other 980 bytes"


async def test_many_offers_in_one_packet_are_answered() -> None:
    request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request * 1_500 + NEXT)
        assert (await reader.read()).count(b"200 OK") == 1_501
        writer.close()


async def test_a_tunnel_is_refused() -> None:
    async with serving() as (_, port):
        assert (await asked(port, b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"))[0] == 400
        assert (await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 200


async def test_a_large_answer_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_ANSWER_BUFFER_BYTES", 7)
    async with serving() as (_, port):
        _, _, body = await asked(port, b"GET /echo/a HTTP/1.1\r\nHost: a\r\n\r\n")
        _, _, without = await asked(port, b"HEAD /echo/a HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (json.loads(body)["word"], without) == ("a", b"")


async def test_a_reader_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_ANSWER_TIMEOUT_S", 0.1)
    async with serving() as (service, port):
        for request in (
            b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ):
            still = socket.create_connection(("127.0.0.1", port))
            still.sendall(request)
            await until(lambda: service.web is not None and service.web.connections == 0, "the connection stays")
            assert (await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 200
            still.close()


async def test_a_reader_that_goes_on_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_ANSWER_TIMEOUT_S", 0.5)
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        size = 0
        while piece := await reader.read(1024 * 1024):
            size += len(piece)
        assert size > LARGE
        writer.close()


async def test_a_slow_client_is_given_up_and_blocks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_HEAD_TIMEOUT_S", 0.2)
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HT")
        assert (await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 200
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()


async def test_a_slow_answer_ends_with_408(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TRIVIAL.timeout_s is None
    monkeypatch.setattr(limits, "SERVICE_REQUEST_TIMEOUT_S", 0.1)
    async with serving() as (_, port):
        assert (await asked(port, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 408


async def test_connections_over_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SERVICE_CONNECTIONS", 0)
    async with serving() as (_, port):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


async def streamed(port: int, line: str) -> bytes:
    """All bytes of the answer to a request, until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(("line", "size"), [("GET /stream/whole", 5), ("HEAD /stream/whole", 0), ("GET /stream/broken", 4)])
async def test_a_stream_is_noted_at_its_end_with_its_bytes(line: str, size: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "barnabas.services.application")
    async with serving() as (service, port):
        answer = await streamed(port, line)
        await until(lambda: f"bytes={size} " in caplog.text)
        assert service.streams_ended == 1
    assert (b"[0" in answer, answer.endswith(b"0\r\n\r\n")) == (line.startswith("GET"), line == "GET /stream/whole")
    assert ("event=http-answer-broken" in caplog.text) == line.endswith("broken")
    assert b"secret" not in answer


async def test_a_client_that_goes_away_ends_a_stream_that_waits() -> None:
    async with serving() as (service, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /stream/silent HTTP/1.1\r\nHost: a\r\n\r\n")
        await service.reached.wait()
        assert service.streams_ended == 0
        writer.close()
        await until(lambda: service.streams_ended == 1)


async def test_a_client_that_reads_nothing_ends_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_ANSWER_TIMEOUT_S", 0.1)
    async with serving() as (service, port):
        with socket.create_connection(("127.0.0.1", port)) as still:
            still.sendall(b"GET /stream/endless HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: service.streams_ended == 1)
            assert (await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 200


async def test_a_stop_ends_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_STOP_TIMEOUT_S", 0.1)
    async with serving() as (service, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /stream/silent HTTP/1.1\r\nHost: a\r\n\r\n")
        await service.reached.wait()
    await until(lambda: service.streams_ended == 1)
    writer.close()


async def test_metrics_count_by_service_method_and_status() -> None:
    async with serving() as (_, port):
        await asked(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        _, _, page = await asked(port, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    assert b'barnabas_http_request_seconds_count{service="trivial",method="GET",status="200"} 1.0' in page


async def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_IDLE_TIMEOUT_S", 0.0)
    async with serving() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await reader.read()).endswith(b"{}")
        writer.close()


async def test_a_stop_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_STOP_TIMEOUT_S", 0.1)
    async with serving() as (service, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await service.reached.wait()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await reader.readexactly(1)
    writer.close()
