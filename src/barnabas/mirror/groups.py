"""Committed offsets of groups of the source: which of them to commit here. Pure.

Rules
  1. Only offsets of partitions that follow their source are taken. Offsets of a promoted topic are those of its consumers here; during a
     failback the offsets of the source may not exist here yet.
  2. An offset never lies past the end of the copy: a consumer there would be out of range, and might begin anew.
  3. An offset is committed once, so that an idle group writes nothing. An offset that goes back in the source
     goes back here.
  4. Leader epochs of the source are not taken: they count the elections of another cluster, and a consumer here would wait for them.
  5. A group that is deleted in the source stays here, until its offsets expire: it may be what a failover needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Partition = tuple[str, int]
NAMED = 5  # groups in a reason
WITHOUT_OFFSETS = {"share": "share groups"}  # types of groups whose state is not in committed offsets


class Committed(NamedTuple):
    """An offset with the text that the consumer stored beside it."""

    offset: int
    metadata: str = ""


class GroupOffsets:
    """Remembers what was committed here."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[Partition, Committed]] = {}

    def knows(self, group: str) -> bool:
        """Whether `committed` was called for the group."""
        return group in self._committed

    def due(self, group: str, theirs: Mapping[Partition, Committed], ends: Mapping[Partition, int]) -> dict[Partition, Committed]:
        """The offsets of a group to commit.

        Args:
            theirs: the offsets in the source; -1 for none.
            ends: the ends of the copies, as far as they are known.
        """
        known = self._committed.get(group, {})
        wanted = {
            each: found._replace(offset=min(found.offset, ends[each]))
            for each, found in theirs.items()
            if found.offset >= 0 and each in ends
        }
        return {each: found for each, found in wanted.items() if known.get(each) != found}

    def committed(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        """Remember offsets that were committed here."""
        self._committed.setdefault(group, {}).update(offsets)

    def forget(self, topics: set[str]) -> None:
        """Commit the offsets of these topics again: a failback changes them here."""
        if topics:
            self._committed = {
                group: {each: found for each, found in offsets.items() if each[0] not in topics}
                for group, offsets in self._committed.items()
            }

    def keep(self, groups: set[str]) -> None:
        """Forget all other groups."""
        self._committed = {group: offsets for group, offsets in self._committed.items() if group in groups}


def summary(groups: Iterable[str]) -> str:
    """Some names and the number of the rest."""
    named = sorted(groups)
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more
