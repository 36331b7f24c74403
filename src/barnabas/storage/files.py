"""The file operations of the log, as an interface, so that tests can use a simulated faulty disk.

Owns the interface `Files` and its implementation with the operating system. All file access in `storage` uses it, and no other
code does (fetches on a plain-text socket send from its descriptors).

Rules
  1. Reads and writes name their position: no operation depends on a file's own offset, so a thread may flush or read while the
     loop appends, and a partial write can be repeated.
  2. Every method raises the system's OSError; the callers know the log directory.
  3. A new name (file created, renamed) is durable only after `sync_directory` of its folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

Buffer = bytes | bytearray | memoryview

FILE_MODE = 0o644
# flock also excludes other descriptors of this process; Java takes and sees the lock of fcntl.
LOCKS = (fcntl.flock, fcntl.lockf)
TEMPORARY_SUFFIX = ".tmp"
FALLOC_FL_KEEP_SIZE = 1  # the value on Linux


class Files(Protocol):
    """The operations of a file system that the log needs. Descriptors are the operating system's, for `os.sendfile`."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """A descriptor for reading and writing; with `create`, a missing file is created."""
        ...

    def close(self, fileno: int, /) -> None: ...

    def dup(self, fileno: int, /) -> int:
        """Another descriptor of the same file, which outlives the first."""
        ...

    def pwrite(self, fileno: int, data: Buffer, position: int, /) -> int:
        """Write at `position`; returns the number of bytes written, which may be fewer than given."""
        ...

    def pwritev(self, fileno: int, buffers: Sequence[Buffer], position: int, /) -> int:
        """Write `buffers` one after the other at `position`; returns the number of bytes written."""
        ...

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        """At most `size` bytes from `position`; fewer at the end of the file."""
        ...

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        """Read from memory; BlockingIOError if that would wait for the disk, other OSErrors if the system cannot tell."""
        ...

    def expect_random(self, fileno: int, /) -> None:
        """From now on, reads through this descriptor and its duplicates load only the requested bytes, without read-ahead."""
        ...

    def will_need(self, fileno: int, position: int, size: int, /) -> None:
        """Begin to load these bytes into memory; does not wait for them."""
        ...

    def size(self, fileno: int, /) -> int: ...

    def reserve(self, fileno: int, position: int, size: int, /) -> None:
        """Reserve space for `size` bytes from `position` without changing the file's size; OSError if that is not possible."""
        ...

    def truncate(self, fileno: int, size: int, /) -> None: ...

    def sync(self, fileno: int, /) -> None:
        """Block until the file's written bytes are on the disk."""
        ...

    def forget_cached(self, fileno: int, /) -> None:
        """Drop the file's cached pages, except those that are not written yet, so that the next read comes from the disk."""
        ...

    def sync_directory(self, path: Path, /) -> None:
        """Block until names created, renamed and removed in the folder are on the disk."""
        ...

    def exists(self, path: Path, /) -> bool: ...

    def is_directory(self, path: Path, /) -> bool:
        """Whether the path is a folder; False for a symbolic link."""
        ...

    def file_size(self, path: Path, /) -> int: ...

    def modified_ms(self, path: Path, /) -> int:
        """The time of the file's last write, by the wall clock."""
        ...

    def list_directory(self, path: Path, /) -> list[str]:
        """Names in the folder, sorted."""
        ...

    def make_directory(self, path: Path, /) -> None:
        """Create the folder and its parents, unless they exist."""
        ...

    def remove_directory(self, path: Path, /) -> None:
        """Remove an empty folder."""
        ...

    def rename(self, source: Path, target: Path, /) -> None:
        """Move a file or folder; a file at `target` is replaced at once."""
        ...

    def unlink(self, path: Path, /) -> None:
        """Remove a file; nothing happens if it is missing."""
        ...

    def read_file(self, path: Path, /) -> bytes: ...

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Write a small file as a whole: after a crash it holds the old bytes or the new ones, never a part."""
        ...

    def lock(self, path: Path, /) -> int | None:
        """A descriptor that locks the file against other processes until it is closed; None if another process has the lock.

        Nothing else in the process may open the file meanwhile: closing any of its descriptors may release the lock.
        """
        ...


class OsFiles:
    """The real file system."""

    # Plain system calls, so that an append pays for no Python frame around them.
    close = staticmethod(os.close)
    pwrite: Callable[[int, Buffer, int], int] = staticmethod(os.pwrite)
    pwritev: Callable[[int, Sequence[Buffer], int], int] = staticmethod(os.pwritev)
    pread = staticmethod(os.pread)
    dup = staticmethod(os.dup)
    truncate = staticmethod(os.ftruncate)

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        return os.preadv(fileno, buffers, position, os.RWF_NOWAIT)

    def open(self, path: Path, *, create: bool = False) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), FILE_MODE)

    def expect_random(self, fileno: int, /) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fileno, 0, 0, os.POSIX_FADV_RANDOM)

    def will_need(self, fileno: int, position: int, size: int, /) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fileno, position, size, os.POSIX_FADV_WILLNEED)

    def size(self, fileno: int, /) -> int:
        return os.fstat(fileno).st_size

    def reserve(self, fileno: int, position: int, size: int, /) -> None:
        _fallocate()(fileno, FALLOC_FL_KEEP_SIZE, position, size)

    def sync(self, fileno: int, /) -> None:
        os.fdatasync(fileno)

    def forget_cached(self, fileno: int, /) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fileno, 0, 0, os.POSIX_FADV_DONTNEED)

    def sync_directory(self, path: Path, /) -> None:
        fileno = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fileno)
        finally:
            os.close(fileno)

    def exists(self, path: Path, /) -> bool:
        return path.exists()

    def is_directory(self, path: Path, /) -> bool:
        return path.is_dir() and not path.is_symlink()

    def file_size(self, path: Path, /) -> int:
        return path.stat().st_size

    def modified_ms(self, path: Path, /) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def list_directory(self, path: Path, /) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: Path, /) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def remove_directory(self, path: Path, /) -> None:
        path.rmdir()

    def rename(self, source: Path, target: Path, /) -> None:
        source.replace(target)

    def unlink(self, path: Path, /) -> None:
        path.unlink(missing_ok=True)

    def read_file(self, path: Path, /) -> bytes:
        return path.read_bytes()

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        fileno = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        try:
            write_all(self, fileno, data, 0)
            if sync:
                os.fsync(fileno)
        finally:
            os.close(fileno)
        temporary.replace(path)
        if sync:
            self.sync_directory(path.parent)

    def lock(self, path: Path, /) -> int | None:
        fileno = self.open(path, create=True)
        try:
            for take in LOCKS:
                take(fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fileno)
            return None
        except OSError:
            os.close(fileno)
            raise
        return fileno


@cache
def _fallocate() -> Callable[[int, int, int, int], None]:
    """`fallocate` of the C library; Python's `posix_fallocate` would change the file's size."""
    import ctypes  # imported here because the import takes milliseconds

    allocate: Any = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)

    def call(fileno: int, mode: int, position: int, size: int) -> None:
        if allocate is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if allocate(fileno, mode, position, size):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    if allocate is not None:
        allocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
    return call


def write_all(files: Files, fileno: int, data: Buffer, position: int) -> None:
    """Write all of `data` at `position`, in as many calls as it takes."""
    view = memoryview(data)
    while view:
        written = files.pwrite(fileno, view, position)
        view, position = view[written:], position + written


def sync_file(files: Files, path: Path, fileno: int | None = None) -> None:
    """Block until a file is on the disk; uses `fileno` if the file is open."""
    if fileno is not None:
        files.sync(fileno)
        return
    opened = files.open(path)
    try:
        files.sync(opened)
    finally:
        files.close(opened)


class ReadingFiles(OsFiles):
    """The real file system, read-only: also for a disk that cannot be written."""

    def open(self, path: Path, *, create: bool = False) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
