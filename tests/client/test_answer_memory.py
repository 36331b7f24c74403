"""The memory that answers are received into."""

from __future__ import annotations

import asyncio
from struct import pack

import pytest

from barnabas import limits
from barnabas.client.asynchronous import LARGE_BYTES, START_BYTES, AsyncConnection
from barnabas.client.config import ClientConfig


class Receiver:
    """A connection that has no transport, and bytes that come in pieces."""

    def __init__(self, piece_bytes: int) -> None:
        self._connection = AsyncConnection(("127.0.0.1", 1), ClientConfig(()))
        self._piece_bytes = piece_bytes

    async def receive(self, *bodies: bytes) -> list[memoryview]:
        """Receive the frames one after the other; returns the delivered answers."""
        waiting = [asyncio.get_running_loop().create_future() for _ in bodies]
        self._connection._waiting.extend((each, 0.0, None) for each in waiting)
        data = b"".join(pack(">i", len(body)) + body for body in bodies)
        while data:
            buffer = self._connection.get_buffer(-1)
            size = min(len(buffer), self._piece_bytes, len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            self._connection.buffer_updated(size)
        return [each.result() for each in waiting]


@pytest.mark.parametrize("piece_bytes", [7_000, START_BYTES, 1_000_000])
def test_answers_that_are_looked_at_stay_what_they_are(piece_bytes: int) -> None:
    async def receive() -> None:
        receiver = Receiver(piece_bytes)
        bodies = [bytes([number]) * (LARGE_BYTES + number) for number in range(4)]
        kept = [(await receiver.receive(body))[0][1:] for body in bodies]
        assert [bytes(each) for each in kept] == [body[1:] for body in bodies]
        assert [bytes(each) for each in await receiver.receive(*bodies, b"small")] == [*bodies, b"small"]

    asyncio.run(receive())


def test_memory_of_a_large_answer_is_used_again_for_one_that_is_no_larger() -> None:
    async def receive() -> list[int]:
        receiver, seen = Receiver(1_000_000), []
        for size in (LARGE_BYTES + 5, LARGE_BYTES, LARGE_BYTES + 5, LARGE_BYTES + 6):
            (body,) = await receiver.receive(bytes(size))
            assert len(body) == size
            seen.append(id(body.obj))
            del body
        return seen

    first, second, third, larger = asyncio.run(receive())
    assert first == second == third
    assert larger != first


@pytest.mark.parametrize(("size", "is_kept"), [(LARGE_BYTES - 1, False), (LARGE_BYTES, True), (LARGE_BYTES + 1, False)])
def test_no_memory_is_kept_of_what_is_small_or_very_large(size: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KEPT_ANSWER_BYTES", LARGE_BYTES)

    async def receive() -> bool:
        receiver = Receiver(1_000_000)
        (body,) = await receiver.receive(bytes(size))
        return body.obj is receiver._connection._large

    assert asyncio.run(receive()) == is_kept
