"""Signs of life by a thread: a broker whose loop is busy gives them, and the connection is an ordinary one in all other ways."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas import limits
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.write_txn_markers import WritableTxnMarker, WriteTxnMarkersRequest
from barnabas.protocol.request_headers import write_request_header
from tests.server.cluster.in_process import running

WITHIN_S = 60.0
SIZE = struct.Struct(">i")
MARKERS, HEARTBEAT = (27, 1), (63, 2)  # (API key, version)
OLDER, NEWER = WriteTxnMarkersRequest(), BrokerHeartbeatRequest(broker_id=2)


def frame(correlation_id: int, request: Message = OLDER, client_id: str = "broker-2-lookout") -> bytes:
    api, version = HEARTBEAT if isinstance(request, BrokerHeartbeatRequest) else MARKERS
    body = write_request_header(api, version, correlation_id, client_id) + bytes(encode(request, version))
    return SIZE.pack(len(body)) + body


def ask(line: socket.socket, correlation_id: int, *asked: Any) -> bytes:
    """The answer without its correlation id; b"" where the connection is closed."""
    line.sendall(frame(correlation_id, *asked))
    with line.makefile("rb") as incoming:
        head = incoming.read(SIZE.size)
        if not head:
            return b""
        answer = incoming.read(*SIZE.unpack(head))
    assert SIZE.unpack_from(answer)[0] == correlation_id
    return answer[SIZE.size :]


@contextmanager
def connected(address: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.create_connection(address, WITHIN_S) as line:
        yield line


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[tuple[str, int]]:
    async with running(tmp_path, count=1) as cluster:
        yield "127.0.0.1", cluster.brokers[1].endpoints[0].port


@pytest.mark.parametrize("request_", [NEWER, OLDER], ids=["BrokerHeartbeat", "of older brokers"])
async def test_signs_of_life_are_given_while_the_loop_is_busy(address: tuple[str, int], request_: Message) -> None:
    with connected(address) as line:
        first = await asyncio.to_thread(ask, line, 1, request_)
        for correlation_id in (2, 3):  # this call blocks the event loop, which runs in this thread
            assert ask(line, correlation_id, request_) == first
    assert any(thread.name == "barnabas-pulse" for thread in threading.enumerate())


async def test_a_request_in_pieces_is_waited_for(address: tuple[str, int]) -> None:
    with connected(address) as line:
        first = await asyncio.to_thread(ask, line, 1)
        whole = frame(7)
        for at in range(len(whole) - 1):
            line.sendall(whole[at : at + 1])
        line.sendall(whole[-1:])
        answer = line.recv(100)
        assert answer[2 * SIZE.size :] == first


async def test_another_request_is_answered_by_the_loop(address: tuple[str, int]) -> None:
    markers = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1)])
    with connected(address) as line:
        for correlation_id in (1, 4, 7):
            sign = await asyncio.to_thread(ask, line, correlation_id)
            assert ask(line, correlation_id + 1) == sign
            assert len(await asyncio.to_thread(ask, line, correlation_id + 2, markers)) > len(sign)


async def test_requests_that_arrive_together_are_answered_in_order(address: tuple[str, int]) -> None:
    markers = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1)])
    with connected(address) as line:
        for first in (1, 6):  # correlation ids; first the loop answers, then the thread
            line.sendall(b"".join((frame(first), frame(first + 1), frame(first + 2, markers), frame(first + 3))))
            with line.makefile("rb") as incoming:
                answers = [
                    await asyncio.to_thread(lambda: incoming.read(*SIZE.unpack(incoming.read(SIZE.size)))) for _ in range(4)
                ]
            assert [SIZE.unpack_from(each)[0] for each in answers] == list(range(first, first + 4))
            signs = {each[SIZE.size :] for slot, each in enumerate(answers) if slot != 2}
            assert len(signs) == 1
            assert await asyncio.to_thread(ask, line, first + 4) in signs


async def test_so_many_are_answered_by_the_thread_and_the_others_by_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_PULSES", 2)
    async with running(tmp_path, count=1) as cluster, AsyncExitStack() as stack:
        broker = cluster.brokers[1]
        at = "127.0.0.1", broker.endpoints[0].port
        lines = [stack.enter_context(connected(at)) for _ in range(4)]
        signs = {await asyncio.to_thread(ask, line, number) for number in (1, 2) for line in lines}
        assert len(signs) == 1
        assert broker.liveness_responder is not None
        assert len(broker.liveness_responder._taken) == 2


async def test_who_goes_away_is_forgotten(address: tuple[str, int]) -> None:
    lines = [socket.create_connection(address, WITHIN_S) for _ in range(3)]
    for line in lines:
        await asyncio.to_thread(ask, line, 1)
        line.close()
    with connected(address) as line:
        await asyncio.to_thread(ask, line, 1)
        assert ask(line, 2)


async def test_a_client_that_is_no_broker_may_go_on_with_anything(address: tuple[str, int]) -> None:
    with connected(address) as line:
        await asyncio.to_thread(ask, line, 1, OLDER, "client")
        markers = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1)])
        assert await asyncio.to_thread(ask, line, 2, markers, "client") != b""
