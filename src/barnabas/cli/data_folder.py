"""Keeps brokers away from folders while a command works on them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.cli.errors import BadInput
from barnabas.storage.directory import LOCK_FILE
from barnabas.storage.files import LOCKS


def is_locked(path: Path) -> bool:
    """Whether a broker holds the folder's lock."""
    lock = path / LOCK_FILE
    if not lock.exists() or not os.access(lock, os.W_OK):
        return False
    with lock.open("rb+") as file:
        for take in LOCKS:
            try:
                take(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            take(file.fileno(), fcntl.LOCK_UN)
    return False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the folder's lock, so that no broker starts on it; without write access to the folder, the command works without the
    lock.

    Raises:
        BadInput: a broker is running on it.
    """
    lock = path / LOCK_FILE
    if is_locked(path):
        raise BadInput(f"a broker is running on {path} (it holds {lock}); stop it first")
    if not lock.exists() or not os.access(lock, os.W_OK):
        yield
        return
    with lock.open("rb+") as file:
        for take in LOCKS:
            take(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
