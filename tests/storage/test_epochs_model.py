"""Leader epochs against the plainest model there is: the epoch of every single record."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.storage.leader_epochs import LeaderEpochs

NEWEST_EPOCH = 12


class Epochs(RuleBasedStateMachine):
    """`of_offset[i]` is the epoch of the record at `start + i`; `begun` an epoch that began at the end and has no record yet."""

    def __init__(self) -> None:
        super().__init__()
        self.start = 0
        self.of_offset: list[int] = []
        self.begun: int | None = None
        self.epochs = LeaderEpochs()
        self.written: list[tuple[int, int]] = []

    @initialize(start=st.integers(0, 100))
    def begin(self, start: int) -> None:
        self.start = start

    @property
    def end(self) -> int:
        return self.start + len(self.of_offset)

    @property
    def latest(self) -> int:
        if self.begun is not None:
            return self.begun
        return self.of_offset[-1] if self.of_offset else -1

    @rule(ahead=st.integers(0, 2), count=st.integers(0, 4))
    def lead(self, ahead: int, count: int) -> None:
        """Records of the latest epoch or a later one; none, where a leader writes nothing."""
        epoch = max(self.latest, 0) + ahead
        if epoch > NEWEST_EPOCH:
            return
        self.epochs.assign(epoch, self.end)
        if count:
            self.of_offset += [epoch] * count
            self.begun = None
        elif epoch > self.latest:
            self.begun = epoch

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        keep = round(share * len(self.of_offset))
        if keep == len(self.of_offset):
            return
        del self.of_offset[keep:]
        self.begun = None
        self.epochs.truncate_from_end(self.end)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        gone = round(share * len(self.of_offset))
        if gone == len(self.of_offset):
            self.begun = self.latest if self.latest >= 0 else None
        del self.of_offset[:gone]
        self.start += gone
        self.epochs.truncate_from_start(self.start)

    @rule()
    def restart(self) -> None:
        self.epochs = LeaderEpochs(self.epochs.entries)

    @rule()
    def write(self) -> None:
        self.written = self.epochs.entries

    @rule()
    def crash(self) -> None:
        """The file may be of long ago; the records are read."""
        if not self.of_offset:
            return
        self.epochs = LeaderEpochs(self.written)
        for offset, epoch in enumerate(self.of_offset, self.start):
            self.epochs.found(epoch, offset)
        self.epochs.truncate_from_end(self.end)
        self.epochs.truncate_from_start(self.start)
        self.begun = None

    @invariant()
    def every_record_has_its_epoch(self) -> None:
        assert self.epochs.latest == self.latest
        for index, epoch in enumerate(self.of_offset):
            assert self.epochs.epoch_of(self.start + index) == epoch

    @invariant()
    def every_epoch_ends_where_the_next_begins(self) -> None:
        present = [*self.of_offset, *([] if self.begun is None else [self.begun])]
        for asked in range(-1, NEWEST_EPOCH + 2):
            found = self.epochs.end_offset_for(asked, self.end)
            if asked < 0 or asked > self.latest:
                assert found == (-1, -1)
            elif asked == self.latest:
                assert found == (asked, self.end)
            else:
                below = [epoch for epoch in present if epoch <= asked]
                assert found == (max(below, default=asked), self.start + len(below))


TestEpochs = Epochs.TestCase
TestEpochs.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
