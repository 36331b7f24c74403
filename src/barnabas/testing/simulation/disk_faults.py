"""The planned errors of a simulated disk.

Owns what fails, where and how often; it decides nothing by itself, so that whoever arms a fault knows what to expect of it.
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
    """`times` operations that match fail with `errno`, after `after` more of them went well.

    An `errno` of 0 is a write that takes only half of the bytes.
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
        """Raises the OSError that is due."""
        for fault in self.armed:
            if fault.errno and fault.is_due(operation, path):
                raise OSError(fault.errno, os.strerror(fault.errno), str(path))

    def allowed_bytes(self, path: Path, size: int) -> int:
        """How much of a write is taken."""
        for fault in self.armed:
            if not fault.errno and size > 1 and fault.is_due(Operation.WRITE, path):
                return size // 2
        return size

    def is_cold(self, path: Path) -> bool:
        return self.cold is not None and self.cold(path)
