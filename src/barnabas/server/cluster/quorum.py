"""Asks each broker of the cluster how much of the metadata it knows, for DescribeQuorum.

The brokers have no replicated log of the metadata. The store holds and numbers the commits, and each broker reads them from the store. So
the end of a broker's log is the number of the last commit in its metadata, and only that broker knows it.

Rules
  1. A broker gets a DescribeQuorum in an Envelope, and answers for itself alone. After `WAIT_S` seconds without an answer its position is
     unknown.
  2. The controller is asked last, so that no broker seems to be ahead of it.
  3. Clients that ask at the same time get the same answers: only one round of questions runs at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.errors import BarnabasError
from barnabas.protocol.base_message import Buffer
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.protocol.messages.envelope import EnvelopeRequest
from barnabas.server.cluster.peers import peers_of

if TYPE_CHECKING:
    from barnabas.server.services import Services

WAIT_S = 1.0
VERSION = 1  # of the DescribeQuorum between brokers
METADATA_TOPIC = "__cluster_metadata"
UNKNOWN = -1


class Known(NamedTuple):
    """The position of a broker's metadata, and the time in ms of its answer; `UNKNOWN` for both without an answer."""

    position: int = UNKNOWN
    at_ms: int = UNKNOWN


class Quorum:
    """Asks the brokers of the cluster, for one broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._peers = peers_of(lambda: services.metadata, services, "quorum", request_timeout_ms=int(WAIT_S * 1000))
        self._asking: asyncio.Task[dict[int, Known]] | None = None

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self._peers.close()

    async def known(self) -> dict[int, Known]:
        """The positions of all registered brokers."""
        if self._asking is None or self._asking.done():
            self._asking = self._services.loop.create_task(self._ask_all())
        return await asyncio.shield(self._asking)

    async def _ask_all(self) -> dict[int, Known]:
        image = self._services.metadata
        last = [broker_id for broker_id in image.brokers if broker_id == image.controller_id]
        return {**await self._ask(set(image.brokers).difference(last)), **await self._ask(last)}

    async def _ask(self, brokers: Iterable[int]) -> dict[int, Known]:
        asked = list(brokers)
        return dict(zip(asked, await asyncio.gather(*map(self._ask_one, asked)), strict=True))

    async def _ask_one(self, broker_id: int) -> Known:
        services = self._services
        try:
            async with asyncio.timeout(WAIT_S):
                if broker_id == services.config.broker_id:
                    position = await services.controller.position()
                else:
                    answer = await self._peers.send(broker_id, _question())
                    position = _read(answer.response_data)
        except (BarnabasError, TimeoutError):
            return Known()
        return Known(position, services.clock.now_ms())

    async def answer_for_itself(self) -> DescribeQuorumResponse:
        """This broker's own position, as an answer to another broker."""
        try:
            position = await self._services.controller.position()
        except StoreUnavailable:
            position = UNKNOWN
        mine = ReplicaState(replica_id=self._services.config.broker_id, log_end_offset=position)
        return DescribeQuorumResponse(
            topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[ResponsePartitionData(current_voters=[mine])])]
        )


def _question() -> EnvelopeRequest:
    header = ApiKey.DESCRIBE_QUORUM.to_bytes(2, "big") + VERSION.to_bytes(2, "big") + bytes(4) + b"\xff\xff\0"
    return EnvelopeRequest(
        request_data=header + encode(DescribeQuorumRequest(), VERSION), request_principal=b"[]", client_host_address=b""
    )


def _read(data: Buffer | None) -> int:
    # the body begins at byte 5, after the header of a flexible version
    answer = decode(DescribeQuorumResponse, VERSION, memoryview(bytes(data or b"")), 5)
    ends = [each.log_end_offset for topic in answer.topics for partition in topic.partitions for each in partition.current_voters]
    return ends[0] if len(ends) == 1 else UNKNOWN
