"""What the clients were told, and whether it can be true: the checker, which knows nothing of the code under test.

Owns a plain list for each partition: which value lies at which offset, as acknowledgements and reads say, and what must not be lost.

Rules (each broken one is a `Violation` that names the offset and both sides)
  1. An offset holds one value for ever. A value that nobody sent into this topic is never read.
  2. What was acknowledged or read is there at every audit, up to the log's end and without a hole, unless it was deleted, or is the tail
     that a power cut may take from a topic that does not flush.
  3. A record of an idempotent producer lies at one offset; its records are in the order in which they were sent, and no gap is among them.
     Without idempotence a record is there at most as often as it was sent.
  4. Records go only when `DeleteRecords` asked for it, or when they are older than `retention.ms`.
  5. The high watermark and the log's start never go back, as long as no tail was lost and no process killed.
  6. A group's committed offset is one that it asked for, none older than the last that was acknowledged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

TopicPartition = tuple[str, int]


class Violation(Exception):
    """Something was promised and not kept."""


@dataclass(slots=True)
class Sent:
    """A value that a producer handed over."""

    producer: str
    number: int
    idempotent: bool
    timestamp_ms: int
    tries: int = 1


@dataclass(slots=True)
class PartitionHistory:
    """What is known of one partition, from outside."""

    name: str
    flushed: bool = False  # flush.messages=1: a power cut takes nothing
    retention_ms: int = -1
    sent: dict[bytes, Sent] = field(default_factory=dict)
    values: dict[int, bytes] = field(default_factory=dict)  # offset -> what lies there
    kept: set[int] = field(default_factory=set)  # offsets that were acknowledged or read
    deletable: int = 0  # DeleteRecords asked for everything below
    high_watermark: int = 0
    log_start: int = 0
    power_cuts: int = 0  # of those that may have taken a tail
    tail_losses: int = 0  # records they took
    rotten: bool = False  # bits were flipped: what cannot be read is to be refused, not served

    # --- what clients tell

    def sending(self, value: bytes, sent: Sent) -> None:
        self.sent[value] = sent

    def acknowledged(self, first_offset: int, values: list[bytes]) -> None:
        for offset, value in enumerate(values, first_offset):
            self._lies(offset, value, "acknowledged")
            self.kept.add(offset)

    def read(self, fetch_offset: int, records: list[tuple[int, bytes]], *, high_watermark: int, log_start: int) -> None:
        """An answer to a fetch: records from `fetch_offset` on."""
        self.told(high_watermark, log_start)
        due = fetch_offset
        for offset, value in records:
            if offset != due:
                raise Violation(f"{self.name}: offset {offset} was read where {due} was due")
            if offset >= high_watermark:
                raise Violation(f"{self.name}: offset {offset} was read, at or above the high watermark {high_watermark}")
            self._lies(offset, value, "read")
            self.kept.add(offset)
            due = offset + 1

    def told(self, high_watermark: int, log_start: int) -> None:
        """What every fetch says of the partition."""
        if high_watermark < self.high_watermark:
            raise Violation(f"{self.name}: the high watermark went back from {self.high_watermark} to {high_watermark}")
        if log_start < self.log_start:
            raise Violation(f"{self.name}: the log's start went back from {self.log_start} to {log_start}")
        self.high_watermark, self.log_start = high_watermark, log_start

    def started_at(self, log_start: int, now_ms: int) -> None:
        """The log begins at `log_start`: what lay before must have been allowed to go."""
        for offset in [o for o in self.values if self.deletable <= o < log_start]:
            sent = self.sent[self.values[offset]]
            age_ms = now_ms - sent.timestamp_ms
            if self.retention_ms < 0 or age_ms <= self.retention_ms:
                raise Violation(f"{self.name}: offset {offset} is gone at the age of {age_ms} ms, nobody asked for that")
        for offset in [o for o in self.values if o < log_start]:
            del self.values[offset]
            self.kept.discard(offset)

    # --- what happens to the broker

    def restarted(self, *, crashed: bool, power_cut: bool, end: int) -> None:
        """The broker is back, and says that the log ends at `end`; called before clients are let in again."""
        if crashed:
            self.log_start = 0  # its checkpoint is written now and then
            self.high_watermark = min(self.high_watermark, end)
        lost = sorted(offset for offset in self.kept if offset >= end)
        if power_cut and not self.flushed:
            self.power_cuts += 1
            self.tail_losses += len(lost)
            for offset in [o for o in self.values if o >= end]:
                del self.values[offset]
                self.kept.discard(offset)
        elif lost:
            raise Violation(f"{self.name}: offset {lost[0]} was acknowledged or read, and the log ends at {end} after a restart")

    def audited(self, start: int, end: int, records: list[tuple[int, bytes]]) -> None:
        """All records from `start` to `end` were read."""
        if [offset for offset, _ in records] != list(range(start, end)):
            found = {offset for offset, _ in records}
            hole = next((o for o in range(start, end) if o not in found), None)
            raise Violation(f"{self.name}: the log of [{start}, {end}) has a hole at {hole}")
        self._check_producers(records)

    def _check_producers(self, records: list[tuple[int, bytes]]) -> None:
        times = Counter(value for _, value in records)
        for value, count in times.items():
            sent = self.sent[value]
            if count > (1 if sent.idempotent else sent.tries):
                raise Violation(f"{self.name}: {value[:24]!r} is there {count} times, and was sent {sent.tries} times")
        last: dict[str, int] = {}
        for offset, value in records:
            sent = self.sent[value]
            if not sent.idempotent:
                continue
            before = last.get(sent.producer)
            if before is not None and sent.number != before + 1:
                raise Violation(
                    f"{self.name}: record {sent.number} of {sent.producer} follows its record {before} (offset {offset})"
                )
            last[sent.producer] = sent.number

    def _lies(self, offset: int, value: bytes, how: str) -> None:
        if value not in self.sent:
            raise Violation(f"{self.name}: {value[:40]!r} was {how} at offset {offset}, and nobody sent it")
        known = self.values.setdefault(offset, value)
        if known != value:
            raise Violation(f"{self.name}: offset {offset} holds {known[:24]!r}, and {value[:24]!r} was {how} there")


@dataclass(slots=True)
class GroupHistory:
    """What a group committed for one partition."""

    name: str
    asked: list[int] = field(default_factory=list)
    acknowledged: int = -1  # index into `asked`

    def committing(self, offset: int) -> int:
        self.asked.append(offset)
        return len(self.asked) - 1

    def committed(self, number: int) -> None:
        self.acknowledged = max(self.acknowledged, number)

    def read(self, offset: int) -> None:
        allowed = self.asked[max(self.acknowledged, 0) :] if self.acknowledged >= 0 else [-1, *self.asked]
        if offset not in allowed:
            raise Violation(f"{self.name}: offset {offset} is committed, of those asked for only {allowed[:5]} can be")

    def lost_power(self) -> None:
        """It may be back at any former commit."""
        self.acknowledged = -1
