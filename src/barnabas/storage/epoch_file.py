"""The leader epochs of a partition together with their file.

Owns writing `leader-epoch-checkpoint` after each change, and whether it is on the disk yet.

Rules
  1. Changes and `save` are the loop's (or the opening thread's); `sync` blocks and runs in a thread. It writes nothing.
  2. The file may be behind the log after a crash: recovery assigns the epochs of the batches it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from barnabas.errors import LogDirFailed
from barnabas.storage import checkpoints
from barnabas.storage.files import Files, sync_file
from barnabas.storage.leader_epochs import LeaderEpochs


class EpochFile:
    """`epochs`, and the file that holds them in `directory`."""

    __slots__ = ("_directory", "_files", "_unsynced", "epochs")

    def __init__(self, files: Files, directory: Path, epochs: LeaderEpochs) -> None:
        self._files = files
        self._directory = directory
        self._unsynced = False
        self.epochs = epochs

    def assign(self, leader_epoch: int, offset: int) -> None:
        """Records of `leader_epoch` begin at `offset`."""
        self.epochs.assign(leader_epoch, offset)
        self.save()

    def truncate_from_start(self, offset: int) -> None:
        self.epochs.truncate_from_start(offset)
        self.save()

    def truncate_from_end(self, offset: int) -> None:
        self.epochs.truncate_from_end(offset)
        self.save()

    def save(self) -> None:
        """Write the epochs down; the next `sync` makes that durable.

        Raises:
            LogDirFailed: the disk does not work.
        """
        try:
            checkpoints.write_leader_epochs(self._files, self._directory / checkpoints.LEADER_EPOCHS, self.epochs.entries)
        except OSError as error:
            raise LogDirFailed(str(self._directory.parent), str(error)) from error
        self._unsynced = True

    def sync(self, is_gone: Callable[[], bool]) -> None:
        """Block until what was saved is on the disk.

        Args:
            is_gone: whether the folder was removed meanwhile, so that a failure means nothing.

        Raises:
            LogDirFailed: the disk does not work.
        """
        if not self._unsynced:
            return
        self._unsynced = False
        try:
            sync_file(self._files, self._directory / checkpoints.LEADER_EPOCHS)
            self._files.sync_directory(self._directory)
        except OSError as error:
            if is_gone():
                return
            self._unsynced = True
            raise LogDirFailed(str(self._directory.parent), str(error)) from error
