"""Checks the leader epochs in the batches against those in `leader-epoch-checkpoint`.

Owns the decision which of the two is wrong. The CRC does not cover a batch's epoch, so either may be damaged. If one batch
differs from both neighbours, the batch is wrong; if several batches agree, the file is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import NO_LEADER_EPOCH, BatchHeader
from barnabas.storage import checkpoints
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.files import Files
from barnabas.storage.leader_epochs import LeaderEpochs

COSTS = "followers may cut at the wrong offset; nothing is lost, it can be made anew from the batches"


class _Run(Struct):
    """Neighbouring batches of one epoch."""

    epoch: int
    path: Path
    position: int
    first_offset: int
    last_offset: int
    batches: int = 1


class EpochCheck:
    """The leader epochs of one partition: receives each batch, and returns findings at the end."""

    def __init__(self, files: Files, folder: Path) -> None:
        self.path = folder / checkpoints.LEADER_EPOCHS
        self._exists = files.exists(self.path)
        self._fault = ""
        self._runs: list[_Run] = []
        self._entries: list[tuple[int, int]] = []
        try:
            self._entries = checkpoints.read_leader_epochs(files, self.path)
        except CorruptLog as error:
            self._fault = error.reason

    def batch(self, path: Path, position: int, header: BatchHeader) -> None:
        epoch = header.partition_leader_epoch
        if epoch == NO_LEADER_EPOCH:
            return
        run = self._runs[-1] if self._runs else None
        if run is not None and run.epoch == epoch:
            run.last_offset, run.batches = header.last_offset, run.batches + 1
        else:
            self._runs.append(_Run(epoch, path, position, header.base_offset, header.last_offset))

    @property
    def rebuilt(self) -> list[tuple[int, int]] | None:
        """The entries according to the batches; None if their epochs contradict each other."""
        epochs = [run.epoch for run in self._runs]
        return [(run.epoch, run.first_offset) for run in self._runs] if epochs == sorted(set(epochs)) else None

    def findings(self, start_offset: int, end_offset: int, recovery_point: int, *, was_clean: bool) -> Iterator[Finding]:
        """The findings.

        The next start recreates a missing or unreadable file. It finds epochs that began at or after `recovery_point` itself,
        and after a crash also those before the file's first entry. The file has no epochs before the log's `start_offset`,
        although the batches may still exist.
        """
        if self._fault:
            yield self._of_file(f"it cannot be read: {self._fault}", mended=True)
            return
        if not self._exists:
            if self._runs:
                yield self._of_file("the file is missing", mended=True)
            return
        for (epoch, start), (later, later_start) in zip(self._entries, self._entries[1:], strict=False):
            if later <= epoch or later_start <= start:
                yield self._of_file(f"epoch {later} from offset {later_start} does not follow epoch {epoch} from offset {start}")
                return
        if self._entries and self._entries[-1][1] > end_offset:
            yield self._of_file(
                f"epoch {self._entries[-1][0]} begins at offset {self._entries[-1][1]}, past the end {end_offset}",
                mended=True,
            )
            return
        self._forget_below(start_offset)
        yield from self._compare(LeaderEpochs(self._entries), recovery_point, was_clean=was_clean)

    def _forget_below(self, start_offset: int) -> None:
        """Leave out deleted records that are still in the first segment. The file may have advanced with a log start offset
        that was never checkpointed: then its first epoch has no records before it."""
        self._runs = [run for run in self._runs if run.last_offset >= start_offset]
        for run in self._runs[:1]:
            run.first_offset = max(run.first_offset, start_offset)
            if self._entries and self._entries[0][0] == run.epoch:
                run.first_offset = max(run.first_offset, min(self._entries[0][1], run.last_offset))

    def _compare(self, known: LeaderEpochs, recovery_point: int, *, was_clean: bool) -> Iterator[Finding]:
        """The first run of batches that the file contradicts; a run that the next start finds itself counts only if there is
        no other."""
        agree = [known.epoch_of(run.first_offset) == run.epoch == known.epoch_of(run.last_offset) for run in self._runs]
        learnt = ""
        for slot, run in enumerate(self._runs):
            if agree[slot]:
                continue
            told = known.epoch_of(run.first_offset)
            what = f"the batches from offset {run.first_offset} on are of epoch {run.epoch}, it says {told}"
            if self._is_news(slot, known, recovery_point) or (not was_clean and self._is_before(slot)):
                learnt = learnt or what
                continue
            is_alone = run.batches == 1 and all(agree[max(slot - 1, 0) : slot] + agree[slot + 1 : slot + 2])
            if not is_alone or told == run.epoch:
                yield self._of_file(what)
                return
            yield Finding(
                run.path,
                f"the leader epoch is {run.epoch}, where {self.path.name} and its neighbours say {told}",
                "followers may cut at the wrong offset; the records can be read",
                run.position,
                run.first_offset,
                run.last_offset,
                why_not="the CRC does not cover the leader epoch, so what it was is a conclusion",
            )
        if learnt:
            yield self._of_file(learnt, mended=True)

    def _is_news(self, slot: int, known: LeaderEpochs, recovery_point: int) -> bool:
        """Whether this run begins with epochs that are not in the file yet: the file is written later than the first batch of
        an epoch."""
        epochs = [run.epoch for run in self._runs[slot:]]
        return self._runs[slot].first_offset >= recovery_point and epochs[0] > known.latest and epochs == sorted(set(epochs))

    def _is_before(self, slot: int) -> bool:
        """Whether this run begins before the file's first entry, because the file advanced with a log start offset that was not
        checkpointed."""
        latest, start = next(iter(self._entries), (0, 0))
        run, epochs = self._runs[slot], [run.epoch for run in self._runs[: slot + 1]]
        fits = run.first_offset < start and (run.last_offset < start or run.epoch == latest)
        return fits and run.epoch <= latest and epochs == sorted(set(epochs))

    def _of_file(self, what: str, *, mended: bool = False) -> Finding:
        if self.rebuilt is None:
            return Finding(self.path, what, COSTS, why_not="the epochs of the batches contradict each other")
        return Finding(self.path, what, COSTS, repair=Repair.REBUILD_EPOCHS, mended=mended)
