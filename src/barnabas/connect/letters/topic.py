"""The letters of one topic: read, sent again exactly once, deleted.

A letter stays where it is until it is deleted. What became of it is written to the compacted topic `_barnabas_dead_letters`, in the same
transaction as the record that was sent again. So a command that is killed and repeated sends no letter twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import committed_records
from barnabas.client.results import EARLIEST, LATEST, NewTopic
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.errors import ConnectError
from barnabas.connect.letters.letter import Letter, Wanted, letter_of
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.pipelines.sink_options import sink_options

MARKS = "_barnabas_dead_letters"
COLUMNS = {"key": "binary", "value": "binary", "topic": "string"}
AT_ONCE = 5_000  # letters of a transaction


class Mark(Struct, frozen=True):
    """What became of a letter.

    Args:
        to: the topic that it was sent to; None: somebody deleted it.
        topic_id: of its topic; one that was deleted and made again has other letters at the same places.
    """

    to: str | None
    at_ms: int
    topic_id: str


_MARK = msgspec.json.Decoder(Mark)  # made at import, because threads must not make it at once


class Letters:
    """See the module.

    Args:
        settings: of the client, with `bootstrap.servers`.
    """

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        self.topic = topic
        config = ClientConfig.from_options({**settings, "isolation.level": "read_committed"})
        self._client = BlockingClient(config)
        options = {f"kafka.{name}": value for name, value in settings.items()}
        task = sink_options({**options, "exactlyOnce": "false"}, COLUMNS, streaming=True).task
        self._writer = TransactionalWriter(task, f"barnabas-dlq-{topic}")

    def close(self) -> None:
        """Release the connections."""
        self._client.close()
        self._writer.close()

    def read(self, wanted: Wanted, *, handled: bool = False) -> Iterator[Letter]:
        """The letters of the topic that somebody means, partition by partition.

        Args:
            handled: also those that were sent again or deleted.

        Raises:
            ConnectError: there is no such topic.
        """
        found = self._client.topics_by_name([self.topic]).get(self.topic)
        if found is None:
            raise ConnectError(f"there is no topic {self.topic}")
        marks = {} if handled else self.marks()
        for partition in sorted(found.partitions):
            for letter in self._letters(partition):
                if wanted.has(letter) and letter.place not in marks:
                    yield letter

    def _letters(self, partition: int) -> Iterator[Letter]:
        place = self.topic, partition
        offset = self._client.list_offsets({place: EARLIEST})[place].offset
        end = self._client.list_offsets({place: LATEST}, read_committed=True)[place].offset
        while offset < end:
            fetched = self._client.fetch(*place, offset)
            for record in committed_records(fetched, offset):
                yield letter_of(partition, record)
            offset = next_offset(fetched.records, offset)

    def marks(self) -> dict[str, Mark]:
        """What became of letters, by their places."""
        topic_id = self._topic_id()
        found: dict[str, Mark] = {}
        for record in records_of(self._client, MARKS):
            topic, _, place = bytes(record.key or b"").decode().rpartition("/")
            if topic == self.topic and record.value is not None:
                mark = _MARK.decode(record.value)
                if mark.topic_id == topic_id:
                    found[place] = mark
        return found

    def _topic_id(self) -> str:
        """The id of the topic. Raises ConnectError if there is no such topic."""
        found = self._client.topics_by_name([self.topic]).get(self.topic)
        if found is None:
            raise ConnectError(f"there is no topic {self.topic}")
        return str(found.topic_id)

    def redrive(self, wanted: Wanted, to: str | None = None, most: int | None = None) -> int:
        """Send letters again, each to the topic that it comes from, or to another one; returns how many.

        Raises:
            ConnectError: a letter does not say where it comes from.
        """
        return self._handle(wanted, most, lambda letter: to or _origin(letter))

    def purge(self, wanted: Wanted, most: int | None = None) -> int:
        """Delete letters; returns how many. Their records go as soon as all before them are gone too."""
        count = self._handle(wanted, most, lambda _: None)
        self._delete_records()
        return count

    def _handle(self, wanted: Wanted, most: int | None, target: Any) -> int:
        self._ensure_marks()
        self._writer.begin()  # first, so that nobody else marks letters behind the look at the marks
        count, part = 0, list[tuple[Letter, str | None]]()
        for letter in self.read(wanted):
            if most is not None and count + len(part) >= most:
                break
            part.append((letter, target(letter)))
            if len(part) >= AT_ONCE:
                count, part = count + self._write(part), []
        return count + (self._write(part) if part else 0)

    def _write(self, part: Sequence[tuple[Letter, str | None]]) -> int:
        sent = [(letter, to) for letter, to in part if to is not None]
        self._writer.write([*_records(sent), self._marks_of(part)])
        return len(part)

    def _marks_of(self, part: Sequence[tuple[Letter, str | None]]) -> pa.RecordBatch:
        now_ms, topic_id = time.time_ns() // 1_000_000, self._topic_id()
        columns: dict[str, Any] = {
            "key": pa.array([f"{self.topic}/{letter.place}".encode() for letter, _ in part], pa.binary()),
            "value": pa.array([msgspec.json.encode(Mark(to, now_ms, topic_id)) for _, to in part], pa.binary()),
            "topic": pa.repeat(MARKS, len(part)),
        }
        return pa.record_batch(columns)

    def _ensure_marks(self) -> None:
        self._client.ensure_topic(NewTopic(MARKS, 1, configs={"cleanup.policy": "compact"}))

    def _delete_records(self) -> None:
        """Delete the records of each partition up to the first one that somebody may need."""
        marks = self.marks()
        before: dict[tuple[str, int], int] = {}
        for partition in self._client.topics_by_name([self.topic])[self.topic].partitions:
            place = self.topic, partition
            end = self._client.list_offsets({place: LATEST}, read_committed=True)[place].offset
            needed = (each.offset for each in self._letters(partition) if each.place not in marks)
            before[place] = next(needed, end)
        self._client.delete_records(before)
        gone = [place for place in marks if _is_before(place, {partition: offset for (_, partition), offset in before.items()})]
        if gone:
            columns: dict[str, Any] = {
                "key": pa.array([f"{self.topic}/{place}".encode() for place in gone], pa.binary()),
                "value": pa.nulls(len(gone), pa.binary()),
                "topic": pa.repeat(MARKS, len(gone)),
            }
            self._writer.write([pa.record_batch(columns)])


def _is_before(place: str, ends: Mapping[int, int]) -> bool:
    partition, _, offset = place.partition(":")
    return int(offset) < ends.get(int(partition), 0)


def _origin(letter: Letter) -> str:
    if letter.origin is None:
        raise ConnectError(
            f"the letter {letter.place} does not say where it comes from, since its connector has no "
            "errors.deadletterqueue.context.headers.enable; name a topic with --to"
        )
    return letter.origin


def _records(sent: Iterable[tuple[Letter, str | None]]) -> list[pa.RecordBatch]:
    rows = list(sent)
    if not rows:
        return []
    columns: dict[str, Any] = {
        "key": pa.array([letter.key for letter, _ in rows], pa.binary()),
        "value": pa.array([letter.value for letter, _ in rows], pa.binary()),
        "topic": pa.array([to for _, to in rows], pa.string()),
        "headers": pa.array([[{"key": name, "value": value} for name, value in letter.headers] for letter, _ in rows], HEADERS),
    }
    return [pa.record_batch(columns)]
