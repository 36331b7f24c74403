"""What the driver decides: which partitions a query has, where it begins, how far a micro-batch goes, what each task reads.

Owns the client of the driver. Knows no Spark; the readers in `source` pass its answers on.

Rules
  1. A partition that appears later is read from its earliest offset, so that nothing produced before it was noticed is missed.
  2. A batch goes from what the last one ended with to what `latest` answered: both are in the checkpoint, nothing else is needed
     to repeat it.
  3. Whatever means that records are gone goes to `_data_loss`: an error, or a warning with failOnDataLoss=false.

Ugly: Spark keeps the end of a batch in the checkpoint and not where the first one began, and a Python source is not told where the
checkpoint is. A query that starts at a moving position (latest) would therefore begin later when its first batch is repeated after a
crash, and records in between would be lost. So the first batch of such a query is empty: its end is the beginning, written down.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import Topic, UnknownTopic
from barnabas.client.config import ClientConfig
from barnabas.errors import BarnabasError
from barnabas.pipelines.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Offsets,
    OptionError,
    Position,
    TopicPartition,
    limit_rows,
    names,
    split_ranges,
)
from barnabas.pipelines.options import ReadOptions

logger = logging.getLogger(__name__)

COMMIT_TIMEOUT_MS = 5_000  # a cluster whose coordinator is away must not hold up a query for what only lag tools see
LOSS = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by Kafka or the topic "
    "may have been deleted before all the data in the topic was processed. "
)
LOSS_FAILS = LOSS + "If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false."
LOSS_WARNS = LOSS + "If you want your streaming query to fail on such cases, set the source option failOnDataLoss to true."


@dataclass(frozen=True, slots=True)
class ReadTask:
    """All that a task needs to know; made by the driver, pickled to the task."""

    range: OffsetRange
    client: ClientConfig
    include_headers: bool
    fail_on_data_loss: bool
    poll_timeout_ms: int


class DataLoss(BarnabasError):
    """Records that should have been read are gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} {LOSS_FAILS}"


def report_data_loss(reason: str, *, fail: bool) -> None:
    """Raise DataLoss, or log it."""
    if fail:
        raise DataLoss(reason)
    logger.warning("%s %s", reason, LOSS_WARNS)


