"""Interprets an error of the operating system for a log directory.

Rules
  1. A lack of space, disk quota, descriptors or memory is temporary: the operation is refused, has changed nothing, and may be
     retried.
  2. Every other error of a write, a rename or the like is an error of the disk: the directory is not trusted any more.
  3. An error of a sync is always the disk's, whatever its number: the system may have dropped what it could not write and report
     success the next time, so records without a confirmed sync do not count as durable until they are read back from the disk.
"""

from __future__ import annotations

import errno
from pathlib import Path

from barnabas.errors import LogDirFailed, StorageError, StorageExhausted

EXHAUSTED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def storage_error(log_dir: Path, error: OSError) -> StorageError:
    """The error to raise for `error`, which an operation other than a sync got in `log_dir`."""
    kind = StorageExhausted if error.errno in EXHAUSTED else LogDirFailed
    return kind(str(log_dir), str(error))
