"""Deliberate faults, between a broker and its disk or inside the broker: the simulator must find each of them.

The broker's code does not contain them. A simulator that does not report one of them is broken. The faults of replication are
in `cluster_canaries.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from barnabas.storage import recovery, verify
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.testing.simulation.files import FaultyFiles


class WithoutSync(FaultyFiles):
    """A broker, or a cleaner, that never syncs: every sync reports success and does nothing."""

    def __init__(self, files: FaultyFiles) -> None:
        # Share the state of `files`: the process and the simulation must use the same table of descriptors.
        self.__dict__ = files.__dict__

    def sync(self, fileno: int, /) -> None:
        self.size(fileno)

    def sync_directory(self, path: Path, /) -> None:
        self.exists(path)

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        super().replace_file(path, data, sync=False)


class WithoutRecordSync(WithoutSync):
    """A broker that syncs everything except the records themselves: its group commit does not commit."""

    def sync(self, fileno: int, /) -> None:
        if self._file(fileno)[1].suffix == LOG_SUFFIX:
            self.size(fileno)
        else:
            FaultyFiles.sync(self, fileno)

    def sync_directory(self, path: Path, /) -> None:
        FaultyFiles.sync_directory(self, path)

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        FaultyFiles.replace_file(self, path, data, sync=sync)


@contextmanager
def without_checksums() -> Iterator[None]:
    """Recovery accepts every batch with a plausible header."""

    class Anything(int):
        def __eq__(self, _: object) -> bool:
            return True

        def __ne__(self, _: object) -> bool:
            return False

        __hash__ = int.__hash__

    with mock.patch.object(recovery, "crc32c", return_value=Anything()):
        yield


@contextmanager
def truncation_off_by_one() -> Iterator[None]:
    """Recovery removes the last good batch together with the bytes after it."""
    scan = recovery.scan_batches

    def one_less(*args: Any) -> Iterator[Any]:
        before: Any = None
        for found in scan(*args):
            if before is not None:
                yield before
            before = found
        if before is not None and before[0] + before[1].size == args[2]:
            yield before  # the log has no damaged end, so recovery truncates nothing

    with mock.patch.object(recovery, "scan_batches", one_less):
        yield


@contextmanager
def reads_without_checksums() -> Iterator[None]:
    """A broker that serves bytes from the disk without verification."""

    fault = verify.fault_of

    def believed(batch: memoryview, size: int, left: int) -> str | None:
        reason = fault(batch, size, left)
        return None if reason == verify.WRONG_CRC else reason

    with mock.patch.object(verify, "fault_of", believed):
        yield
