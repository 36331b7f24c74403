"""Fetch requests that differ from an earlier one of their connection only in correlation id and offsets, and find records.

A consumer without a session sends such requests for hours (librdkafka: always). One `struct` call divides the request into known and
changed fields. The answer is known too, except for a few numbers. For one partition this takes 8 us; the general way takes 35 (`python -m
bench.steps`).

Rules
  1. A learnt request has no session, no replica id and no rack. It names partitions that this broker leads, each once. With access control
     or a quota, the fast path learns nothing.
  2. A request that differs in any other way takes the general way: `take` then declines and has changed nothing. The same holds if another
     object has replaced a partition.
  3. Errors, and fetches that wait for records or for the disk, need a `Fetch`, which gets the request already decoded. After its wait a
     `Fetch` asks here first (`_answer_of_waiting`).
  4. Each connection remembers only the last request. If the requests vary, the connection stops learning (`PATIENCE`).

`recognisable.py` decides which requests may be learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast
from uuid import UUID

from barnabas import limits
from barnabas.errors import KafkaError, StorageError
from barnabas.protocol.codec import decode_request, encode
from barnabas.protocol.fetch import FIRST_TOPIC_ID_VERSION, FetchAnswerShape, Given, Parts
from barnabas.protocol.fetch_request import NO_EPOCH
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest
from barnabas.protocol.request_headers import API_BYTES, BEHIND_CORRELATION_ID
from barnabas.replication.partition import READ_COMMITTED
from barnabas.server.fetching.disk_loading import MOST_COPIED_BYTES
from barnabas.server.fetching.fetch import Fetch
from barnabas.server.fetching.fetch_session import FetchContext, FetchedPartition, TopicKey
from barnabas.server.fetching.partition_lookup import FetchBroker
from barnabas.server.fetching.read_ahead import ReadAhead, ReadAheadBroker
from barnabas.server.fetching.recognisable import may_repeat, may_repeat_partition
from barnabas.server.page_cache import COPIED_BYTES, at_hand

if TYPE_CHECKING:
    from barnabas.replication.partition import OnlinePartition
    from barnabas.server.connection import Connection
    from barnabas.server.fetching.partition_lookup import Records
    from barnabas.server.quotas.client_quotas import ClientQuotas
    from barnabas.storage.file_region import FileRegion

PATIENCE = 4  # learnt requests in a row that were not repeated
_OFFSET = Struct(">q")
_MARK = 0x0102_0304_0506_0000  # the first of the offsets that mark places: no other field of a request looks like them


class FetchTemplateBroker(FetchBroker, ReadAheadBroker, Protocol):
    """The parts of the broker that this module uses."""

    client_quotas: ClientQuotas | None


class _Wanted(NamedTuple):
    """One partition of the request."""

    partition: OnlinePartition
    topic: TopicKey
    max_bytes: int
    leader_epoch: int
    log_start_offset: int


class FetchTemplate:
    """The repeated fetch of one connection."""

    __slots__ = ("_ahead", "_broker", "_fixed", "_layout", "_patience", "_request", "_shape", "_version", "_wanted")
    api_key = ApiKey.FETCH

    def __init__(self, broker: FetchTemplateBroker) -> None:
        self._broker = broker
        self._ahead = ReadAhead()
        self._layout = Struct("")
        self._fixed: tuple[bytes, ...] = ()
        self._request = FetchRequest()
        self._version = -1
        self._shape: FetchAnswerShape[Records] | None = None  # set if a request is known
        self._wanted: list[_Wanted] = []
        self._patience = PATIENCE

    def forget(self) -> None:
        self._shape = None

    def learn(self, frame: memoryview, body: int, version: int, request: FetchRequest) -> None:
        """Remember a request that the general way handled, if the fast path can handle similar ones."""
        broker, self._shape = self._broker, None
        self._ahead.forget()
        if not self._patience or len(frame) > limits.MAX_REPEATED_FETCH_BYTES or not may_repeat(request, version):
            return
        self._patience -= 1
        named = [
            (topic.topic_id if version >= FIRST_TOPIC_ID_VERSION else topic.topic, each)
            for topic in request.topics
            for each in topic.partitions
        ]
        wanted = [_wanted(broker, topic, each) for topic, each in named]
        places = _places_of_offsets(frame, body, version)
        if not places or None in wanted or len({(topic, each.partition) for topic, each in named}) < len(named):
            return
        self._layout, self._fixed = _layout(frame, places)
        self._request, self._version = request, version
        self._wanted = cast(list[_Wanted], wanted)
        topics = [(topic, [each.partition for _, each in group]) for topic, group in groupby(named, key=itemgetter(0))]
        self._shape = FetchAnswerShape(version, topics, is_committed=request.isolation_level == READ_COMMITTED)

    def take(self, connection: Connection, data: memoryview, position: int, stop: int) -> tuple[int, int]:
        """Answer the request at `position` if it is known, now or when there are records."""
        shape, layout, broker = self._shape, self._layout, self._broker
        if (
            shape is None
            or stop - position - 4 != layout.size
            or broker.authorizer is not None
            or broker.client_quotas is not None
        ):
            return 0, position
        fields = layout.unpack_from(data, position + 4)
        if fields[::2] != self._fixed:
            return 0, position
        if any(wanted.partition.closed for wanted in self._wanted):
            return 0, position
        self._patience = PATIENCE
        is_quick, request, offsets = self._ahead.begin(connection), self._request, fields[3::2]
        found = self._look(broker, offsets, is_quick=is_quick)
        if found is not None and found[1] >= self._least_bytes(broker):
            connection.send(self._answer(broker, shape, fields[1], found[0]))
            if is_quick:
                self._ahead.answered(broker, connection, request.isolation_level)
            return 1, stop
        context = FetchContext([_asked(*each) for each in zip(self._wanted, offsets, strict=True)])
        fetch = Fetch(broker, connection, request, context, self._version, fields[1], None)
        known = partial(self._answer_of_waiting, broker, shape, offsets, fields[1])
        if found is not None and not found[1] and request.max_wait_ms > 0 and request.min_bytes > 0:
            fetch.wait([wanted.partition for wanted in self._wanted], known)
        else:
            fetch.start(known)
        return 1, stop

    def _answer_of_waiting(
        self, broker: FetchTemplateBroker, shape: FetchAnswerShape[Records], offsets: Sequence[int], correlation_id: int
    ) -> Parts[Records] | None:
        """The answer of a fetch that began here, after an event; None if the general way must answer."""
        if self._shape is not shape or broker.authorizer is not None or any(wanted.partition.closed for wanted in self._wanted):
            return None
        found = self._look(broker, offsets, is_quick=False)
        if found is None or found[1] < self._least_bytes(broker):
            return None
        return self._answer(broker, shape, correlation_id, found[0])

    def _answer(
        self, broker: FetchTemplateBroker, shape: FetchAnswerShape[Records], correlation_id: int, given: list[Given[Records]]
    ) -> Parts[Records]:
        parts, size = shape.write(correlation_id, given)
        broker.metrics.bytes_out += size
        return parts

    def _most_bytes(self, broker: FetchTemplateBroker) -> int:
        return min(self._request.max_bytes, broker.config.fetch_max_bytes)

    def _least_bytes(self, broker: FetchTemplateBroker) -> int:
        """The bytes for which a fetch waits; never more than an answer can have."""
        return min(self._request.min_bytes, self._most_bytes(broker))

    def _look(
        self, broker: FetchTemplateBroker, offsets: Sequence[int], *, is_quick: bool
    ) -> tuple[list[Given[Records]], int] | None:
        """The data of every partition, and its size in bytes; None if the general way must answer."""
        request, open_files = self._request, broker.logs.open_files
        if open_files is not None and open_files.is_crowded:
            return None
        isolation_level, ahead = request.isolation_level, self._ahead
        left = most = self._most_bytes(broker)
        found: list[Given[Records]] = []
        try:
            for (partition, _, max_bytes, leader_epoch, _), offset in zip(self._wanted, offsets, strict=True):
                if leader_epoch not in (NO_EPOCH, partition.leader_epoch):
                    return None
                most_here = min(left, max_bytes)
                known = ahead.take(broker, partition, offset, most_here) if ahead.found else None
                region: FileRegion | None
                records: Records | None = None
                if known is not None:
                    region, records = known
                else:
                    region = partition.read(
                        offset,
                        most_here,
                        minimum_one=left == most,
                        isolation_level=isolation_level,
                        is_verified_later=True,
                    )
                    if region is not None:
                        records = at_hand(broker.files, region, may_copy=most - left < MOST_COPIED_BYTES)
                if region is not None:
                    if records is None or (isolation_level == READ_COMMITTED and partition.aborted_in(region, offset)):
                        return None
                    left = max(left - region.size, 0)
                    if is_quick and region.size > COPIED_BYTES:
                        ahead.gave(partition, region, most_here)
                found.append((partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset, records))
        except (KafkaError, StorageError, OSError):
            return None  # a `Fetch` meets the same error and answers it
        return found, most - left


def _wanted(broker: FetchTemplateBroker, topic: str | UUID, asked: FetchPartition) -> _Wanted | None:
    partitions = broker.partitions
    found = partitions.get(topic, asked.partition) if isinstance(topic, str) else partitions.by_id(topic, asked.partition)
    if found is None or not found.is_leader or not may_repeat_partition(asked):
        return None
    return _Wanted(found, topic, asked.partition_max_bytes, asked.current_leader_epoch, asked.log_start_offset)


def _asked(wanted: _Wanted, offset: int) -> FetchedPartition:
    """The fields of a request for one partition."""
    return FetchedPartition(
        wanted.topic,
        wanted.partition.index,
        offset,
        wanted.max_bytes,
        wanted.leader_epoch,
        NO_EPOCH,  # the last fetched epoch, see `_wanted`
        wanted.log_start_offset,
    )


def _places_of_offsets(frame: memoryview, body: int, version: int) -> list[int]:
    """The positions of the offsets in a request; empty if this broker would encode the request in other bytes."""
    request = decode_request(FetchRequest, version, frame, body)
    if encode(request, version) != frame[body:]:
        return []
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    for number, partition in enumerate(partitions):
        partition.fetch_offset = _MARK + number
    marked = encode(request, version)
    return [body + marked.index(_OFFSET.pack(_MARK + number)) for number in range(len(partitions))]


def _layout(frame: memoryview, places: Sequence[int]) -> tuple[Struct, tuple[bytes, ...]]:
    """The layout of a request, in which every field except the correlation id and the offsets is fixed bytes, and these bytes."""
    layout, behind = f">{API_BYTES}si", BEHIND_CORRELATION_ID
    for place in places:
        layout += f"{place - behind}sq"
        behind = place + _OFFSET.size
    parted = Struct(f"{layout}{len(frame) - behind}s")
    return parted, parted.unpack(frame)[::2]
