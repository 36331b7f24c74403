"""Positions in topics in the form of Spark's `kafka` source, and the arithmetic on them. No Spark, no I/O.

Offsets of a stream are `{"topic": {"partition": next offset}}`, with sorted topics and partitions, so that equal positions have
equal texts. The text also has the topics' ids, under a name that no topic can have. In offsets from a user, `-1` means latest
and `-2` means earliest.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID

LATEST, EARLIEST = -1, -2
WORDS = {"latest": LATEST, "earliest": EARLIEST}
TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]
JsonOffsets = dict[str, dict[str, int]]
TOPIC_IDS = "#topicIds"
LEAST_LONG, MOST_LONG = -(2**63), 2**63 - 1
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")


def id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka writes it, "" if the broker gives none."""
    return "" if topic_id == ZERO_UUID else urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


class OptionError(ValueError):
    """An option is missing, contradicts another option, or has an invalid value; the message is that of Spark's `kafka`
    source."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position where a query begins or ends.

    Exactly one is set: `word` (EARLIEST or LATEST), `offsets` by partition, `timestamp_ms` for all, `timestamps_ms` by
    partition. `topics`: in addition to `offsets`, topics whose partitions all have the same word. `latest_on_no_match`: a
    timestamp newer than every record means the end of the partition, not an error.
    """

    word: int | None = None
    offsets: Offsets | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Offsets | None = None
    latest_on_no_match: bool = False

    @property
    def moves(self) -> bool:
        """Whether a later look-up may give another offset, because new records have arrived."""
        if self.offsets is not None:
            return LATEST in (*self.offsets.values(), *self.topics.values())
        return self.word == LATEST or (self.word is None and self.latest_on_no_match)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def whole_number(text: str) -> int:
    """A number in the format of a Java long; spaces around it are allowed. Raises ValueError for other forms that Python
    accepts, such as 1_000."""
    if WHOLE_NUMBER.fullmatch(text) is None or not LEAST_LONG <= (number := int(text)) <= MOST_LONG:
        raise ValueError(text)
    return number


def partitions_from_json(text: str) -> list[TopicPartition]:
    """`{"topicA":[0,1]}` as pairs."""
    try:
        found = [(_name(topic), _number(p)) for topic, items in json.loads(text).items() for p in _list(items)]
    except (ValueError, TypeError, AttributeError):
        raise OptionError(f'Expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}') from None
    for topic, partition in found:
        if partition < 0:
            raise OptionError(f"Partition {partition} of topic {topic} is not possible: partitions are numbered from 0")
    return found


def position_from_json(text: str) -> Position:
    """`{"topicA":{"0":23},"topicB":"earliest"}`: offsets by partition, or one word for a topic's.

    Raises:
        OptionError: the text has another form, or an offset is neither a number nor a known word.
    """
    try:
        items = json.loads(text).items()
        topics = {topic: WORDS[value.lower()] for topic, value in items if isinstance(value, str)}
        offsets = from_json({topic: value for topic, value in items if topic not in topics})
    except (ValueError, KeyError, TypeError, AttributeError):
        examples = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}} or {"topicA":"earliest","topicB":"latest"}'
        raise OptionError(f"Expected e.g. {examples}, got {text}") from None
    for tp, offset in offsets.items():
        if offset < EARLIEST:
            raise OptionError(
                f"Offset {offset} of {names([tp])} is not possible: Use -1 for latest, -2 for earliest, or an offset from 0 on"
            )
    return Position(offsets=offsets, topics=topics)


