"""The newest record of each key in a compacted topic with one partition, and changes that follow one another.

Owns a copy of the records. `follow` keeps it current; `change` decides about it and writes.

Rules
  1. A reader knows the offset up to which it has read, and reads what is committed behind it: one Fetch that does not wait.
  2. A topic that was deleted has no records. A topic that was created again is read from its beginning.
  3. A writer first takes over the transactional id, so that every other writer is fenced; then it reads to the end, decides, and
     writes in a transaction. A writer that was fenced starts again. So decisions follow one another, whatever process makes them.
  4. A change is answered after it was read back.
  5. The caller's client writes, with the caller's rights; the client of the copy follows.
  6. A record that cannot be read counts as none, and the log says so.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from barnabas.client import transactions
from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import UnknownTopic
from barnabas.client.config import ClientConfig
from barnabas.client.errors import PartitionError, ResourceError
from barnabas.client.operations import produce
from barnabas.client.results import EARLIEST, Fetched, NewTopic
from barnabas.client.transactions import LAST_FIRST_VERSION_PRODUCE, Owner
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches

logger = logging.getLogger(__name__)
V = TypeVar("V")
ATTEMPTS = 20
READ_BACK_S = 30.0
FOLLOW_TIMEOUT_MS = 10_000  # of one look at the topic, with its retries
FENCED = frozenset({
    ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS,
})  # fmt: skip


class KeyedTopicError(BarnabasError):
    """A change that cannot be made: too many records, too large a record, or a topic that does not fit."""


class Contended(KeyedTopicError):
    """Others write all the time."""


class KeyedTopic(Generic[V]):
    """The records of one topic by key. For several threads at once.

    Args:
        config: of the client that follows the topic.
        topic: a change creates it if it does not exist.
        encode, decode: the value of a record; `decode` raises BarnabasError for one that it cannot read.
        most_records, most_bytes: limits of the number of keys and of a value. A reader ignores keys beyond the limit.
        transactional_id: of all writers; by default the name of the topic.
        replication: the replication factor of the topic that a change creates; -1 is that of the broker.
    """

    def __init__(
        self, config: ClientConfig, topic: str, *, encode: Callable[[V], bytes], decode: Callable[[bytes], V],
        most_records: int, most_bytes: int, transactional_id: str | None = None, replication: int = -1,
    ) -> None:  # fmt: skip
        timeout_ms = min(config.default_api_timeout_ms, FOLLOW_TIMEOUT_MS)
        self.topic = topic
        self._client = BlockingClient(
            replace(config, read_committed=True, fetch_max_wait_ms=0, default_api_timeout_ms=timeout_ms)
        )
        self._encode, self._decode = encode, decode
        self._most_records, self._most_bytes = most_records, most_bytes
        self._transactional_id = transactional_id or topic
        self._created = NewTopic(topic, 1, replication, {"cleanup.policy": "compact"})
        self._lock = threading.Lock()
        self._records: dict[str, V] = {}
        self._topic_id, self._position = ZERO_UUID, 0
        self._looked_at: float | None = None
        self.version = 0

    @property
    def records(self) -> Mapping[str, V]:
        """By key, as of the last look; a snapshot that does not change."""
        return self._records

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, as of the last look."""
        return self._client.cluster.cluster_id

    def get(self, key: str) -> V | None:
        """The value of a key as of the last look."""
        return self._records.get(key)

    def close(self) -> None:
        """Release the connections; the next look opens others."""
        with self._lock:
            self._client.close()

    def follow(self, *, max_age_s: float = 0.0) -> Mapping[str, V]:
        """Read what was committed since the last look, unless that is at most so old. Raises ClientError, KafkaError."""
        with self._lock:
            if self._looked_at is None or max_age_s <= 0 or time.monotonic() - self._looked_at >= max_age_s:
                self._catch_up()
                self._looked_at = time.monotonic()
            return self._records

    def _catch_up(self) -> None:
        client = self._client
        while True:
            try:
                fetched = client.fetch(self.topic, 0, self._position)
            except UnknownTopic:
                self._forget()
                return
            except PartitionError as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                place = self.topic, 0
                self._forget(client.list_offsets({place: EARLIEST})[place].offset)
                continue
            topic_id = client.cluster.topics[self.topic].topic_id
            if topic_id != self._topic_id:
                was_read = self._position > 0
                self._forget()
                self._topic_id = topic_id
                if was_read:
                    continue
            if not self._take(fetched):
                return

    def _forget(self, position: int = 0) -> None:
        if self._records:
            self.version += 1
        self._records, self._position = {}, position

    def _take(self, fetched: Fetched) -> bool:
        """Take the records in; returns whether more are committed."""
        behind = next_offset(fetched.records, self._position)
        if behind <= self._position:
            return False
        records, changed = dict(self._records), False
        for record in committed_records(fetched, self._position):
            if record.key is not None:
                self._apply(records, record.key.decode("utf-8", "replace"), record)
                changed = True
        self._position = behind
        if changed:
            self._records = records
            self.version += 1
        return behind < fetched.last_stable_offset

    def _apply(self, records: dict[str, V], key: str, record: Record) -> None:
        if record.value is None:
            records.pop(key, None)
            return
        if key not in records and len(records) >= self._most_records:
            logger.warning("event=keyed-record-ignored topic=%s key=%r most=%d", self.topic, key, self._most_records)
            return
        try:
            records[key] = self._decode(bytes(record.value))
        except BarnabasError as error:
            logger.warning("event=keyed-record-unreadable topic=%s key=%r reason=%r", self.topic, key, str(error))
            records.pop(key, None)

    def change(self, client: BlockingClient, decide: Callable[[Mapping[str, V]], Mapping[str, V | None]]) -> None:
        """Write what `decide` makes of the records; None deletes one. Called again if another process wrote in between.

        Raises:
            KeyedTopicError: a limit, or others write all the time (Contended).
            KafkaError, ClientError: the cluster refused it.
            Exception: by `decide`; nothing is written then.
        """
        self._ensure_topic(client)
        for attempt in range(ATTEMPTS):
            try:
                if self._attempt(client, decide):
                    return
            except (ResourceError, PartitionError) as error:
                if error.code not in FENCED:
                    raise
            time.sleep(0.01 * (attempt + 1))
        raise Contended(f"others change {self.topic} at the same time; try again")

    def put(self, client: BlockingClient, values: Mapping[str, V | None]) -> None:
        """Write these values, whatever is there; None deletes one. Raises as `change`."""
        self.change(client, lambda _: values)

    def _attempt(self, client: BlockingClient, decide: Callable[[Mapping[str, V]], Mapping[str, V | None]]) -> bool:
        name = self._transactional_id
        owner = client.run(transactions.init_producer_id(client.config, client.cluster, name)).owner
        changes = decide(self.follow())
        if not changes:
            return True
        payloads = self._payloads(changes)
        topic_id = self._topic_id
        try:
            offset = self._write(client, owner, payloads)
        except BaseException:
            with contextlib.suppress(BarnabasError):  # its timeout ends it otherwise, and holds back readers until then
                self._end(client, owner, commit=False)
            raise
        ended = self._end(client, owner, commit=True)
        if isinstance(ended, ErrorCode):
            if ended in FENCED:
                return False
            raise ResourceError(ended, f"transactional id {name}")
        deadline = time.monotonic() + READ_BACK_S
        while True:
            self.follow()
            if self._position > offset or self._topic_id != topic_id != ZERO_UUID:
                return True
            if time.monotonic() > deadline:
                raise KeyedTopicError(f"{self.topic} was written, but could not be read back in time")
            time.sleep(0.002)

    def _payloads(self, changes: Mapping[str, V | None]) -> dict[str, bytes | None]:
        payloads = {key: None if value is None else self._encode(value) for key, value in changes.items()}
        added = sum(value is not None and key not in self._records for key, value in payloads.items())
        if added and len(self._records) + added > self._most_records:
            raise KeyedTopicError(f"{self.topic} has at most {self._most_records} records")
        for key, payload in payloads.items():
            if payload is not None and len(payload) > self._most_bytes:
                raise KeyedTopicError(
                    f"the record {key!r} of {self.topic} has {len(payload)} bytes; allowed are {self._most_bytes}"
                )
        return payloads

    def _write(self, client: BlockingClient, owner: Owner, payloads: Mapping[str, bytes | None]) -> int:
        """Append the records to an open transaction; returns the offset of the last one."""
        name, second = self._transactional_id, client.has_second_transactions
        if not second:
            client.run(transactions.add_partitions(client.config, client.cluster, name, owner, [(self.topic, 0)]))
        batch = build_batch(
            [(key.encode(), payload) for key, payload in payloads.items()], timestamp_ms=time.time_ns() // 1_000_000,
            producer_id=owner.producer_id, producer_epoch=owner.epoch, base_sequence=0, transactional=True,
        )  # fmt: skip
        at_most = None if second else LAST_FIRST_VERSION_PRODUCE
        plan = produce(client.config, client.cluster, self.topic, 0, batch, transactional_id=name, at_most=at_most)
        return client.run(plan).base_offset + len(payloads) - 1

    def _end(self, client: BlockingClient, owner: Owner, *, commit: bool) -> Owner | ErrorCode:
        name, second = self._transactional_id, client.has_second_transactions
        plan = transactions.end_transactions(client.config, client.cluster, {name: owner}, commit=commit, second_version=second)
        return client.run(plan)[name]

    def _ensure_topic(self, client: BlockingClient) -> None:
        found = client.topics_by_name([self.topic]).get(self.topic)
        if found is not None:
            if len(found.partitions) != 1:
                raise KeyedTopicError(f"the topic {self.topic} has {len(found.partitions)} partitions; it needs exactly one")
            return
        client.ensure_topic(self._created)


def committed_records(fetched: Fetched, position: int) -> Iterator[Record]:
    """The records from `position` on, without those of aborted transactions."""
    pending = sorted(fetched.aborted, key=lambda each: each[1], reverse=True)
    aborting: set[int] = set()
    data = memoryview(fetched.records)
    for at, header in split_batches(data, allow_partial=True):
        while pending and pending[-1][1] <= header.base_offset + header.last_offset_delta:
            aborting.add(pending.pop()[0])
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            for record in iterate_records(data[at : at + header.size]):
                if record.offset >= position:
                    yield record