class Planner:
    """The driver's side of one query.

    Args:
        options: of the query.
        client: to ask; made from the options and closed by `close` when none is given.
    """

    def __init__(self, options: ReadOptions, client: BlockingClient | None = None) -> None:
        self._options = options
        self._client = client or BlockingClient(options.client)
        self._target: Offsets | None = None  # where Trigger.AvailableNow ends
        self._initial: Offsets | None = None  # what `initial` answered in this process
        self._first_batch_done = False  # of a query that starts at a moving position: see Ugly
        self._latest: Offsets = {}  # what the cluster answered last
        self._last_trigger_ms = 0.0
        self._committed: Offsets = {}  # what the group was told last
        self._commit_refused = False

    def close(self) -> None:
        self._client.close()

    def batch_ranges(self) -> list[OffsetRange]:
        """What a batch query reads."""
        partitions = self._assigned()
        start = self._resolve(self._options.starting, partitions, starting=True)
        end = self._resolve(self._options.ending, partitions, starting=False)
        for (topic, partition), offset in start.items():
            if offset > end[topic, partition] and self._options.starting.word is None:
                raise OptionError(
                    f"The resolved start offset {offset} is greater than the resolved end offset {end[topic, partition]} "
                    f"for topic {topic} partition {partition}."
                )
        return self._split(OffsetRange(*tp, start[tp], end[tp]) for tp in sorted(start))

    def initial(self) -> Offsets:
        """Where a new stream begins."""
        self._initial = self._resolve(self._options.starting, self._assigned(), starting=True)
        return self._initial

    def prepare_available_now(self) -> None:
        """From here on records that come are for the next run."""
        self._target = self._lookup(self._assigned(), LATEST)

    def latest(self, start: Offsets, *, everything: bool, now_ms: float) -> Offsets:
        """Where the next micro-batch ends; `start` where there is nothing to read or not enough yet.

        Spark asks only when the batch that ended with `start` is in the checkpoint, so `start` is shown to the group here: its own
        word of a finished batch comes when the next one is planned, and after the last one never.

        Args:
            everything: heed no limit (Trigger.Once).
        """
        self.commit(start)
        if self._is_first_batch(start):
            self._first_batch_done = True
            self._latest = start
            return start
        end = self._available(start)
        self._latest = end
        if everything:
            return end
        if self._target is None and self._too_few(start, end, now_ms):
            return start
        if self._options.max_offsets_per_trigger is None:
            return end
        added = self._lookup([tp for tp in end if tp not in start], EARLIEST)
        return limit_rows(self._options.max_offsets_per_trigger, {**added, **start}, end)

    def reported_latest(self) -> Offsets | None:
        """The newest offsets known, for the query's progress."""
        return self._latest or None

    def stream_ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """What a micro-batch reads."""
        if self._is_first_batch(start):
            return []
        added = [tp for tp in end if tp not in start]
        beginnings = self._lookup(self._existing(added), EARLIEST) if added else {}
        if len(beginnings) < len(added):
            missing = names(tp for tp in added if tp not in beginnings)
            self._data_loss(f"Cannot find initial offsets for partitions {missing}. They may have been deleted.")
        for tp, offset in beginnings.items():
            if offset:
                self._data_loss(f"Added partition {names([tp])} starts from {offset} instead of 0.")
        if gone := [tp for tp in start if tp not in end]:
            self._data_loss(f"Partitions {names(gone)} have been deleted.")
        ranges = []
        for tp in sorted(end):
            begin = start.get(tp, beginnings.get(tp))
            if begin is None:
                continue
            if end[tp] < begin:
                self._data_loss(
                    f"Partition {names([tp])} offset was changed from {begin} to {end[tp]}. This could either be a user error that the "
                    "start offset is set too high and this is the first batch, or the kafka topic-partition is broken, and some data "
                    "may have been missed."
                )
            ranges.append(OffsetRange(*tp, begin, end[tp]))
        return self._split(ranges)

    def commit(self, end: Offsets) -> None:
        """Tell the consumer group how far the query is. For lag tools only: a refusal is logged once and does no harm."""
        if self._options.group_id is None or self._commit_refused or end == self._committed:
            return
        try:
            self._client.commit_offsets(self._options.group_id, end, timeout_ms=COMMIT_TIMEOUT_MS)
            self._committed = dict(end)
        except BarnabasError as error:
            self._commit_refused = True
            logger.warning("offsets of the query are not shown in group %s: %s", self._options.group_id, error)

    def _is_first_batch(self, start: Offsets) -> bool:
        """Whether the batch from `start` is the empty one that only writes down where the query begins."""
        return self._options.starting.moves and not self._first_batch_done and start == self._initial

    def _available(self, start: Offsets) -> Offsets:
        """The end of every partition now, or as it was when Trigger.AvailableNow began."""
        if self._target is not None:
            return dict(self._target)
        partitions = self._assigned(known=start)
        for attempt in range(self._options.fetch_offset_retries):
            end = self._lookup(partitions, LATEST)
            behind = [tp for tp in end if tp in start and end[tp] < start[tp]]
            if not behind:
                return end
            logger.warning("the end of %s lies before what was read (try %d)", names(behind), attempt + 1)
            time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)
        return end

    def _too_few(self, start: Offsets, end: Offsets, now_ms: float) -> bool:
        least = self._options.min_offsets_per_trigger
        if least is None:
            return False
        rows = sum(offset - start.get(tp, 0) for tp, offset in end.items())
        if rows < least and now_ms - self._last_trigger_ms < self._options.max_trigger_delay_ms:
            return True
        self._last_trigger_ms = now_ms
        return False

    def _assigned(self, known: Offsets | None = None) -> list[TopicPartition]:
        """The partitions of the query as they are now.

        `known` are those of a running query: with failOnDataLoss=false a topic of theirs may be gone.
        """
        options = self._options
        if options.pattern is not None:
            pattern = re.compile(options.pattern)
            topics = self._client.topics().items()
            return _partitions_of({name: topic for name, topic in topics if pattern.fullmatch(name) and not topic.is_internal})
        wanted = options.subscribe or tuple(dict.fromkeys(topic for topic, _ in options.assign or ()))
        found = self._find(wanted, known)
        there = _partitions_of(found)
        if options.assign is None:
            return there
        for topic, partition in options.assign:
            if topic in found and partition not in found[topic].partitions:
                raise UnknownTopic(topic, partition)
        return [tp for tp in options.assign if tp in there]

    def _find(self, wanted: tuple[str, ...], known: Offsets | None) -> dict[str, Topic]:
        """The topics by name; missing ones are asked for again, since one that was just made may not be known everywhere."""
        for attempt in range(self._options.fetch_offset_retries):
            if attempt:
                time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)
            found = self._client.topics_by_name(wanted)
            missing = [topic for topic in wanted if topic not in found]
            if not missing:
                break
        for topic in missing:
            if self._options.fail_on_data_loss or not any(topic == t for t, _ in known or ()):
                raise UnknownTopic(topic)
        return found

    def _existing(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        found = self._client.topics_by_name(sorted({topic for topic, _ in partitions}))
        return [(topic, p) for topic, p in partitions if topic in found and p in found[topic].partitions]

    def _resolve(self, position: Position, partitions: list[TopicPartition], *, starting: bool) -> Offsets:
        """A position as offsets."""
        if position.word is not None:
            return self._lookup(partitions, position.word)
        if position.offsets is not None:
            self._check_all_named(position.offsets, partitions, "start" if starting else "end")
            return self._settle(position.offsets)
        if position.timestamps_ms is not None:
            self._check_all_named(position.timestamps_ms, partitions, "timestamp based " + ("starting" if starting else "ending"))
            timestamps = position.timestamps_ms
        else:
            timestamps = dict.fromkeys(partitions, position.timestamp_ms or 0)
        listed = self._client.list_offsets(timestamps)
        offsets = {tp: listed[tp].offset for tp in timestamps}
        for tp, offset in offsets.items():
            if offset == LATEST and not position.latest_on_no_match:
                raise OptionError(
                    f"No offset matched from request of topic-partition {names([tp])} and timestamp {timestamps[tp]}."
                )
        return self._settle(offsets)

    def _check_all_named(self, given: Offsets, partitions: list[TopicPartition], kind: str) -> None:
        if given.keys() != set(partitions):
            raise OptionError(
                f"Partitions specified for Kafka {kind} offsets don't match what are assigned. Maybe topic partitions are created or "
                f"deleted while the query is running. Use -1 for latest, -2 for earliest. "
                f"Specified: {names(given)} Assigned: {names(partitions)}"
            )

    def _settle(self, offsets: Offsets) -> Offsets:
        """Look up those that stand for latest or earliest."""
        open_ones = {tp: offset for tp, offset in offsets.items() if offset in (LATEST, EARLIEST)}
        listed = self._client.list_offsets(open_ones) if open_ones else {}
        return {tp: listed[tp].offset if tp in listed else offset for tp, offset in offsets.items()}

    def _lookup(self, partitions: Iterable[TopicPartition], word: int) -> Offsets:
        wanted = dict.fromkeys(partitions, word)
        if not wanted:
            return {}
        listed = self._client.list_offsets(wanted)
        return {tp: listed[tp].offset for tp in sorted(wanted)}

    def _split(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        return split_ranges(list(ranges), self._options.min_partitions, self._options.max_records_per_partition)

    def _data_loss(self, reason: str) -> None:
        report_data_loss(reason, fail=self._options.fail_on_data_loss)


def _partitions_of(topics: Mapping[str, Topic]) -> list[TopicPartition]:
    return [(name, partition) for name, topic in sorted(topics.items()) for partition in topic.partitions]
