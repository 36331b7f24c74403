"""The decisions of the driver: the partitions of a query, its start, the end of each micro-batch, and the range of each task.

Owns the client of the driver. Does not depend on Spark; the readers in `source` pass its results on.

Rules
  1. The query reads a partition that was added later from its earliest offset: records may have been written before the query
     saw the partition.
  2. A batch goes from the end of the last batch to the result of `latest`: both are in the checkpoint, so Spark can repeat the
     batch. If no topic is listed, the position stays unchanged: without a position the query would read everything again.
  3. Every loss of records is reported to `_data_loss`: it raises an error, or logs a warning with failOnDataLoss=false.
  4. The ids of topics are in the checkpoint beside the offsets. A topic with another id was deleted and created again: its old
     offsets are invalid, and the query reads it from its earliest record on.

Ugly: the checkpoint holds the end of each batch but not the start of the first one, and Spark does not tell a Python source the
location of the checkpoint. A query may start at a moving position (latest). If its first batch is repeated after a crash, the
batch would begin later and lose the records in between. So the first batch of such a query is empty, and its end records the
start.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from barnabas.client import operations
from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import PartitionError
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.pipelines.assignment import Assignment
from barnabas.pipelines.bounds import EVERYTHING, Bounds
from barnabas.pipelines.data_loss import report_data_loss
from barnabas.pipelines.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Offsets,
    OptionError,
    TopicPartition,
    limit_bytes,
    limit_rows,
    names,
    split_ranges,
)
from barnabas.pipelines.options import ReadOptions

logger = logging.getLogger(__name__)

COMMIT_TIMEOUT_MS = 5_000  # only lag tools use the offsets, so a query must not wait long for a missing coordinator
COMMIT_AGAIN_S = 60.0  # wait after a failed commit before the next one


class Planner:
    """The driver's side of one query.

    Args:
        options: the options of the query.
        client: the client for its requests. None: the planner creates one from the options, and `close` closes it.
    """

    def __init__(self, options: ReadOptions, client: BlockingClient | None = None) -> None:
        self._options = options
        self._client = client or BlockingClient(options.client)
        self._assignment = Assignment(options, self._client)
        self._target: Offsets | None = None  # the end of Trigger.AvailableNow
        self._target_fits = False  # whether the target was compared with the query's first position
        self._initial: Offsets | None = None  # the result of `initial` in this process
        self._first_batch_done = False  # only used if the query starts at a moving position, see Ugly in the module's docstring
        self._latest: Offsets = {}  # the cluster's last response
        self._last_trigger_ms = -math.inf  # on the monotonic clock, which starts at the machine's boot
        self._committed: Offsets = {}  # the last committed offsets
        self._commit_not_before_s = 0.0  # on the monotonic clock

    def close(self) -> None:
        self._client.close()

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """The ids of the query's topics in the last listing."""
        return self._assignment.topic_ids

    def batch_ranges(self, bounds: Bounds = EVERYTHING) -> list[OffsetRange]:
        """The ranges of a batch query within `bounds`."""
        partitions = self._assignment.partitions()
        if self._options.resolve_in_tasks:
            return [OffsetRange(*tp, EARLIEST, LATEST) for tp in sorted(partitions)]
        start = self._assignment.resolve(self._options.starting, partitions, starting=True)
        end = self._assignment.resolve(self._options.ending, partitions, starting=False)
        end |= self._waiting(start, {tp for tp in end if self._ends_where_it_is_now(tp)}, end)
        for (topic, partition), offset in start.items():
            if offset > end[topic, partition] and self._options.starting.word is None:
                raise OptionError(
                    f"The resolved start offset {offset} is greater than the resolved end offset {end[topic, partition]} "
                    f"for topic {topic} partition {partition}."
                )
        return self._split(self._within(bounds, [OffsetRange(*tp, start[tp], end[tp]) for tp in sorted(start)]))

    def _ends_where_it_is_now(self, tp: TopicPartition) -> bool:
        ending = self._options.ending
        return (ending.word or ending.topics.get(tp[0]) or (ending.offsets or {}).get(tp)) == LATEST

    def _waiting(self, start: Offsets, partitions: Iterable[TopicPartition], end: Offsets) -> Offsets:
        """The `partitions` with a start after the last stable offset but not after the log end: an open transaction blocks
        readers there.

        There is nothing to read in them yet, so their ranges are empty.
        """
        beyond = [tp for tp in partitions if start.get(tp, 0) > end[tp]]
        written = self._assignment.written(beyond) if self._options.client.read_committed else {}
        return {tp: start[tp] for tp in beyond if start[tp] <= written.get(tp, -1)}

    def _within(self, bounds: Bounds, ranges: list[OffsetRange]) -> list[OffsetRange]:
        kept = [r for r in ranges if bounds.has(r.topic, r.partition)]
        newer = {}
        if bounds.first_time_ms is not None:
            newer = self._assignment.at_timestamps({(r.topic, r.partition): bounds.first_time_ms for r in kept if r.size > 0})
        cut = []
        for r in kept:
            first = newer.get((r.topic, r.partition), r.start)
            start = r.end if first == LATEST else max(r.start, first, bounds.first_offset)
            cut.append(OffsetRange(r.topic, r.partition, start, min(r.end, bounds.end_offset)))
        return cut

    def initial(self) -> Offsets:
        """The start of a new stream: the same at each call, since Spark calls it for the end of the first batch and again for
        its rows."""
        if self._initial is None:
            self._initial = self._assignment.looked_up(
                self._assignment.partitions, lambda there: self._assignment.resolve(self._options.starting, there, starting=True)
            )
        return self._initial

    def prepare_available_now(self) -> None:
        """Fix the end of this run; later records belong to the next run."""
        self._target = self._ends(lambda: self._assignment.partitions(may_be_gone=True))

    def latest(self, start: Offsets, *, everything: bool, now_ms: float, start_ids: Mapping[str, str] | None = None) -> Offsets:
        """The end of the next micro-batch; `start` if there are no records or too few.

        Spark calls this only after the batch that ended with `start` is in the checkpoint, so this commits `start` to the
        group. Spark's own call for a finished batch comes only when it plans the next batch, so never after the last one.

        Args:
            everything: ignore limits (Trigger.Once).
            start_ids: the ids of the topics at `start`.
        """
        self.commit(start)
        if self._is_first_batch(start):
            self._first_batch_done = True
            self._latest = start
            return start
        end = self._available(start, start_ids or {}) or start
        self._latest = end
        if everything:
            return end
        if self._target is None and self._too_few(start, end, now_ms):
            return start
        start = self._without_replaced(start, start_ids or {}, self.topic_ids)
        return self._limited(start, end)

    def wait_for_records(self, positions: Offsets) -> bool:
        """Wait until there are records behind the positions, as long as the option allows; whether there may be."""
        if not self._options.wait_for_records_ms or not positions or self._target is not None:
            return False
        client = self._client
        try:
            client.run(operations.wait_for_records(client.config, client.cluster, positions, self._options.wait_for_records_ms))
        except BarnabasError as error:
            logger.debug("event=not-waited error=%r", str(error))  # the next look reports it, if it stays
        return True

    def _limited(self, start: Offsets, end: Offsets) -> Offsets:
        rows, size = self._options.max_offsets_per_trigger, self._options.max_bytes_per_trigger
        if rows is None and size is None:
            return end
        start = {**self._assignment.beginnings(tp for tp in end if tp not in start), **start}
        if rows is not None:
            end = limit_rows(rows, start, end)
        return end if size is None else limit_bytes(size, start, end, self._bytes_per_offset)

    def _bytes_per_offset(self, tp: TopicPartition, offset: int) -> float | None:
        try:
            try:
                return self._assignment.bytes_per_offset(tp, offset)
            except PartitionError as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
            # The records are gone. The task will report it, and other partitions may have records.
            earliest = self._assignment.beginnings([tp]).get(tp, offset)
            return self._assignment.bytes_per_offset(tp, earliest) if earliest > offset else None
        except UnknownTopic:
            return None  # the topic was deleted after the listing; the task will report it

    def replaced(self, start_ids: Mapping[str, str], ids: Mapping[str, str] | None = None) -> list[str]:
        """The topics that were deleted and created again: their ids (in `ids`, by default the current ones) differ from those
        at the start."""
        ids = self.topic_ids if ids is None else ids
        return sorted(topic for topic, old in start_ids.items() if old and ids.get(topic) and ids[topic] != old)

    def _without_replaced(self, start: Offsets, start_ids: Mapping[str, str], ids: Mapping[str, str]) -> Offsets:
        replaced = self.replaced(start_ids, ids)
        for topic in replaced:
            self._data_loss(f"Topic {topic} was deleted and created again: its id was {start_ids[topic]} and is {ids[topic]}.")
        return {tp: offset for tp, offset in start.items() if tp[0] not in replaced} if replaced else start

    def reported_latest(self) -> Offsets | None:
        """The newest known offsets, for the query's progress."""
        return self._latest or None

    def stream_ranges(
        self, start: Offsets, end: Offsets, start_ids: Mapping[str, str] | None = None, end_ids: Mapping[str, str] | None = None
    ) -> list[OffsetRange]:
        """The ranges of a micro-batch, with the ids of the topics at its start and at its end."""
        if self._is_first_batch(start):
            return []
        if start == self._initial:
            # For a repeated batch, these offsets were just looked up. Partitions created after the first planning come in a later
            # batch.
            start = {tp: offset for tp, offset in start.items() if tp in end}
        start = self._without_replaced(start, start_ids or {}, end_ids or {})
        added = [tp for tp in end if tp not in start]
        beginnings = self._assignment.beginnings(added)
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
        """Commit the query's position to the consumer group. Only lag tools use it, so a failure is only logged, and the commit
        is retried after some time."""
        if self._options.group_id is None or end == self._committed or time.monotonic() < self._commit_not_before_s:
            return
        try:
            self._client.commit_offsets(self._options.group_id, end, timeout_ms=COMMIT_TIMEOUT_MS)
            self._committed = dict(end)
        except BarnabasError as error:
            self._commit_not_before_s = time.monotonic() + COMMIT_AGAIN_S
            logger.warning("event=group-offsets-not-shown group=%r error=%r", self._options.group_id, str(error))

    def _is_first_batch(self, start: Offsets) -> bool:
        """Whether the batch from `start` is the first, empty one, which only records the start of the query."""
        return self._options.starting.moves and not self._first_batch_done and start == self._initial

    def _available(self, start: Offsets, ids: Mapping[str, str]) -> Offsets:
        """The end of every partition: the current one, or with Trigger.AvailableNow the one from the start of the run. The
        start of the query may be later than that."""
        if self._target is not None:
            target = self._target = self._fitting(self._target, start, ids)
            initial = self._initial if self._options.starting.moves and self._initial else {}
            begun = {tp: max(offset, target.get(tp, offset)) for tp, offset in start.items() if initial.get(tp) == offset}
            end = {**target, **begun}
            return {**end, **self._waiting(start, end, end)}
        for attempt in range(self._options.fetch_offset_retries):
            end = self._ends(lambda: self._assignment.partitions(start, ids))
            behind = [tp for tp in end if tp in start and end[tp] < start[tp] and not self._is_replaced(tp[0], ids)]
            if not behind:
                return end
            logger.warning("event=end-before-what-was-read partitions=%r attempt=%d", names(behind), attempt + 1)
            self._assignment.agree(topic for topic, _ in behind)
            time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)
        with suppress(UnknownTopic):  # the topic was deleted in the meantime; the next batch will report it
            end |= self._assignment.lookup(behind, LATEST)
            end |= self._waiting(start, behind, end)
        return end

    def _fitting(self, target: Offsets, start: Offsets, ids: Mapping[str, str]) -> Offsets:
        """The target. If a broker with old metadata gave an end before the query's position, it is looked up again."""
        if not self._target_fits:
            self._target_fits = True
            if any(tp not in target or target[tp] < offset or self._is_replaced(tp[0], ids) for tp, offset in start.items()):
                return self._ends(lambda: self._assignment.partitions(start, ids, may_be_gone=True))
        return target

    def _is_replaced(self, topic: str, ids: Mapping[str, str]) -> bool:
        return bool(self.replaced({topic: ids.get(topic, "")}))

    def _ends(self, partitions: Callable[[], list[TopicPartition]]) -> Offsets:
        return self._assignment.looked_up(partitions, lambda there: self._assignment.lookup(there, LATEST))

    def _too_few(self, start: Offsets, end: Offsets, now_ms: float) -> bool:
        least = self._options.min_offsets_per_trigger
        if least is None:
            return False
        rows = sum(offset - start.get(tp, 0) for tp, offset in end.items())
        if rows < least and now_ms - self._last_trigger_ms < self._options.max_trigger_delay_ms:
            return True
        self._last_trigger_ms = now_ms
        return False

    def _split(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        return split_ranges(list(ranges), self._options.min_partitions, self._options.max_records_per_partition)

    def _data_loss(self, reason: str) -> None:
        report_data_loss(reason, fail=self._options.fail_on_data_loss)
