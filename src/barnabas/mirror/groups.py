"""Committed offsets of groups of the source: which of them to commit here. Pure.

Rules
  1. Only offsets of partitions that follow their source are taken. Offsets of a promoted topic are those of its consumers here; during a
     failback the offsets of the source may not exist here yet.
  2. An offset never lies past the end of the copy: a consumer there would be out of range, and might begin anew.
  3. An offset that was committed here before is not committed again, so that an idle group writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

Partition = tuple[str, int]


class GroupOffsets:
    """Remembers what was committed here."""

    def __init__(self) -> None:
        self._committed: dict[tuple[str, Partition], int] = {}

    def due(self, group: str, theirs: Mapping[Partition, int], ends: Mapping[Partition, int]) -> dict[Partition, int]:
        """The offsets of a group to commit.

        Args:
            theirs: the offsets in the source; -1 for none.
            ends: the ends of the copies, as far as they are known.
        """
        wanted = {each: min(offset, ends[each]) for each, offset in theirs.items() if offset >= 0 and each in ends}
        return {each: offset for each, offset in wanted.items() if self._committed.get((group, each)) != offset}

    def committed(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Remember offsets that were committed here."""
        for each, offset in offsets.items():
            self._committed[group, each] = offset

    def forget(self, topics: set[str]) -> None:
        """Commit the offsets of these topics again: a failback changes them here."""
        if topics:
            self._committed = {key: offset for key, offset in self._committed.items() if key[1][0] not in topics}

    def keep(self, groups: set[str]) -> None:
        """Forget all other groups."""
        self._committed = {key: offset for key, offset in self._committed.items() if key[0] in groups}
