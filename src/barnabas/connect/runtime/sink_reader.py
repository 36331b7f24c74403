"""Reads the records of a sink's partitions batch by batch, with the offsets of a consumer group.

Rules
  1. The offsets are those of the consumer group `connect-NAME`, so lag tools see them, and any worker goes on from them.
  2. Before a batch is given away, its end is committed beside its beginning, as the metadata of the offset. After a kill the batch comes
     again with the same records.
  3. A sink that gathers records says up to which offset they are in its target. Nothing behind that is committed.
  4. A topic that does not exist yet is waited for, and one that comes later is read from then on.
  5. A topic with another id, and one that ends before the position of the task, is another one of the same name: the task ends, and
     its next start reads the topic from its beginning. No record of it is given before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import UnknownTopic
from barnabas.client.results import TopicPartition
from barnabas.connect.errors import ConnectError
from barnabas.pipelines.offsets import OffsetRange, Offsets, limit_rows
from barnabas.pipelines.options import ReadOptions
from barnabas.pipelines.planner import Planner
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range

MOST_ROWS = 100_000  # of a batch
LOOK_S = 1.0  # between two looks for topics that are missing
SHRUNK_S = 3.0  # a log that is shorter for so long is another one
PLAN = "end="  # metadata of an offset: the batch that begins there ends here
Ranges = Mapping[TopicPartition, tuple[int, int]]


class BegunAnew(ConnectError):
    """A topic is another one than that to which the positions of a task belong.

    Args:
        begins: the offsets at which the partitions of the task begin now.
        reason: how the task knows.
    """

    def __init__(self, begins: Offsets, reason: str) -> None:
        super().__init__(begins, reason)
        self.begins, self.reason = begins, reason

    def __str__(self) -> str:
        return f"{self.reason}; it is read from its beginning"


class SinkReader:
    """See the module.

    Args:
        options: of a reader that subscribes to topics, or to a pattern.
        is_mine: whether a partition belongs to this task.
        own: offsets that the target has recorded; they go before those of the group.
        pre_commit: `Sink.pre_commit`.
    """

    def __init__(
        self, options: ReadOptions, group: str, is_mine: Callable[[TopicPartition], bool], own: Mapping[TopicPartition, int],
        pre_commit: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]],
    ) -> None:  # fmt: skip
        self._options, self._group, self._is_mine, self._own = options, group, is_mine, own
        self._client = BlockingClient(options.client)
        self._planner: Planner | None = Planner(options, self._client) if options.pattern is not None else None
        self._there: frozenset[str] = frozenset()
        self._looked_s = -LOOK_S
        self._pre_commit = pre_commit
        self._planned: Offsets | None = None
        self._ids: dict[str, str] = {}
        self._shrunk: dict[TopicPartition, float] = {}  # since when a log ends before the position
        self._held: Offsets = {}  # what may be committed of places whose records are not all in the target
        self.positions: Offsets = {}

    def close(self) -> None:
        """Release the connections."""
        self._client.close()

    def next(self) -> tuple[pa.Table, Ranges] | None:
        """The next batch with its ranges of offsets; None if there are no records. The same one until `done` is called."""
        if self._planned is None:
            self._planned = self._plan()
            if self._planned is None:
                return None
            self._commit()
        assert self._planner is not None
        ranges = [each for each in self._planner.stream_ranges(self.positions, self._planned) if each.size]
        batches = [batch for each in ranges for batch in read_range(self._read_task(each))]
        if not batches:
            self.done()
            return None
        bounds = {(each.topic, each.partition): (each.start, each.end) for each in ranges}
        return pa.Table.from_batches(batches).combine_chunks(), bounds

    def _read_task(self, part: OffsetRange) -> ReadTask:
        options = self._options
        return ReadTask(
            part, options.client, include_headers=True, fail_on_data_loss=False, poll_timeout_ms=options.poll_timeout_ms,
            topic_id=self._ids.get(part.topic, ""),
        )  # fmt: skip

    def done(self) -> None:
        """The batch is with the sink: commit what may be committed, and plan the next one."""
        self.positions = {**self.positions, **(self._planned or {})}
        self._commit_gathered(leaves_last=True)
        self._planned = self._plan()
        self._commit()

    def _commit_gathered(self, *, leaves_last: bool) -> None:
        """Commit what the sink has brought to its target, until it has no more.

        Args:
            leaves_last: whether another commit follows, that of the next plan.
        """
        while True:
            given = self._pre_commit(self.positions)
            held = {place: given[place] for place, end in self.positions.items() if given.get(place, end) < end}
            if held == self._held:
                return
            self._held = held
            if leaves_last and not held:
                return
            self._commit()

    def wait(self) -> None:
        """Wait for records, for about a second, and commit what the sink has brought to its target meanwhile."""
        self._commit_gathered(leaves_last=False)
        if self._planner is None or not self._planner.wait_for_records(self.positions):
            time.sleep(LOOK_S / 5)

    def _commit(self) -> None:
        begun = {place: end for place, end in (self._planned or {}).items() if end > self.positions.get(place, 0)}
        texts = {place: f"{PLAN}{end}" for place, end in begun.items() if place not in self._held}
        if self.positions or begun:
            self._client.commit_offsets(self._group, {**dict.fromkeys(begun, 0), **self.positions, **self._held}, texts)

    def _plan(self) -> Offsets | None:
        """The end of the next batch; None if there are no records. One that was begun before a kill comes first."""
        planned = self._look()
        if planned is not None or self._planner is None:
            return planned
        ends = {place: end for place, end in self._ends(self._planner).items() if self._is_mine(place)}
        start = {place: self.positions.get(place, 0) for place in ends}
        self._check_same(self._planner, ends, start)
        if all(end <= start[place] for place, end in ends.items()):
            return None
        return limit_rows(MOST_ROWS, start, ends)

    def _check_same(self, planner: Planner, ends: Offsets, start: Offsets) -> None:
        """Raises BegunAnew; see rule 5."""
        now_s = time.monotonic()
        for topic in planner.replaced(self._ids):
            raise BegunAnew(self._begins(planner, topic), f"the topic {topic} was deleted and created again")
        self._ids = {topic: planner.topic_ids.get(topic) or known for topic, known in {**planner.topic_ids, **self._ids}.items()}
        self._shrunk = {place: self._shrunk.get(place, now_s) for place, end in ends.items() if end < start[place]}
        for place, since_s in self._shrunk.items():
            if now_s - since_s >= SHRUNK_S:
                reason = (
                    f"the topic {place[0]} is another one, because its partition {place[1]} ends before the offset {start[place]}"
                )
                raise BegunAnew(self._begins(planner, place[0]), reason)

    def _begins(self, planner: Planner, topic: str) -> Offsets:
        """Where the partitions of a topic begin that are this task's; other tasks look at theirs."""
        return {place: offset for place, offset in planner.initial().items() if place[0] == topic and self._is_mine(place)}

    def begin_anew(self, begins: Offsets) -> None:
        """Let the group begin at these offsets."""
        self._client.commit_offsets(self._group, begins, {})

    def _ends(self, planner: Planner) -> Offsets:
        try:
            return planner.latest(self.positions, everything=True, now_ms=time.monotonic() * 1000)
        except UnknownTopic:  # it was deleted; the next look finds out
            self._looked_s, self._there = -LOOK_S, frozenset()
            return {}

    def _look(self) -> Offsets | None:
        """Take in partitions that were not known. Returns the end of a batch that was begun in them before a kill."""
        wanted = self._options.subscribe
        now_s = time.monotonic()
        if wanted is not None and len(self._there) < len(set(wanted)) and now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            there = frozenset(self._client.topics_by_name(list(wanted)))
            if there != self._there:
                self._there = there
                options = replace(self._options, subscribe=tuple(sorted(there)))
                self._planner = Planner(options, self._client) if there else None
                self.positions, self._held = (
                    {place: offset for place, offset in each.items() if place[0] in there}
                    for each in (self.positions, self._held)
                )
                return self._begin(self._planner) if self._planner is not None else None
        if wanted is None and self._planner is not None and not self.positions:
            return self._begin(self._planner)
        return None

    def _begin(self, planner: Planner) -> Offsets | None:
        initial = planner.initial()
        new = [each for each in initial if self._is_mine(each) and each not in self.positions]
        known = self._client.committed_offsets(self._group, new) if new else {}
        found = {place: known[place].offset if known[place].offset >= 0 else initial[place] for place in new}
        found |= {place: offset for place, offset in self._own.items() if place in found}
        self.positions = {**self.positions, **found}
        planned = {
            place: int(each.metadata.removeprefix(PLAN)) for place, each in known.items() if each.metadata.startswith(PLAN)
        }
        planned = {place: end for place, end in planned.items() if end > self.positions[place]}
        if not planned and any(known[place].offset != found[place] for place in self._own if place in found):
            self._commit()  # tools that show the lag look at the group, and the target is ahead of it
        return {**self.positions, **planned} if planned else None
