"""The room that the indexes of keys take in their folder.

Owns the removal of indexes. Each topic has a folder of its own, whose time of change is that of its last use. When the files of all
topics would take more than MAX_KEY_INDEX_BYTES, the index that was used least recently goes first: so do the indexes of deleted topics.

Rules
  1. Only files with the names of an index are removed, since a user chooses the folder.
  2. Files are counted at the first stripe that a scan writes, and again when this room is used up. Scans that write at the same time
     may pass the limit by what one of them writes.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from barnabas.limits import MAX_KEY_INDEX_BYTES

SUFFIX, UNFINISHED_SUFFIX = ".keys", ".keys.tmp"
UNFINISHED_FOR_S = 3600  # an older unfinished file was left by a kill


class IndexSpace:
    """The room in a folder of indexes.

    Args:
        keeps: the folder of the index that is written, which is not removed.
    """

    def __init__(self, folder: Path, *, keeps: Path, limit: int = MAX_KEY_INDEX_BYTES) -> None:
        self._folder, self._keeps, self._limit = folder, keeps, limit
        self._left = 0

    def take(self, size: int) -> None:
        """Use some bytes, and remove other indexes where they are in the way. Raises OSError if there is no room."""
        if size > self._left:
            self._left = self._limit - self._used(needed=size)
        if size > self._left:
            raise OSError(errno.EDQUOT, f"the indexes of keys may take {self._limit} bytes", str(self._folder))
        self._left -= size

    def _used(self, *, needed: int) -> int:
        """The bytes of all indexes, after the removal of those that were used least recently."""
        sizes = {each: _size(each) for each in _folders(self._folder)}
        used = sum(sizes.values())
        for folder in sorted(sizes, key=_last_use):
            if used + needed <= self._limit:
                break
            if folder != self._keeps:
                _remove(folder)
                used -= sizes[folder]
        return used


def _folders(folder: Path) -> list[Path]:
    return list({each.parent.parent for each in _files(folder, "*/[0-9]*")})


def _files(folder: Path, partitions: str = "[0-9]*") -> Iterable[Path]:
    for suffix in (SUFFIX, UNFINISHED_SUFFIX):
        yield from folder.glob(f"{partitions}/*{suffix}")


def _size(folder: Path) -> int:
    """The bytes of a topic's index, without files that a kill left: these are removed."""
    total = 0
    oldest = time.time() - UNFINISHED_FOR_S
    for path in _files(folder):
        with suppress(OSError):
            status = path.stat()
            if path.name.endswith(UNFINISHED_SUFFIX) and status.st_mtime < oldest:
                path.unlink()
            else:
                total += status.st_size
    return total


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _remove(folder: Path) -> None:
    for path in _files(folder):
        with suppress(OSError):
            path.unlink()
    for partition in [*folder.glob("[0-9]*"), folder]:
        with suppress(OSError):  # it has other files, or a scan writes to it
            os.rmdir(partition)
