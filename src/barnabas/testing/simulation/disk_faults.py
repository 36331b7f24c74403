"""The planned errors of a simulated disk.

Owns the planned errors: the operation, the path and the number of times. It makes no random choice, so the code that plans an
error knows its effect.
"""

from __future__ import annotations

import errno as errors
import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from msgspec import Struct, field


class Operation(Enum):
    """The operations on files and folders, which can fail."""

    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    SYNC_DIRECTORY = "sync-directory"
    CREATE = "create"
    RENAME = "rename"
    UNLINK = "unlink"


def everywhere(_: Path) -> bool:
    """Matches every path."""
    return True


class Fault(Struct):
    """`times` matching operations fail with `errno`, after the next `after` of them have succeeded.

    An `errno` of 0 means a write of only half of the bytes.
    """

    operations: frozenset[Operation]
    errno: int
    after: int = 0
    times: int = 1
    where: Callable[[Path], bool] = everywhere
    struck: int = 0

    def is_due(self, operation: Operation, path: Path) -> bool:
        if operation not in self.operations or self.struck >= self.times or not self.where(path):
            return False
        if self.after:
            self.after -= 1
            return False
        self.struck += 1
        return True


class Faults(Struct):
    """The faults of one disk."""

    armed: list[Fault] = field(default_factory=list)
    cold: Callable[[Path], bool] | None = None  # whether a file is missing from the page cache

    def arm(self, *operations: Operation, errno: int = errors.EIO, after: int = 0, times: int = 1) -> Fault:
        fault = Fault(frozenset(operations), errno, after, times)
        self.armed.append(fault)
        return fault

    def heal(self) -> None:
        self.armed.clear()

    def check(self, operation: Operation, path: Path) -> None:
        """Raises the planned OSError for this operation, if there is one."""
        for fault in self.armed:
            if fault.errno and fault.is_due(operation, path):
                raise OSError(fault.errno, os.strerror(fault.errno), str(path))

    def allowed_bytes(self, path: Path, size: int) -> int:
        """The number of bytes of a write that the disk accepts."""
        for fault in self.armed:
            if not fault.errno and size > 1 and fault.is_due(Operation.WRITE, path):
                return size // 2
        return size

    def is_cold(self, path: Path) -> bool:
        return self.cold is not None and self.cold(path)
