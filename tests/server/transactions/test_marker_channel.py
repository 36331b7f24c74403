"""Markers that go together to another broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.client.errors import ClientError, ConnectionFailed
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.server.transactions import marker_channel
from barnabas.server.transactions.marker_channel import MAX_REQUESTS, MarkerChannel


class Receiver:
    """A broker that answers when it is told to."""

    def __init__(self) -> None:
        self.requests: list[list[int]] = []
        self.answers: list[asyncio.Future[WriteTxnMarkersResponse]] = []
        self._arrived = asyncio.Condition()

    async def wait_for(self, count: int) -> None:
        """Until so many requests have come."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def __call__(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        assert broker_id == 2
        self.requests.append([marker.producer_id for marker in request.markers])
        answer: asyncio.Future[WriteTxnMarkersResponse] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        async with self._arrived:
            self._arrived.notify_all()
        return await answer

    def answer(self, index: int, producer_ids: Sequence[int] | None = None) -> None:
        chosen = self.requests[index] if producer_ids is None else producer_ids
        results = [WritableTxnMarkerResult(producer_id=each) for each in chosen]
        self.answers[index].set_result(WriteTxnMarkersResponse(markers=results))


async def start(carrier: MarkerChannel, producer_ids: Sequence[int]) -> list[asyncio.Task[WritableTxnMarkerResult]]:
    tasks = [asyncio.create_task(carrier.deliver(2, WritableTxnMarker(producer_id=each))) for each in producer_ids]
    for _ in range(3):  # turns: the tasks hand over, the channel starts, the request goes out
        await asyncio.sleep(0)
    return tasks


async def test_markers_of_one_turn_go_together() -> None:
    receiver = Receiver()
    carrier = MarkerChannel(receiver)
    tasks = await start(carrier, range(10))
    assert receiver.requests == [list(range(10))]
    receiver.answer(0)
    assert [told.producer_id for told in await asyncio.gather(*tasks)] == list(range(10))


async def test_what_comes_while_requests_are_under_way_waits_for_one_to_end() -> None:
    receiver = Receiver()
    carrier = MarkerChannel(receiver)
    tasks = [(await start(carrier, [number]))[0] for number in range(MAX_REQUESTS)]
    later = await start(carrier, [100, 101, 102])
    assert receiver.requests == [[number] for number in range(MAX_REQUESTS)]
    receiver.answer(1)
    assert (await tasks[1]).producer_id == 1
    await receiver.wait_for(MAX_REQUESTS + 1)
    assert receiver.requests[-1] == [100, 101, 102]
    for index in (0, 2, 3, 4):
        receiver.answer(index)
    assert {(await each).producer_id for each in [*tasks, *later]} == {0, 1, 2, 3, 100, 101, 102}


async def test_a_request_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_channel, "MAX_MARKERS", 4)
    receiver = Receiver()
    tasks = await start(MarkerChannel(receiver), range(6))
    assert receiver.requests[0] == [0, 1, 2, 3]
    for index in (0, 1):
        await receiver.wait_for(index + 1)
        receiver.answer(index)
    await asyncio.gather(*tasks)
    assert [each for request in receiver.requests for each in request] == list(range(6))


@pytest.mark.parametrize("how", ["fails", "is of others"])
async def test_a_request_that_fails_fails_for_all_of_it(how: str) -> None:
    receiver = Receiver()
    tasks = await start(MarkerChannel(receiver), [7, 8])
    if how == "fails":
        receiver.answers[0].set_exception(ConnectionFailed("broker 2", "closed"))
    else:
        receiver.answer(0, [7])
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, ClientError) for each in found)


async def test_nothing_is_left_after_the_end() -> None:
    receiver = Receiver()
    carrier = MarkerChannel(receiver)
    tasks = await start(carrier, [7])
    for each in tasks:
        each.cancel()
    await carrier.close()
    assert receiver.answers[0].cancelled()
    assert all(isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*tasks, return_exceptions=True))
