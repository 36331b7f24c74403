"""`Files` of one process on a simulated disk, with the planned errors.

Owns the process's descriptors, and closes them when the process dies. They are numbers of the simulation, not descriptors of
the system.

Rules
  1. An operation either raises before it changes anything, or does all of it; a short write is the exception that POSIX allows.
  2. When the process is killed, the current operation is done, half done (only a write) or not done. Every later operation
     raises `ProcessKilled`, except `close`, because finalizers call it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from barnabas.storage.files import TEMPORARY_SUFFIX, Buffer
from barnabas.testing.simulation.disk import Disk, File, Folder, missing
from barnabas.testing.simulation.disk_faults import Faults, Operation

FIRST_DESCRIPTOR = 1 << 20  # larger than any real descriptor, so that an accidental use of a real one fails


class ProcessKilled(BaseException):
    """The process is dead; no code may catch this and continue."""


class FaultyFiles:
    """The files of one process on a disk.

    Args:
        faults: the planned errors.
        observe: called with every change; for traces.
    """

    def __init__(self, disk: Disk, faults: Faults | None = None, observe: Callable[[str], None] | None = None) -> None:
        self.disk = disk
        self.faults = faults or Faults()
        self.dead = False
        self.kill_in: int | None = None  # number of changes until the process dies during one
        self._observe = observe
        self._open: dict[int, tuple[File, Path]] = {}
        self._locks: dict[int, File] = {}
        self._numbers = count(FIRST_DESCRIPTOR)

    def die(self) -> None:
        """The process has died; its locks are released."""
        self.dead = True
        self.disk.locked.difference_update(self._locks.values())
        self._open.clear()

    # --- descriptors

    def open(self, path: Path, *, create: bool = False) -> int:
        self._check()
        node = self.disk.find(path)
        if node is None and create:
            folder = self.disk.folder(path.parent)
            self._change(Operation.CREATE, path)
            node = File(modified_ms=self.disk.now_ms())
            folder.change((path.name, node))
            self._after_change()
        return self._descriptor(self.disk.file(path), path)

    def close(self, fileno: int, /) -> None:
        if self.dead:
            return
        if self._open.pop(fileno, None) is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock = self._locks.pop(fileno, None)
        if lock is not None:
            self.disk.locked.discard(lock)

    def dup(self, fileno: int, /) -> int:
        return self._descriptor(*self._file(fileno))

    def lock(self, path: Path, /) -> int | None:
        fileno = self.open(path, create=True)
        file, _ = self._file(fileno)
        if file in self.disk.locked:
            self.close(fileno)
            return None
        self.disk.locked.add(file)
        self._locks[fileno] = file
        return fileno

    @property
    def open_count(self) -> int:
        return len(self._open)

    # --- bytes

    def pwrite(self, fileno: int, data: Buffer, position: int, /) -> int:
        file, path = self._file(fileno)
        return self._write(file, path, bytes(data), position)

    def pwritev(self, fileno: int, buffers: Sequence[Buffer], position: int, /) -> int:
        file, path = self._file(fileno)
        return self._write(file, path, b"".join(buffers), position)

    def reserve(self, fileno: int, position: int, size: int, /) -> None:
        self._file(fileno)
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        file, path = self._file(fileno)
        self.faults.check(Operation.READ, path)
        return bytes(file.data[position : position + size])

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        file, path = self._file(fileno)
        if self.faults.is_cold(path):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        taken = 0
        for buffer in buffers:
            piece = file.data[position + taken : position + taken + len(buffer)]
            buffer[: len(piece)] = piece
            taken += len(piece)
        return taken

    def expect_random(self, fileno: int, /) -> None:
        self._file(fileno)

    def will_need(self, fileno: int, position: int, size: int, /) -> None:
        self._file(fileno)

    def size(self, fileno: int, /) -> int:
        return len(self._file(fileno)[0].data)

    def truncate(self, fileno: int, size: int, /) -> None:
        file, path = self._file(fileno)
        self._change(Operation.TRUNCATE, path)
        before = len(file.data)
        file.truncate(size)
        file.modified_ms = self.disk.now_ms()
        self.disk.used_bytes += len(file.data) - before
        self._after_change()

    def sync(self, fileno: int, /) -> None:
        file, path = self._file(fileno)
        self._sync(file, path)

    def forget_cached(self, fileno: int, /) -> None:
        file, _ = self._file(fileno)
        before = len(file.data)
        file.forget_cached()
        self.disk.used_bytes += len(file.data) - before

    # --- names

    def sync_directory(self, path: Path, /) -> None:
        folder = self.disk.folder(path)
        self._change(Operation.SYNC_DIRECTORY, path)
        folder.sync()
        self._after_change()

    def exists(self, path: Path, /) -> bool:
        self._check()
        return self.disk.find(path) is not None

    def is_directory(self, path: Path, /) -> bool:
        self._check()
        return isinstance(self.disk.find(path), Folder)

    def file_size(self, path: Path, /) -> int:
        self._check()
        return len(self.disk.file(path).data)

    def modified_ms(self, path: Path, /) -> int:
        self._check()
        return self.disk.file(path).modified_ms

    def list_directory(self, path: Path, /) -> list[str]:
        self._check()
        return sorted(self.disk.folder(path).names)

    def make_directory(self, path: Path, /) -> None:
        self._check()
        parent = self.disk.find(path.parent)
        if parent is None:
            self.make_directory(path.parent)
        folder = self.disk.folder(path.parent)
        if path.name not in folder.names:
            self._change(Operation.CREATE, path)
            folder.change((path.name, Folder()))
            self._after_change()

    def remove_directory(self, path: Path, /) -> None:
        self._check()
        if self.disk.folder(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        self._change(Operation.UNLINK, path)
        self.disk.folder(path.parent).change((path.name, None))
        self._after_change()

    def rename(self, source: Path, target: Path, /) -> None:
        self._check()
        node = self.disk.find(source)
        if node is None:
            raise missing(source)
        old, new = self.disk.folder(source.parent), self.disk.folder(target.parent)
        replaced = new.names.get(target.name)
        if isinstance(replaced, Folder) and (replaced.names or isinstance(node, File)):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(target))
        self._change(Operation.RENAME, source)
        if old is new:
            old.change((source.name, None), (target.name, node))
        else:
            new.change((target.name, node))
            old.change((source.name, None))
        if isinstance(replaced, File) and replaced is not node:
            self.disk.used_bytes -= len(replaced.data)
        self._after_change()

    def unlink(self, path: Path, /) -> None:
        self._check()
        node = self.disk.find(path)
        if node is None:
            return
        self.disk.file(path)
        self._change(Operation.UNLINK, path)
        self.disk.folder(path.parent).change((path.name, None))
        self.disk.used_bytes -= len(node.data) if isinstance(node, File) else 0
        self._after_change()

    # --- whole files

    def read_file(self, path: Path, /) -> bytes:
        self._check()
        self.faults.check(Operation.READ, path)
        return bytes(self.disk.file(path).data)

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        fileno = self.open(temporary, create=True)
        try:
            self.truncate(fileno, 0)
            position = 0
            while position < len(data):
                position += self.pwrite(fileno, data[position:], position)
            if sync:
                self.sync(fileno)
        finally:
            self.close(fileno)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(path.parent)

    # --- internal

    def _descriptor(self, file: File, path: Path) -> int:
        fileno = next(self._numbers)
        self._open[fileno] = file, path
        return fileno

    def _file(self, fileno: int) -> tuple[File, Path]:
        self._check()
        found = self._open.get(fileno)
        if found is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return found

    def _write(self, file: File, path: Path, data: bytes, position: int) -> int:
        if not data:
            return 0
        allowed = self.faults.allowed_bytes(path, len(data))
        grown = max(0, position + allowed - len(file.data))
        if self.disk.capacity_bytes is not None and self.disk.used_bytes + grown > self.disk.capacity_bytes:
            allowed -= self.disk.used_bytes + grown - self.disk.capacity_bytes
            if allowed <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        try:
            self._change(Operation.WRITE, path, position, allowed)
        except ProcessKilled:
            allowed = self.disk.random.randrange(allowed + 1)
            self._apply_write(file, position, data[:allowed])
            raise
        self._apply_write(file, position, data[:allowed])
        self._after_change()
        return allowed

    def _apply_write(self, file: File, position: int, data: bytes) -> None:
        if data:
            self.disk.used_bytes += max(0, position + len(data) - len(file.data))
            file.write(position, data)
            file.modified_ms = self.disk.now_ms()

    def _sync(self, file: File, path: Path) -> None:
        try:
            self._change(Operation.SYNC, path)
        except OSError:
            file.fail_sync(self.disk.random)
            raise
        file.sync()
        self._after_change()

    def _check(self) -> None:
        if self.dead:
            raise ProcessKilled

    def _change(self, operation: Operation, path: Path, *details: int) -> None:
        """Called before every change: the change may fail, or the process may die before it is done."""
        self._check()
        if self._observe is not None:
            self._observe(f"{operation.value} {path} {details}" if details else f"{operation.value} {path}")
        self.faults.check(operation, path)
        if self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in < 0 and self.disk.random.random() < 0.5:
                self.die()
                raise ProcessKilled

    def _after_change(self) -> None:
        """The process may die after a change, before it gets the result."""
        if self.kill_in is not None and self.kill_in < 0:
            self.die()
            raise ProcessKilled
