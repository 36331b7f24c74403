"""The leader epochs of a partition together with their file, `leader-epoch-checkpoint`.

Rules
  1. `write` makes the file durable before a recovery point passes records of an epoch that the file lacks (a flush of everything calls
     it). Until then the epoch is in memory and in the batches: a start after a crash takes the epochs from the batches that it reads.
  2. Only the loop (or the opening thread) changes the epochs; `write` blocks and may run in a thread.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.storage import checkpoints
from barnabas.storage.files import Files
from barnabas.storage.leader_epochs import LeaderEpochs


class EpochFile:
    """`epochs`, and their file in `directory`."""

    __slots__ = ("_directory", "_files", "_written", "epochs")

    def __init__(self, files: Files, directory: Path, epochs: LeaderEpochs, *, is_written: bool) -> None:
        self._files = files
        self._directory = directory
        self._written = epochs.entries if is_written else None
        self.epochs = epochs

    def write(self) -> None:
        """Block until the file has the current epochs; does nothing if it has them already."""
        entries = self.epochs.entries
        if entries == self._written:
            return
        checkpoints.write_leader_epochs(self._files, self._directory / checkpoints.LEADER_EPOCHS, entries)
        self._written = entries
