"""Holds the broker to the ledger.

`after_start` looks at what a restart alone may have changed; `records` reads the topics while the load is paused and everything is
answered, so that what must be there is known to the record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.storage.checkpoints import CLEANED_OFFSETS, read_offsets
from barnabas.storage.files import OsFiles
from tests.torture.compacted import Expectation
from tests.torture.ledger import Fleeting, Lane, Ledger, TopicState
from tests.torture.load import FAST_RETRIES, GROUP
from tests.torture.topics import TRIMMED, Promise, TortureTopic
from tests.torture.values import ORIGIN_HEADER, Origin, is_tombstone, key_of, origin_of
from tests.waiting import wait_until

ANSWER_S = 30.0
MESSAGES_AT_ONCE = 2_000


class Broken(AssertionError):
    """A promise that the broker did not keep."""


@dataclass(frozen=True, slots=True)
class Found:
    """A record as a consumer got it."""

    offset: int
    origin: Origin


class Checker:
    """See the module; remembers how far it has looked, so that a round costs what the round added."""

    def __init__(self, servers: str, topics: Iterable[TortureTopic], ledger: Ledger, disks: Sequence[Path]) -> None:
        self._topics, self._ledger, self._disks = list(topics), ledger, disks
        self._admin = AdminClient({"bootstrap.servers": servers, **FAST_RETRIES})
        self._settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            **FAST_RETRIES,
        }
        self._consumer = Consumer(self._settings)
        self._looked: dict[tuple[str, int], int] = {}  # each partition is correct below this offset
        self._next: dict[tuple[str, str, int], int] = {}  # the sequence that comes after the checked records
        self._starts: dict[tuple[str, int], int] = {}
        self._compacted: dict[tuple[str, int], Expectation] = {}
        self.records_read = 0

    def close(self) -> None:
        self._consumer.close()

    # State that a restart must not change

    def after_start(self) -> None:
        """Commits, log starts and topics are what was acknowledged, or what was asked for and not answered.

        Each round has a consumer of its own: librdkafka asks for twice as much after each answer of batches without records, which
        compaction leaves, and takes the eleventh of them for a record that does not fit.
        """
        self._consumer.close()
        self._consumer = Consumer(self._settings)
        acknowledged, tried = self._ledger.commits[GROUP]
        committed = self._consumer.committed([TopicPartition("synced", 0)], timeout=ANSWER_S)[0].offset
        tried = max(tried, self._ledger.commits[GROUP][1])
        _demand(max(committed, 0) >= acknowledged, f"group {GROUP} is back at {committed}, {acknowledged} was acknowledged")
        _demand(committed <= tried, f"group {GROUP} is at {committed}, only {tried} was asked for")
        trims = dict(self._ledger.trims)
        for partition, (start, _) in trims.items():
            found = self._bounds(TRIMMED, partition)[0]
            asked = self._ledger.trims[partition][1]
            _demand(start <= found <= asked, f"{TRIMMED}-{partition} starts at {found}, not in [{start}, {asked}]")
        self._check_fleeting()

    def _check_fleeting(self) -> None:
        with self._ledger.lock:
            fleeting = dict(self._ledger.fleeting)
        there = self._admin.list_topics(timeout=ANSWER_S).topics
        for name, each in fleeting.items():
            if each.state is TopicState.DELETED:
                _demand(name not in there, f"topic {name}, whose deletion was acknowledged, is back")
            elif each.state is TopicState.CREATED:
                _demand(name in there, f"topic {name}, whose creation was acknowledged, is gone")
                found = self._bounds(name, 0)
                _demand(found == (each.start, each.records), f"{name} has {found}, not {(each.start, each.records)}")
                wanted = [Found(offset, Origin(f"{name}/{each.life}", 0, offset)) for offset in range(each.start, each.records)]
                _demand(list(self._read(name, 0, *found)) == wanted, f"{name} does not hold the records of its life {each.life}")

    def settle_topics(self) -> None:
        """With nothing under way: learn what became of requests that had no answer; folders and metadata agree.

        A topic of which it is not known how far it was filled is deleted.
        """
        self._check_fleeting()
        there = self._admin.list_topics(timeout=ANSWER_S).topics
        for name, each in self._ledger.fleeting.items():
            if each.state is TopicState.UNKNOWN:
                if name in there:
                    self._admin.delete_topics([name], request_timeout=ANSWER_S)[name].result()
                self._ledger.fleeting[name] = Fleeting(TopicState.DELETED)
        there = self._admin.list_topics(timeout=ANSWER_S).topics
        wanted = sorted(f"{name}-{index}" for name, topic in there.items() for index in topic.partitions)
        wait_until(
            lambda: sorted(path.name for disk in self._disks for path in disk.iterdir() if path.is_dir()) == wanted,
            "folders are those of the topics, each once",
            within_s=ANSWER_S,
        )
        for (topic, partition), homes in self._ledger.homes.items():
            home = self._home(topic, partition)
            _demand(home in homes, f"{topic}-{partition} is in {home}, it was moved to {homes}")
            self._ledger.homes[topic, partition] = {home}
        self._check_files()

    def _home(self, topic: str, partition: int) -> Path:
        return next(disk for disk in self._disks if (disk / f"{topic}-{partition}").exists())

    def _check_files(self) -> None:
        """Nothing lies about that belongs to no segment."""
        for path in (path for disk in self._disks for path in disk.glob("*/*.*index")):
            wait_until(partial(_has_segment, path), f"{path.name} has a segment", within_s=ANSWER_S)

    # Records

    def records(self) -> None:
        """Every topic keeps its promise. The load is paused."""
        for topic in self._topics:
            for partition in range(topic.partitions):
                self._check(topic, partition)

    def all_records_again(self, *topics: str) -> None:
        """As `records`, from the very beginning; of these topics only, if any are named."""
        self._looked.clear()
        self._next.clear()
        self._compacted.clear()
        for topic in self._topics:
            if not topics or topic.name in topics:
                for partition in range(topic.partitions):
                    self._check(topic, partition)

    def _check(self, topic: TortureTopic, partition: int) -> None:
        where = f"{topic.name}-{partition}"
        lanes = {producer: lane for (producer, index), lane in self._ledger.of_topic(topic.name).items() if index == partition}
        for producer, lane in lanes.items():
            _demand(not lane.failed, f"{where}: {producer} was refused {lane.failed[:3]}")
            _demand(
                len(lane.acknowledged) == lane.sent, f"{where}: {producer} has {lane.sent - len(lane.acknowledged)} records open"
            )
        start, end = self._bounds(topic.name, partition)
        before = self._starts.get((topic.name, partition), 0)
        _demand(before <= start <= end, f"{where}: the log starts at {start}, it started at {before} before, and ends at {end}")
        self._starts[topic.name, partition] = start
        if topic.promise in (Promise.ALL_ONCE, Promise.ALL):
            _demand(start == 0, f"{where}: the log starts at {start}")
            self._check_all(topic, partition, lanes, end)
        elif topic.promise is Promise.FROM_START:
            self._check_from(where, lanes, start, list(self._read(topic.name, partition, start, end)), end)
        else:
            self._check_keys(where, lanes, list(self._read(topic.name, partition, start, end)))
            self._check_compacted(topic.name, partition, lanes)

    def _check_all(self, topic: TortureTopic, partition: int, lanes: dict[str, Lane], end: int) -> None:
        """Nothing between the records, nothing missing, nothing out of turn; where promised, nothing twice."""
        where = f"{topic.name}-{partition}"
        offset = self._looked.get((topic.name, partition), 0)
        confirmed: set[tuple[str, int]] = set()
        began = {producer: self._next.get((topic.name, producer, partition), 0) for producer in lanes}
        following = dict(began)
        for found in self._read(topic.name, partition, offset, end):
            producer, _, sequence = found.origin
            _demand(found.offset == offset, f"{where}: offset {found.offset} follows {offset - 1}")
            _demand(producer in lanes, f"{where}: offset {offset} is of {producer}, which never wrote here")
            wanted = following[producer]
            again = topic.promise is Promise.ALL and sequence < wanted
            _demand(sequence == wanted or again, f"{where}: offset {offset} has {producer} {sequence}, not {wanted}")
            following[producer] = max(wanted, sequence + 1)
            if lanes[producer].acknowledged.get(sequence) == offset:
                confirmed.add((producer, sequence))
            offset += 1
        _demand(offset == end, f"{where}: records end at {offset}, the log at {end}")
        for producer, lane in lanes.items():
            _demand(following[producer] == lane.sent, f"{where}: {producer} has {following[producer]} of {lane.sent} records")
            for sequence in range(began[producer], lane.sent):
                told = lane.acknowledged[sequence]
                right = told == -1 or (producer, sequence) in confirmed
                _demand(right, f"{where}: {producer} {sequence} is not at {told}, as was acknowledged")
            self._next[topic.name, producer, partition] = following[producer]
        self._looked[topic.name, partition] = end

    def _check_from(self, where: str, lanes: dict[str, Lane], start: int, records: list[Found], end: int) -> None:
        _demand([r.offset for r in records] == list(range(start, end)), f"{where}: offsets are not all of [{start}, {end})")
        for producer, lane in lanes.items():
            found = [(r.origin.sequence, r.offset) for r in records if r.origin.producer == producer]
            sequences = [sequence for sequence, _ in found]
            first = sequences[0] if sequences else lane.sent
            _demand(sequences == list(range(first, lane.sent)), f"{where}: {producer} has gaps, repeats or an early end")
            if first:
                told = lane.acknowledged[first - 1]
                _demand(told < start, f"{where}: {producer} {first - 1} was at {told}, at or past the log's start {start}")
            wrong = [(s, o) for s, o in found if lane.acknowledged[s] not in (-1, o)]
            _demand(not wrong, f"{where}: {producer} has {wrong[:3]} elsewhere than acknowledged")

    def _check_keys(self, where: str, lanes: dict[str, Lane], records: list[Found]) -> None:
        offsets = [record.offset for record in records]
        _demand(offsets == sorted(set(offsets)), f"{where}: offsets go back")
        for producer, lane in lanes.items():
            found = [(r.origin.sequence, r.offset) for r in records if r.origin.producer == producer]
            sequences = [sequence for sequence, _ in found]
            _demand(sequences == sorted(set(sequences)), f"{where}: {producer} has repeats or is out of order")
            wrong = [(s, o) for s, o in found if lane.acknowledged.get(s) not in (-1, o)]
            _demand(not wrong, f"{where}: {producer} has {wrong[:3]} elsewhere than acknowledged")
            latest = {key_of(Origin(producer, 0, sequence)): sequence for sequence in range(lane.sent)}
            lost = {s for s in set(latest.values()) - set(sequences) if not is_tombstone(Origin(producer, 0, s))}
            _demand(not lost, f"{where}: {producer} lost the last records of keys: sequences {sorted(lost)[:5]}")

    def _check_compacted(self, topic: str, partition: int, lanes: dict[str, Lane]) -> None:
        """The cleaner, left alone, comes to where the oracle is."""
        if any(offset == -1 for lane in lanes.values() for offset in lane.acknowledged.values()):
            return  # the client got no offset for a record
        expectation = self._compacted.setdefault((topic, partition), Expectation())
        expectation.take(lanes)
        deadline = time.monotonic() + ANSWER_S
        while True:
            cleaned = self._cleaned(topic, partition)
            offsets = [found.offset for found in self._read(topic, partition, *self._bounds(topic, partition))]
            if cleaned == self._cleaned(topic, partition):
                fault = expectation.fault(offsets, cleaned)
                if not fault:
                    return
                _demand(time.monotonic() < deadline, f"{topic}-{partition}: {fault}")

    def _cleaned(self, topic: str, partition: int) -> int:
        """How far the cleaner says that it is."""
        path = self._home(topic, partition) / CLEANED_OFFSETS
        return read_offsets(OsFiles(), path).get((topic, partition), 0) if path.exists() else 0

    # Reading

    def _bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Where a partition begins and ends; asked again while the client remembers a time at which there was no such partition."""
        found: tuple[int, int] | None = None

        def is_told() -> bool:
            nonlocal found
            try:
                found = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S)
            except KafkaException:
                return False
            return found is not None

        wait_until(is_told, f"no answer to where {topic}-{partition} begins and ends", within_s=ANSWER_S)
        assert found is not None
        return found

    def _read(self, topic: str, partition: int, start: int, end: int) -> Iterator[Found]:
        """Every record in [start, end), in the order of the log; each is ours to the last byte."""
        if start >= end:
            return
        self._consumer.assign([TopicPartition(topic, partition, start)])
        deadline = time.monotonic() + ANSWER_S
        at = start
        while at < end:
            messages = self._consumer.consume(min(MESSAGES_AT_ONCE, end - at), timeout=0.05)
            _demand(
                bool(messages) or time.monotonic() < deadline, f"{topic}-{partition}: nothing comes at {at}, the end is {end}"
            )
            deadline = time.monotonic() + ANSWER_S if messages else deadline
            for message in messages:
                offset, error = message.offset(), message.error()
                assert offset is not None
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    at = offset  # compaction removed the records before the end
                    continue
                _demand(error is None, f"{topic}-{partition}: reading failed at {at}: {error}")
                origin = _origin(message)
                if origin is None or origin.partition != partition or message.key() != key_of(origin):
                    raise Broken(f"{topic}-{partition}: offset {offset} holds what nobody sent: {message.value()!r:.80}")
                self.records_read += 1
                at = offset + 1
                yield Found(offset, origin)
        self._consumer.unassign()


def _has_segment(index: Path) -> bool:
    return index.with_suffix(".log").exists() or not index.exists()


def _origin(message: Message) -> Origin | None:
    """The sender; for a tombstone, from its header."""
    value = message.value()
    told = value if value is not None else dict(message.headers() or ()).get(ORIGIN_HEADER)
    origin = origin_of(told) if isinstance(told, bytes) else None
    return None if origin is not None and value is None and not is_tombstone(origin) else origin


def _demand(kept: bool, otherwise: str) -> None:
    if not kept:
        raise Broken(otherwise)
