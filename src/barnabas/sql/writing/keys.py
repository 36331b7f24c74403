"""Which keys a table has: to refuse a second row of a primary key.

Owns the live keys of some topics, which it follows: a look reads only what was written since the last. Beyond MAX_SQL_LIVE_KEYS a topic
is not remembered, and its keys are looked up in the table.

The look and the write are not one step. Two sessions that insert the same key at the same moment can both succeed; the later row stays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from barnabas import limits
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.tables.formats import Raw
from barnabas.tables.scan import VALUE, Columns
from barnabas.tables.source import Bounds, Snapshot, TopicSource
from barnabas.tables.table import Table

MOST_TOPICS = 1_000  # that are followed
_COLUMNS = Columns(Raw("_key"), Raw("value"))


class _Followed:
    """The live keys of one topic, up to some offsets."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.positions: dict[int, int] = {}
        self.keys: set[bytes] = set()
        self.is_too_large = False

    def follow(self, source: TopicSource, snapshot: Snapshot, room: int) -> None:
        """Read up to a snapshot; give up if there are more keys than `room`."""
        parts = {
            partition: Bounds(max(self.positions.get(partition, 0), bounds.start), bounds.end)
            for partition, bounds in snapshot.partitions.items()
            if bounds.end > self.positions.get(partition, 0)
        }
        if not parts:
            return
        table = Table(source, _COLUMNS, Snapshot(snapshot.topic, snapshot.topic_id, parts))
        for batch in table.batches(["_key", VALUE]):
            for key, is_live in zip(batch.column("_key").to_pylist(), batch.column(VALUE).is_valid().to_pylist(), strict=True):
                if key is None:
                    continue
                (self.keys.add if is_live else self.keys.discard)(key)
            if len(self.keys) > room:
                self.is_too_large, self.keys = True, set()
                return
        for partition, bounds in snapshot.partitions.items():
            self.positions[partition] = max(bounds.end, self.positions.get(partition, 0))


class LiveKeys:
    """The keys of the topics that sessions of an engine insert into."""

    def __init__(self) -> None:
        self._topics: dict[str, _Followed] = {}
        self._lock = threading.Lock()

    def existing(self, relation: TopicRelation, source: TopicSource, snapshot: Snapshot, keys: Sequence[bytes]) -> set[bytes]:
        """Those of `keys` that a row has at the snapshot.

        Args:
            source: of the caller, whose rights count.
        """
        followed = self._followed(f"{snapshot.topic} {snapshot.topic_id}")
        with followed.lock:
            if not followed.is_too_large:
                followed.follow(source, snapshot, self._room(followed))
            if not followed.is_too_large:
                return {key for key in keys if key in followed.keys}
        return _looked_up(relation, source, snapshot, keys)

    def _followed(self, name: str) -> _Followed:
        with self._lock:
            found = self._topics.get(name)
            if found is None:
                if len(self._topics) >= MOST_TOPICS:
                    self._topics.clear()
                found = self._topics[name] = _Followed()
            return found

    def _room(self, followed: _Followed) -> int:
        others = sum(len(each.keys) for each in list(self._topics.values()) if each is not followed)
        return max(0, limits.MAX_SQL_LIVE_KEYS - others)


def _looked_up(relation: TopicRelation, source: TopicSource, snapshot: Snapshot, keys: Iterable[bytes]) -> set[bytes]:
    """A scan for the keys."""
    table = Table(source, _COLUMNS, snapshot, newest=True)
    wanted = pa.array(list(keys), pa.binary())
    found: set[bytes] = set()
    for batch in table.batches(["_key"], pc.field("_key").isin(wanted)):
        found.update(key for key in batch.column("_key").to_pylist() if key is not None)
    return found