def timestamps_from_json(text: str) -> Offsets:
    """`{"topicA":{"0":1700000000000}}` by partition, in milliseconds."""
    try:
        return from_json(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA": {"0": 123456789, "1": 123456789}, "topicB": {"0": 123456789, "1": 123456789}}'
        raise OptionError(f"Expected e.g. {example}, got {text}") from None


def from_json(value: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Offsets by topic and partition from `{topic: {"partition": offset}}`; raises TypeError or ValueError for another form."""
    return {(_name(topic), int(p)): _number(offset) for topic, items in value.items() for p, offset in items.items()}


def to_json(offsets: Mapping[TopicPartition, int]) -> JsonOffsets:
    """`{topic: {"partition": offset}}`, in the order of topics and partitions, with partitions as text: the form of Spark's own source."""
    result: JsonOffsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    return result


def stream_offset(offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> dict[str, Any]:
    """The offsets and the topics' ids as JSON for the checkpoint of a stream."""
    result: dict[str, Any] = dict(to_json(offsets))
    ids = {topic: topic_ids[topic] for topic in result if topic_ids.get(topic)}
    return {**result, TOPIC_IDS: ids} if ids else result


def from_stream_offset(value: Mapping[str, Any]) -> tuple[Offsets, dict[str, str]]:
    """The offsets and the topics' ids from a checkpoint; no ids if Spark's own source wrote it."""
    return from_json({topic: items for topic, items in value.items() if topic != TOPIC_IDS}), dict(value.get(TOPIC_IDS, {}))


def names(partitions: Iterable[TopicPartition]) -> str:
    """`a-0, a-1`, for messages."""
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not LEAST_LONG <= value <= MOST_LONG:
        raise TypeError
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def limit_rows(limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """The end offsets of at most about `limit` offsets after `start`, divided in proportion to the offsets of each partition.

    A partition gets at least one offset, so that small partitions make progress. So the sum may exceed the limit by the number
    of partitions.
    """
    sizes = {tp: offset - start[tp] for tp, offset in end.items() if tp in start and offset > start[tp]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    result = dict(end)
    for tp, size in sizes.items():
        share = limit * size / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        result[tp] = min(end[tp], start[tp] + rows)
    return result


def limit_bytes(
    limit: int,
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    density: Callable[[TopicPartition, int], float | None],
) -> Offsets:
    """The end offsets of about `limit` bytes of the logs after `start`, divided in proportion to the bytes of each partition.

    Args:
        density: gives the average bytes per offset at an offset of a partition, None if unknown. It is called for the start of
            a partition, and for the end computed from the first value. Between the two the function assumes a linear change.
    """
    open_ones = {tp: offset - start[tp] for tp, offset in end.items() if tp in start and offset > start[tp]}
    first = {tp: known for tp in open_ones if (known := density(tp, start[tp]))}
    total = sum(size * first[tp] for tp, size in open_ones.items() if tp in first)
    if not total:
        return dict(end)
    cut = {tp: start[tp] + min(open_ones[tp], max(int(open_ones[tp] * limit / total), 1)) for tp in first}
    mean = {tp: (first[tp] + (density(tp, cut[tp] - 1) or first[tp])) / 2 for tp in first}
    planned = sum((cut[tp] - start[tp]) * mean[tp] for tp in first)
    result = dict(end)
    for tp in first:
        rows = max(int((cut[tp] - start[tp]) * limit / planned), 1)
        result[tp] = min(end[tp], start[tp] + rows)
    return result


def split_ranges(ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None = None) -> list[OffsetRange]:
    """Drop empty ranges and split large ones, until there are about `min_partitions` ranges of at most `max_records`
    offsets."""
    kept = [r for r in ranges if r.size > 0]
    if max_records is not None:
        kept = [part for r in kept for part in _cut(r, -(-r.size // max_records))]
    if min_partitions is None or len(kept) >= min_partitions:
        return kept
    total = sum(r.size for r in kept)
    whole = {id(r) for r in kept if _parts(r.size, total, min_partitions) == 1}
    split_total = total - sum(r.size for r in kept if id(r) in whole)
    split_partitions = max(min_partitions - len(whole), 1)
    result = []
    for r in kept:
        result += [r] if id(r) in whole else _cut(r, _parts(r.size, split_total, split_partitions))
    return result


def _parts(size: int, total: int, partitions: int) -> int:
    return max(math.floor(size / total * partitions + 0.5), 1)


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    bounds = [whole.start + whole.size * i // parts for i in range(parts + 1)]
    cut = [OffsetRange(whole.topic, whole.partition, a, b) for a, b in itertools.pairwise(bounds)]
    return [r for r in cut if r.size > 0]
