"""The real files on a disk that fails or fills up when the test says so.

Each fault is for one folder, so that log directories can fail independently. Successful operations change the real files: after
`heal`, or with other files, a broker can start again on the same folder.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from barnabas.storage.directory import ROOM_FILE
from barnabas.storage.files import Buffer, OsFiles

WRITES = frozenset({"pwrite", "pwritev", "truncate", "replace_file", "create", "make_directory", "rename", "reserve", "unlink"})
SYNCS = frozenset({"sync", "sync_directory"})
READS = frozenset({"pread", "read_file"})
TAKING_ROOM = frozenset({"pwrite", "pwritev", "replace_file", "create", "make_directory", "reserve"})


class FailingFiles(OsFiles):
    """`OsFiles` with faults; safe to use from several threads."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._faults: list[tuple[frozenset[str], Path, int]] = []
        self._lock = Lock()
        self._freed_by_removal = False
        self.counts: dict[str, int] = {}  # operation -> number of calls, including failed ones

    def fail(self, operations: frozenset[str], folder: Path, number: int = errno.EIO) -> None:
        """From now on `operations` on files in `folder` fail with `number`; a failing write may have written half of its
        bytes."""
        self._faults.append((operations, folder, number))

    def fill(self, folder: Path, *, until_removal: bool = False) -> None:
        """`folder` is full from now on; removing and truncating still work.

        Args:
            until_removal: removing the next segment frees space; so does removing the file that reserves space for a stop.
        """
        self.fail(TAKING_ROOM, folder, errno.ENOSPC)
        self._freed_by_removal = until_removal

    def heal(self) -> None:
        """End all faults."""
        self._faults.clear()

    def _check(self, operation: str, path: Path | None) -> None:
        with self._lock:
            self.counts[operation] = self.counts.get(operation, 0) + 1
        for operations, folder, number in self._faults:
            if operation in operations and path is not None and (path == folder or folder in path.parents):
                raise OSError(number, os.strerror(number), str(path))

    def open(self, path: Path, *, create: bool = False) -> int:
        if create and not path.exists():
            self._check("create", path)
        fileno = super().open(path, create=create)
        self._paths[fileno] = path
        return fileno

    def close(self, fileno: int, /) -> None:
        self._paths.pop(fileno, None)
        os.close(fileno)

    def pwrite(self, fileno: int, data: Buffer, position: int, /) -> int:
        try:
            self._check("pwrite", self._paths.get(fileno))
        except OSError:
            os.pwrite(fileno, memoryview(data)[: len(data) // 2], position)
            raise
        return os.pwrite(fileno, data, position)

    def pwritev(self, fileno: int, buffers: Sequence[Buffer], position: int, /) -> int:
        try:
            self._check("pwritev", self._paths.get(fileno))
        except OSError:
            os.pwrite(fileno, buffers[0], position)
            raise
        return os.pwritev(fileno, list(buffers), position)

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        self._check("pread", self._paths.get(fileno))
        return os.pread(fileno, size, position)

    def reserve(self, fileno: int, position: int, size: int, /) -> None:
        self._check("reserve", self._paths.get(fileno))
        super().reserve(fileno, position, size)

    def truncate(self, fileno: int, size: int, /) -> None:
        self._check("truncate", self._paths.get(fileno))
        os.ftruncate(fileno, size)

    def sync(self, fileno: int, /) -> None:
        self._check("sync", self._paths.get(fileno))
        super().sync(fileno)

    def sync_directory(self, path: Path, /) -> None:
        self._check("sync_directory", path)
        super().sync_directory(path)

    def make_directory(self, path: Path, /) -> None:
        if not path.exists():
            self._check("make_directory", path)
        super().make_directory(path)

    def rename(self, source: Path, target: Path, /) -> None:
        self._check("rename", source)
        super().rename(source, target)

    def unlink(self, path: Path, /) -> None:
        if path.exists():
            self._check("unlink", path)
            if self._freed_by_removal and path.name.endswith((".log.deleted", ROOM_FILE)):
                self.heal()
        super().unlink(path)

    def read_file(self, path: Path, /) -> bytes:
        self._check("read_file", path)
        return super().read_file(path)

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self._check("replace_file", path)
        super().replace_file(path, data, sync=sync)
