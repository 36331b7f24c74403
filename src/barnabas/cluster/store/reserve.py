"""Room on the disk that is kept for the metadata, so that a full disk can be dealt with.

What frees a disk (deleting a topic, shortening its retention) is itself a change of the metadata, and SQLite needs room to write it. So a
file of zeros beside the database is given up when that room is missing, and taken again once there is some.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

RESERVED_BYTES = 1024 * 1024  # hundreds of changes; SQLite writes a page of 4 kB or two for each


class Reserve:
    """The file `path`, as long as there is room for it."""

    def __init__(self, path: Path, size_bytes: int = RESERVED_BYTES) -> None:
        self.path = path
        self._size_bytes = size_bytes
        self.is_there = False

    def take(self) -> None:
        """Have the file; without room, do without."""
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
        """Free the room; whether there was any."""
        if not self.is_there:
            return False
        self.is_there = False
        with suppress(OSError):
            self.path.unlink()
        return True
