"""The answers to the clients, and whether they are possible: the checker, which is independent of the code under test.

Owns a plain list for each partition: the value at each offset, according to acknowledgements and reads, and the records that
must not be lost.

Rules (breaking one is a `Violation` that names the offset and both sides; it begins with Jepsen's name for the error, if there
is one)
  1. An offset always has the same value, with the key that the producer sent. A value that no producer sent to this topic is
     never read.
  2. Acknowledged or read records exist at every audit, up to the log end and without a gap. The exceptions are deleted records,
     and the tail that a topic without flushing may lose in a power cut.
  3. A compacted topic may have gaps, but the last record of each key exists. The only exception is a tombstone older than
     `delete.retention.ms`; then no record of its key exists.
  4. A record of an idempotent producer is at one offset. The producer's records are in the order in which it sent them, without
     a gap (except after compaction). Without idempotence a record exists at most as often as it was sent.
  5. Records disappear only for one of these reasons: `DeleteRecords` requested it, they are older than `retention.ms`, or the
     log has `retention.bytes` without them. Records that DeleteRecords confirmed as deleted do not come back.
  6. The high watermark and the log start offset never go back, unless a tail was lost or a process was killed.
  7. A group's committed offset is one that a member requested, and not older than the last acknowledged one. The same is true
     for a topic's settings.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec import Struct, field

MOST_RECORDS_OF_A_BATCH = 4
RECORD_OVERHEAD_BYTES = 200  # upper bound for the header of a record's batch, the record's own fields and its key
TopicPartition = tuple[str, int]


class Violation(Exception):
    """The broker has broken a rule."""


class Found(NamedTuple):
    """A record as it was read. Its identity is its value, or a header if the value is null."""

    offset: int
    identity: bytes
    key: bytes | None


class Sent(Struct):
    """A record that a producer sent."""

    producer: str
    number: int
    idempotent: bool
    timestamp_ms: int
    tries: int = 1
    key: bytes | None = None
    is_tombstone: bool = False


class PartitionHistory(Struct):
    """The observations of one partition."""

    name: str
    flushed: bool = False  # with flush.messages=1 a power cut loses no record
    compacted: bool = False
    replicated: bool = False  # reads go to several brokers; some may have a lower high watermark
    retention_ms: int = -1  # the shortest that was ever set; -1 is unlimited
    retention_bytes: int = -1  # the smallest that was ever set; -1 is unlimited
    delete_retention_ms: int = 86_400_000
    sent: dict[bytes, Sent] = field(default_factory=dict)
    values: dict[int, bytes] = field(default_factory=dict)  # offset -> identity of the record
    kept: set[int] = field(default_factory=set)  # offsets that were acknowledged or read
    deletable: int = 0  # a DeleteRecords request named this offset, so records below it may be gone
    deleted: int = 0  # a broker confirmed the deletion below this offset
    high_watermark: int = 0
    log_start: int = 0
    power_cuts: int = 0  # power cuts that may have lost the end of the log
    tail_losses: int = 0  # records that these cuts have lost
    rotten: int = 0  # flipped bits: a broker must refuse damaged records and not return them

    # --- observations of clients

    def sending(self, value: bytes, sent: Sent) -> None:
        self.sent[value] = sent

    def acknowledged(self, first_offset: int, identities: list[bytes]) -> None:
        for offset, identity in enumerate(identities, first_offset):
            self._lies(offset, identity, "acknowledged")
            self.kept.add(offset)

    def read(self, fetch_offset: int, records: list[Found], *, high_watermark: int, log_start: int) -> None:
        """An answer to a fetch: records from `fetch_offset` on."""
        self.told(high_watermark, log_start)
        due = fetch_offset
        for offset, identity, key in records:
            if offset < due or (offset > due and not self.compacted):
                anomaly = "nonmonotonic poll" if offset < due else "poll skip"
                raise Violation(f"{anomaly}: {self.name}: offset {offset} was read where {due} was due")
            if offset >= high_watermark:
                raise Violation(f"{self.name}: offset {offset} was read, at or above the high watermark {high_watermark}")
            self._lies(offset, identity, "read")
            if key != self.sent[identity].key:
                raise Violation(f"{self.name}: offset {offset} was read with the key {key!r}, not {self.sent[identity].key!r}")
            self.kept.add(offset)
            due = offset + 1

    def told(self, high_watermark: int, log_start: int) -> None:
        """Check the partition's bounds in a fetch response."""
        if self.replicated:
            self.high_watermark = max(self.high_watermark, high_watermark)
            return
        if high_watermark < self.high_watermark:
            raise Violation(f"{self.name}: the high watermark went back from {self.high_watermark} to {high_watermark}")
        if log_start < self.log_start:
            raise Violation(f"{self.name}: the log's start went back from {self.log_start} to {log_start}")
        self.high_watermark, self.log_start = high_watermark, log_start

    def started_at(self, log_start: int, now_ms: int) -> None:
        """The log begins at `log_start`; check that the records before it may be deleted."""
        gone = sorted(offset for offset in self.values if offset < log_start)
        for offset in gone:
            if offset >= self.deletable and not self._is_full(log_start):
                self._check_age(offset, now_ms)
        for offset in gone:
            del self.values[offset]
            self.kept.discard(offset)

    def _is_full(self, log_start: int) -> bool:
        """Whether the records from `log_start` on may have the size of `retention.bytes`."""
        if self.retention_bytes < 0:
            return False
        left = sum(len(identity) + RECORD_OVERHEAD_BYTES for offset, identity in self.values.items() if offset >= log_start)
        return left >= self.retention_bytes or bool(self.power_cuts) or self.compacted

    def _check_age(self, offset: int, now_ms: int) -> None:
        age_ms = now_ms - self.sent[self.values[offset]].timestamp_ms
        if self.retention_ms < 0 or age_ms <= self.retention_ms:
            raise Violation(f"lost write: {self.name}: offset {offset} is gone at the age of {age_ms} ms, nobody asked for that")

    # --- restarts and audits

    def restarted(self, *, crashed: bool, may_lose_tail: bool, start: int, end: int) -> None:
        """The broker has started again and reports the log as [start, end); called before clients may connect."""
        if start < self.deleted:
            raise Violation(f"{self.name}: the log begins at {start}, and all below {self.deleted} was deleted")
        if crashed:
            self.log_start = 0  # the checkpoint of the log start may be older
            self.high_watermark = min(self.high_watermark, end)
        lost = sorted(offset for offset in self.kept if offset >= end)
        if may_lose_tail and not self.flushed:
            self.power_cuts += 1
            self.tail_losses += len(lost)
            for offset in [o for o in self.values if o >= end]:
                del self.values[offset]
                self.kept.discard(offset)
        elif lost:
            known = f"offset {lost[0]} was acknowledged or read, and the log ends at {end} after a restart"
            raise Violation(f"lost write: {self.name}: {known}")

    def audited(self, start: int, end: int, records: list[Found], now_ms: int) -> None:
        """All records from `start` to `end` were read; `read` was called with each of them before."""
        if self.compacted:
            self._check_keys(records, now_ms)
        elif [record.offset for record in records] != list(range(start, end)):
            found = {record.offset for record in records}
            hole = next((o for o in range(start, end) if o not in found), None)
            raise Violation(f"lost write: {self.name}: the log of [{start}, {end}) has a hole at {hole}")
        self._check_producers(records)

    def refused(self, offsets: list[int]) -> None:
        """Record the offsets that an audit could not read because of damaged bits."""
        most = self.rotten * MOST_RECORDS_OF_A_BATCH
        if len(offsets) > most and not self.compacted:  # in a compacted log, the gap after a damaged batch is refused with it
            raise Violation(
                f"{self.name}: {len(offsets)} offsets are refused from {offsets[0]} on, {self.rotten} bits have rotted"
            )

    def _check_keys(self, records: list[Found], now_ms: int) -> None:
        last = {self.sent[self.values[offset]].key: offset for offset in sorted(self.values)}
        present: dict[bytes | None, int] = {record.key: record.offset for record in records}
        for key, offset in last.items():
            if present.get(key) == offset:
                continue
            sent = self.sent[self.values[offset]]
            if not sent.is_tombstone or now_ms - sent.timestamp_ms < self.delete_retention_ms:
                raise Violation(f"lost write: {self.name}: the last record of {key!r} at offset {offset} is gone")
            if key in present:
                raise Violation(f"{self.name}: {key!r} was deleted at offset {offset}, and is there again at {present[key]}")

    def _check_producers(self, records: list[Found]) -> None:
        times = Counter(record.identity for record in records)
        for identity, count in times.items():
            sent = self.sent[identity]
            if count > (1 if sent.idempotent else sent.tries):
                times_sent = f"is there {count} times, and was sent {sent.tries} times"
                raise Violation(f"duplicate: {self.name}: {identity[:24]!r} {times_sent}")
        last: dict[str, int] = {}
        for offset, identity, _ in records:
            sent = self.sent[identity]
            if not sent.idempotent:
                continue
            before = last.get(sent.producer)
            if before is not None and (sent.number <= before if self.compacted else sent.number != before + 1):
                raise Violation(
                    f"{self.name}: record {sent.number} of {sent.producer} follows its record {before} (offset {offset})"
                )
            last[sent.producer] = sent.number

    def _lies(self, offset: int, value: bytes, how: str) -> None:
        if value not in self.sent:
            raise Violation(f"{self.name}: {value[:40]!r} was {how} at offset {offset}, and nobody sent it")
        known = self.values.setdefault(offset, value)
        if known != value:
            both = f"offset {offset} holds {known[:24]!r}, and {value[:24]!r} was {how} there"
            raise Violation(f"inconsistent offsets: {self.name}: {both}")


class Register(Struct):
    """One value that one writer changes repeatedly: a committed offset or a setting."""

    name: str
    asked: list[str] = field(default_factory=list)  # the first is the value before any write
    acknowledged: int = 0  # index into `asked`: a read returns this value or a later one

    def asking(self, value: str) -> int:
        self.asked.append(value)
        return len(self.asked) - 1

    def told(self, number: int) -> None:
        self.acknowledged = max(self.acknowledged, number)

    def read(self, value: str) -> None:
        allowed = self.asked[self.acknowledged :]
        if value not in allowed:
            raise Violation(f"{self.name} is {value}, and can only be one of {allowed[:5]}")

    def lost_power(self) -> None:
        """After a power cut the value may be any earlier one."""
        self.acknowledged = 0
