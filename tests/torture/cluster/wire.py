"""Requests in the test's own hands: one at a time on a connection that lives as long, and nothing remembered in between."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.request_headers import has_flexible_response_header, write_request_header

Address = tuple[str, int]
Answer = TypeVar("Answer", bound=Message)
SIZE = struct.Struct(">i")
TIMEOUT_S = 2.0
METADATA, FIND_COORDINATOR, CREATE_TOPICS, DESCRIBE_CLUSTER = (3, 12), (10, 4), (19, 7), (60, 1)
CONTROLLERS = 2  # endpoint type in DescribeCluster
CREATE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Partition:
    topic: str
    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """The cluster as one broker sees it."""

    brokers: dict[int, Address]
    controller_id: int
    partitions: tuple[Partition, ...]

    @classmethod
    def of(cls, answer: MetadataResponse) -> Seen:
        return cls(
            {broker.node_id: (broker.host, broker.port) for broker in answer.brokers},
            answer.controller_id,
            tuple(
                Partition(str(t.name), p.partition_index, p.leader_id, p.leader_epoch, tuple(p.replica_nodes), tuple(p.isr_nodes))
                for t in answer.topics
                for p in t.partitions
            ),
        )


ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False)


def framed(api: tuple[int, int], request: Message) -> bytes:
    frame = write_request_header(*api, 0, "torture") + bytes(encode(request, api[1]))
    return SIZE.pack(len(frame)) + frame


def body_of(api: tuple[int, int], answer: type[Answer], frame: bytes) -> Answer:
    return decode(answer, api[1], frame, 5 if has_flexible_response_header(*api) else 4)


def ask(address: Address, api: tuple[int, int], request: Message, answer: type[Answer], timeout_s: float = TIMEOUT_S) -> Answer:
    """Raises OSError where there is no answer in time."""
    with socket.create_connection(address, timeout_s) as connection:
        connection.sendall(framed(api, request))
        with connection.makefile("rb") as incoming:
            head = incoming.read(SIZE.size)
            frame = incoming.read(*SIZE.unpack(head)) if len(head) == SIZE.size else b""
    if not frame:
        raise ConnectionResetError(f"{address} closed the connection")
    return body_of(api, answer, frame)


def metadata(address: Address) -> Seen:
    """Raises OSError."""
    return Seen.of(ask(address, METADATA, ALL_TOPICS, MetadataResponse))


def metadata_of_any(addresses: Sequence[Address], *, with_controller: bool = False) -> Seen:
    """As the first broker sees it that answers; raises AssertionError."""
    for address in addresses:
        try:
            seen = metadata(address)
        except OSError:
            continue
        if not with_controller or seen.controller_id > 0:
            return seen
    raise AssertionError("no broker answers")


def active_controller(address: Address) -> int:
    """The id of the controller that a controller of Kafka's takes for the active one; raises OSError."""
    answer = ask(address, DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=CONTROLLERS), DescribeClusterResponse)
    if answer.error_code or answer.controller_id < 0:
        raise ConnectionError(f"{address} knows no active controller: error {answer.error_code}")
    return answer.controller_id


def coordinator(addresses: Sequence[Address], group: str) -> int:
    """The broker that has a group, as the first sees it that answers; raises AssertionError."""
    for address in addresses:
        try:
            answer = ask(address, FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=[group]), FindCoordinatorResponse)
        except OSError:
            continue
        if not answer.coordinators[0].error_code:
            return answer.coordinators[0].node_id
    raise AssertionError(f"no broker knows the coordinator of {group}")


def create_topics(address: Address, topics: Sequence[CreatableTopic]) -> None:
    """Until all are there: a controller that has just been elected may not know every broker that has started."""
    left, deadline = list(topics), time.monotonic() + CREATE_TIMEOUT_S
    while left:
        request = CreateTopicsRequest(topics=left, timeout_ms=int(CREATE_TIMEOUT_S * 1000))
        refused = {
            each.name: each for each in ask(address, CREATE_TOPICS, request, CreateTopicsResponse, CREATE_TIMEOUT_S).topics
        }
        left = [topic for topic in left if refused[topic.name].error_code]
        for topic in left:
            told = refused[topic.name]
            knows_too_few = told.error_code == ErrorCode.INVALID_REPLICATION_FACTOR and time.monotonic() < deadline
            assert knows_too_few, f"{topic.name}: error {told.error_code} {told.error_message}"


class Line:
    """One connection of the probe's: a request at a time, each in a time of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, address: Address, timeout_s: float) -> Line:
        async with asyncio.timeout(timeout_s):
            return cls(*await asyncio.open_connection(*address))

    async def ask(self, api: tuple[int, int], request: bytes, answer: type[Answer], timeout_s: float) -> Answer:
        """Raises OSError (TimeoutError is one) and EOFError."""
        async with asyncio.timeout(timeout_s):
            self._writer.write(request)
            (size,) = SIZE.unpack(await self._reader.readexactly(SIZE.size))
            return body_of(api, answer, await self._reader.readexactly(size))

    def close(self) -> None:
        self._writer.close()
