"""The start offset of each leader epoch, by which followers truncate.

Owns the list of (leader epoch, start offset) of a partition, both growing, and its file `leader-epoch-checkpoint`. A leader
epoch's records have the offsets [its start offset, the next entry's start offset).

Source: KIP-101, KIP-279.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The epochs of one partition; `latest` is UNDEFINED_EPOCH before the first record."""

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        self.latest = UNDEFINED_EPOCH  # stored, because each append reads it
        self._set(sorted(entries))

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._entries = entries
        self.latest = entries[-1][0] if entries else UNDEFINED_EPOCH

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Set the start of `epoch` to `start_offset`; drops entries that contradict it."""
        if self._entries and self._entries[-1][0] == epoch:
            return
        before = [entry for entry in self._entries if entry[0] < epoch and entry[1] < start_offset]
        self._set([*before, (epoch, start_offset)])

    def found(self, epoch: int, offset: int) -> None:
        """Add a record of `epoch` at `offset`; drops entries that contradict it: the file may be older than a truncation."""
        if epoch < 0 or self.epoch_of(offset) == epoch:
            return
        entries = [entry for entry in self._entries if (entry[0] <= epoch) == (entry[1] <= offset)]
        self._set(entries)
        if self.epoch_of(offset) != epoch:
            self._set(sorted([*entries, (epoch, offset)]))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch at or below `epoch` and its end offset; undefined ones if unknown."""
        if epoch == UNDEFINED_EPOCH or not self._entries or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        after = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        next_start = self._entries[after][1]
        return (self._entries[after - 1][0] if after else epoch), next_start

    def epoch_of(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written."""
        after = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[after - 1][0] if after else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after `end_offset`, the new end of the log."""
        self._set([entry for entry in self._entries if entry[1] < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs before `start_offset`, the new start of the log; the epoch that contains it begins there."""
        after = bisect_right(self._entries, start_offset, key=lambda entry: entry[1])
        if not after or (self._entries[after - 1][1] == start_offset and after == 1):
            return
        self._set([(self._entries[after - 1][0], start_offset), *self._entries[after:]])
