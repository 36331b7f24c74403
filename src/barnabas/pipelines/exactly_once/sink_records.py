"""Reads the record of a sink: finds its partition of the sinks' topic, and its last committed record there.

Plain Python, since the driver's processes read no other records: loading numba and pyarrow would take half a second of CPU,
twice, at the start of each query.

Rules
  1. The owner of the sink reads the state as a reader of committed records: it ended every transaction of the former owner when
     it became the owner. If a record of another sink in the same partition is not committed yet, it waits for that, at most
     SINK_TIMEOUT_MS.
  2. The end offset comes from ListOffsets, never from a Fetch: a new leader refuses ListOffsets until it knows the committed
     offsets (KIP-207). A missed decision here would lose or duplicate a batch.
  3. A process continues at the offset where it stopped reading, if the topic id is the same and the log reaches that offset.
     Otherwise it starts from the beginning.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from barnabas.client import operations
from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import PartitionError, TimedOut
from barnabas.client.results import EARLIEST, LATEST, Fetched, NewTopic, TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.pipelines.exactly_once.state import TOPIC, SinkState, UnreadableState, from_json
from barnabas.protocol.base_message import Buffer
from barnabas.protocol.records.batch_header import CRC_START, HEADER_SIZE, BatchHeader, split_batches
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.record import iterate_records

SINK_TIMEOUT_MS = 10_000  # for the transaction that records a state; it is open for a few milliseconds
PARTITIONS = 8  # the topic needs at least this many partitions; only these hold sinks
MOST_REPLICAS = 3
# A short log makes each start fast. Compaction keeps one record per sink, but does not compact the active segment.
TOPIC_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.1"}
MOST_REMEMBERED = 1_000  # sinks whose read position a process keeps
ABORT_MARKER = 0
GONE = (
    "it is created again; its records of batches are lost: a repeated batch is written again, and "
    "of a batch that was being committed the rest is aborted"
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Read:
    """The read position of a process for a sink, with the sink's last record before `offset`."""

    topic_id: UUID
    offset: int
    value: bytes | None


_read: dict[tuple[str | None, str], _Read] = {}  # (cluster id, sink) -> read position


def place_of(client: BlockingClient, sink: str) -> TopicPartition:
    """The partition of the sinks' topic for this sink; creates the topic if it is missing.

    It is always one of the first PARTITIONS partitions, because added partitions must not move a sink to another partition than
    its record.

    Raises:
        UnreadableState: the topic has fewer partitions, so another program created it.
    """
    try:
        client.run(operations.known(client.config, client.cluster, [(TOPIC, None)]))
    except UnknownTopic:
        _make_topic(client)
    count = len(client.cluster.topics[TOPIC].partitions)
    if count < PARTITIONS:
        raise UnreadableState(sink, f"the topic has {count} partitions where {PARTITIONS} are needed")
    return TOPIC, murmur2(sink.encode()) % PARTITIONS


def _make_topic(client: BlockingClient) -> None:
    replicas = min(MOST_REPLICAS, len(client.cluster.brokers))
    config = {**TOPIC_CONFIG, "min.insync.replicas": str(max(1, replicas - 1))}
    client.ensure_topic(NewTopic(TOPIC, PARTITIONS, replicas, config))
    deadline = time.monotonic() + client.config.default_api_timeout_ms / 1000
    while TOPIC not in client.topics_by_name([TOPIC]):
        if time.monotonic() > deadline:
            raise TimedOut(f"topic {TOPIC}", client.config.default_api_timeout_ms)
        time.sleep(client.config.retry_backoff_ms / 1000)


def read_state(client: BlockingClient, sink: str) -> SinkState:
    """The last record of a sink. If the topic of the records was deleted, there is no record, and the topic is created again.

    Raises:
        UnreadableState: this record or an earlier one was not written by a sink.
        TimedOut: another sink's transaction stays open.
    """
    try:
        return _read_state(client, sink)
    except UnknownTopic:
        logger.warning("event=sinks-topic-gone topic=%s sink=%r note=%r", TOPIC, sink, GONE)
        return _read_state(client, sink)


def _read_state(client: BlockingClient, sink: str) -> SinkState:
    place = place_of(client, sink)
    name = client.cluster.cluster_id, sink
    before = _read.get(name)
    try:
        found = _read_on(client, sink, place, before)
        if before is not None and found.topic_id != before.topic_id:
            found = _read_on(client, sink, place, None)
    except PartitionError as error:
        if before is None or error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        found = _read_on(client, sink, place, None)
    if len(_read) >= MOST_REMEMBERED:
        _read.clear()
    _read[name] = found
    return from_json(sink, found.value) if found.value is not None else SinkState()


def _read_on(client: BlockingClient, sink: str, place: TopicPartition, before: _Read | None) -> _Read:
    """Continue after `before`, or read from the beginning."""
    config = replace(client.config, read_committed=True)
    end = client.list_offsets({place: LATEST})[place].offset
    if before is None or before.offset > end:
        offset, value = client.list_offsets({place: EARLIEST})[place].offset, None
    else:
        offset, value = before.offset, before.value
    deadline = time.monotonic() + max(config.default_api_timeout_ms, 2 * SINK_TIMEOUT_MS) / 1000
    while offset < end:
        answer = client.run(operations.fetch(config, client.cluster, *place, offset))
        value = _last_value(sink, answer, offset, value)
        offset = next_offset(answer.records, offset)
        if offset < end and time.monotonic() > deadline:
            raise TimedOut(f"end of {TOPIC}-{place[1]}", config.default_api_timeout_ms)
    topic, _ = operations.leading(client.cluster, *place)
    return _Read(topic.topic_id, offset, value)


def _last_value(sink: str, answer: Fetched, start: int, value: bytes | None) -> bytes | None:
    """The last committed value of the sink in a response; `value` if there is none from `start` on."""
    key = sink.encode()
    for position, header in _committed(answer.records, answer.aborted):
        _check(sink, answer.records, position, header)
        for record in iterate_records(answer.records, position):
            if record.key == key and record.offset >= start:
                value = record.value
    return value


def _committed(records: Buffer, aborted: Sequence[tuple[int, int]]) -> Iterator[tuple[int, BatchHeader]]:
    """The whole batches except markers and batches of aborted transactions. An aborted transaction ends at the marker of its
    producer."""
    waiting = sorted(aborted, key=lambda item: item[1], reverse=True)
    now_aborted: set[int] = set()
    for position, header in split_batches(records, allow_partial=True):
        while waiting and waiting[-1][1] <= header.last_offset:
            now_aborted.add(waiting.pop()[0])
        if header.is_control:
            if _marker_kind(records, position) == ABORT_MARKER:
                now_aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in now_aborted):
            yield position, header


def _marker_kind(records: Buffer, position: int) -> int:
    """The second half of the four-byte key of a control batch's only record; before it there are five lengths and deltas of one
    byte each."""
    key = position + HEADER_SIZE + 5
    return int.from_bytes(memoryview(records)[key + 2 : key + 4], "big")


def _check(sink: str, records: Buffer, position: int, header: BatchHeader) -> None:
    if crc32c(memoryview(records)[position + CRC_START : position + header.size]) != header.crc:
        raise UnreadableState(sink, f"the checksum of the batch at offset {header.base_offset} is wrong")


def murmur2(data: bytes) -> int:
    """MurmurHash 2 with the seed of Kafka's default partitioner, made positive as there."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF
