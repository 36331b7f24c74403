"""Disk space that is reserved for the metadata, so that an operator can free a full disk.

Freeing a disk (deleting a topic, shortening its retention) is itself a change of the metadata, and SQLite needs space to write
it. So there is a file of zeros beside the database. It is removed when that space is missing, and created again once there is
some.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

RESERVED_BYTES = 1024 * 1024  # enough for hundreds of changes: SQLite writes one or two pages of 4 kB for each


class Reserve:
    """The file `path`, if there is space for it."""

    def __init__(self, path: Path, size_bytes: int = RESERVED_BYTES) -> None:
        self.path = path
        self._size_bytes = size_bytes
        self.is_there = False

    def take(self) -> None:
        """Create the file, if there is space."""
        if self.is_there:
            return
        try:
            fileno = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return
        try:
            if os.fstat(fileno).st_size < self._size_bytes:
                os.posix_fallocate(fileno, 0, self._size_bytes)
            self.is_there = True
        except OSError:
            with suppress(OSError):
                self.path.unlink()
        finally:
            os.close(fileno)

    def give_up(self) -> bool:
        """Remove the file; returns whether it existed."""
        if not self.is_there:
            return False
        self.is_there = False
        with suppress(OSError):
            self.path.unlink()
        return True
