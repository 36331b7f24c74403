"""Sends markers to other brokers: those of many transactions in one request.

A request takes all markers of one turn of the loop. It also takes those that came while `MAX_REQUESTS` requests to the broker were under
way. Several requests may be under way, because a marker has its answer only when it is committed. So one partition with slow followers
does not delay the others.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable

from barnabas.client.errors import ClientError, ConnectionFailed
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

MAX_REQUESTS = 4  # to one broker at once
MAX_MARKERS = 1_000  # in one request

Send = Callable[[int, WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]]
Waiting = tuple[WritableTxnMarker, asyncio.Future[WritableTxnMarkerResult]]


class MarkerChannel:
    """Sends markers to brokers with `send`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: defaultdict[int, deque[Waiting]] = defaultdict(deque)
        self._under_way: defaultdict[int, set[asyncio.Task[None]]] = defaultdict(set)

    async def deliver(self, broker_id: int, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
        """The broker's result for the marker; raises ClientError if the broker does not answer."""
        answer: asyncio.Future[WritableTxnMarkerResult] = asyncio.get_running_loop().create_future()
        self._waiting[broker_id].append((marker, answer))
        tasks = self._under_way[broker_id]
        if len(tasks) < MAX_REQUESTS:
            task = asyncio.create_task(self._carry(broker_id))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        return await answer

    async def close(self) -> None:
        """Stop all requests. Callers of `deliver` get no result; their tasks must be cancelled too."""
        tasks = [task for tasks in self._under_way.values() for task in tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, broker_id: int) -> None:
        waiting = self._waiting[broker_id]
        while waiting:
            taken = [waiting.popleft() for _ in range(min(len(waiting), MAX_MARKERS))]
            wanted = [each for each in taken if not each[1].done()]
            if wanted:
                await self._carry_all(broker_id, wanted)

    async def _carry_all(self, broker_id: int, wanted: list[Waiting]) -> None:
        markers = [marker for marker, _ in wanted]
        error: ClientError | None = None
        results: list[WritableTxnMarkerResult] = []
        try:
            results = list((await self._send(broker_id, WriteTxnMarkersRequest(markers=markers))).markers)
        except ClientError as failure:
            error = failure
        else:
            if [each.producer_id for each in results] != [each.producer_id for each in markers]:
                error = ConnectionFailed(f"broker {broker_id}", "it answers other markers than it was sent")
        for index, (_, answer) in enumerate(wanted):
            if answer.done():
                continue
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(results[index])
