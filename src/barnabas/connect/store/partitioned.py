"""The newest record of each key in a compacted topic with any number of partitions; see `client/keyed_topic.py`, which has one.

Owns a copy of the records. `follow` reads what was committed since; `put` writes in one transaction and returns when it was read back.
A record goes to the partition that Kafka's producers choose for its key, so that compaction keeps one of each key.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from barnabas.client import transactions
from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import PartitionError, ResourceError
from barnabas.client.keyed_topic import FENCED, FOLLOW_TIMEOUT_MS, READ_BACK_S, Contended, KeyedTopicError, committed_records
from barnabas.client.operations import produce
from barnabas.client.results import EARLIEST, NewTopic
from barnabas.client.transactions import LAST_FIRST_VERSION_PRODUCE, Owner
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.pipelines.exactly_once.sink_records import murmur2
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.records.batch import build_batch

logger = logging.getLogger(__name__)
V = TypeVar("V")
ATTEMPTS = 20


class PartitionedTopic(Generic[V]):
    """The records of one topic by key. For several threads at once.

    Args:
        config: of the client that follows the topic.
        created: the topic, as a change creates it if it is missing.
        encode, decode: the value of a record; `decode` raises BarnabasError for one that it cannot read.
        transactional_id: of all writers.
    """

    def __init__(
        self, config: ClientConfig, created: NewTopic, *, encode: Callable[[V], bytes], decode: Callable[[bytes], V],
        transactional_id: str,
    ) -> None:  # fmt: skip
        timeout_ms = min(config.default_api_timeout_ms, FOLLOW_TIMEOUT_MS)
        self.topic, self._created = created.name, created
        self._client = BlockingClient(
            replace(config, read_committed=True, fetch_max_wait_ms=0, default_api_timeout_ms=timeout_ms)
        )
        self._encode, self._decode, self._transactional_id = encode, decode, transactional_id
        self._lock = threading.Lock()
        self._topic_id = ZERO_UUID
        self._positions: dict[int, int] = {}
        self._records: dict[str, V] = {}
        self.version = 0

    def close(self) -> None:
        """Release the connections; the next look opens others."""
        with self._lock:
            self._client.close()

    def follow(self) -> Mapping[str, V]:
        """The records by key, as of now; a snapshot that does not change. Raises ClientError, KafkaError."""
        with self._lock:
            self._catch_up()
            return self._records

    def _catch_up(self) -> None:
        found = self._client.topics_by_name([self.topic]).get(self.topic)
        if found is None or found.topic_id != self._topic_id:
            self._forget()
        if found is None:
            return
        self._topic_id = found.topic_id
        for partition in found.partitions:
            while self._read(partition):
                pass

    def _forget(self) -> None:
        if self._records:
            self.version += 1
        self._topic_id, self._positions, self._records = ZERO_UUID, {}, {}

    def _read(self, partition: int) -> bool:
        """Take in what follows of a partition; returns whether more is committed."""
        position = self._positions.get(partition, 0)
        try:
            fetched = self._client.fetch(self.topic, partition, position)
        except PartitionError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            place = self.topic, partition
            self._positions[partition] = self._client.list_offsets({place: EARLIEST})[place].offset
            return True
        behind = next_offset(fetched.records, position)
        if behind <= position:
            return False
        records, changed = dict(self._records), False
        for record in committed_records(fetched, position):
            if record.key is not None:
                changed = True
                self._apply(records, record.key.decode("utf-8", "replace"), record.value)
        self._positions[partition] = behind
        if changed:
            self._records = records
            self.version += 1
        return behind < fetched.last_stable_offset

    def _apply(self, records: dict[str, V], key: str, value: bytes | memoryview | None) -> None:
        records.pop(key, None)
        if value is None:
            return
        try:
            records[key] = self._decode(bytes(value))
        except BarnabasError as error:
            logger.warning("event=keyed-record-unreadable topic=%s key=%r reason=%r", self.topic, key, str(error))

    def put(self, client: BlockingClient, values: Mapping[str, V | None]) -> None:
        """Write these values; None deletes one. Raises KeyedTopicError, KafkaError, ClientError."""
        if not values:
            return
        count = self._ensure_topic(client)
        batches: dict[int, list[tuple[bytes, bytes | None]]] = {}
        for key, value in values.items():
            encoded = key.encode()
            batches.setdefault(murmur2(encoded) % count, []).append((encoded, None if value is None else self._encode(value)))
        for attempt in range(ATTEMPTS):
            try:
                self._write(client, batches)
                return
            except (ResourceError, PartitionError) as error:
                if error.code not in FENCED:
                    raise
            time.sleep(0.01 * (attempt + 1))
        raise Contended(f"others change {self.topic} at the same time; try again")

    def _write(self, client: BlockingClient, batches: Mapping[int, list[tuple[bytes, bytes | None]]]) -> None:
        name, second = self._transactional_id, client.has_second_transactions
        owner = client.run(transactions.init_producer_id(client.config, client.cluster, name)).owner
        ends: dict[int, int] = {}
        try:
            if not second:
                places = [(self.topic, partition) for partition in batches]
                client.run(transactions.add_partitions(client.config, client.cluster, name, owner, places))
            for partition, records in batches.items():
                batch = build_batch(
                    records, timestamp_ms=time.time_ns() // 1_000_000, producer_id=owner.producer_id,
                    producer_epoch=owner.epoch, base_sequence=0, transactional=True,
                )  # fmt: skip
                at_most = None if second else LAST_FIRST_VERSION_PRODUCE
                plan = produce(
                    client.config, client.cluster, self.topic, partition, batch, transactional_id=name, at_most=at_most
                )
                ends[partition] = client.run(plan).base_offset + len(records)
        except BaseException:
            with contextlib.suppress(BarnabasError):  # its timeout ends it otherwise, and holds back readers until then
                self._end(client, owner, commit=False)
            raise
        ended = self._end(client, owner, commit=True)
        if isinstance(ended, ErrorCode):
            raise ResourceError(ended, f"transactional id {name}")
        self._wait(ends)

    def _end(self, client: BlockingClient, owner: Owner, *, commit: bool) -> Owner | ErrorCode:
        name, second = self._transactional_id, client.has_second_transactions
        plan = transactions.end_transactions(client.config, client.cluster, {name: owner}, commit=commit, second_version=second)
        return client.run(plan)[name]

    def _wait(self, ends: Mapping[int, int]) -> None:
        deadline = time.monotonic() + READ_BACK_S
        while True:
            self.follow()
            if all(self._positions.get(partition, 0) >= end for partition, end in ends.items()):
                return
            if time.monotonic() > deadline:
                raise KeyedTopicError(f"{self.topic} was written, but could not be read back in time")
            time.sleep(0.002)

    def _ensure_topic(self, client: BlockingClient) -> int:
        """The number of partitions of the topic, which is created if it is missing."""
        found = client.topics_by_name([self.topic]).get(self.topic)
        if found is None:
            client.ensure_topic(self._created)
            return self._ensure_topic(client)
        return len(found.partitions)
