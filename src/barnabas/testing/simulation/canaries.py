"""Faults that a broker could have, put between it and its disk or into it: the simulator has to find each of them.

Nothing in the broker knows of them. A simulator that passes these is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from barnabas.cluster.metadata import Kept
from barnabas.replication import in_sync
from barnabas.server import joining
from barnabas.storage import log, recovering, verify
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.testing.simulation.files import FaultyFiles


class WithoutSync(FaultyFiles):
    """A broker, or a cleaner, that never syncs: every sync says that all is well and does nothing."""

    def __init__(self, files: FaultyFiles) -> None:
        # One process, one table of descriptors: what the simulation knows of the process must hold for this one.
        self.__dict__ = files.__dict__

    def sync(self, fileno: int, /) -> None:
        self.size(fileno)

    def sync_directory(self, path: Path, /) -> None:
        self.exists(path)

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        super().replace_file(path, data, sync=False)


class WithoutRecordSync(WithoutSync):
    """A broker that syncs everything but the records themselves: group commit that does not commit."""

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
    """Recovery believes every batch whose header looks right."""

    class Anything(int):
        def __eq__(self, _: object) -> bool:
            return True

        def __ne__(self, _: object) -> bool:
            return False

        __hash__ = int.__hash__

    with mock.patch.object(recovering, "crc32c", return_value=Anything()):
        yield


@contextmanager
def truncation_off_by_one() -> Iterator[None]:
    """Recovery cuts the last good batch off with what lies behind it."""
    scan = recovering.scan_batches

    def one_less(*args: Any) -> Iterator[Any]:
        before: Any = None
        for found in scan(*args):
            if before is not None:
                yield before
            before = found
        if before is not None and before[0] + before[1].size == args[2]:
            yield before  # nothing is to be cut off

    with mock.patch.object(recovering, "scan_batches", one_less):
        yield


@contextmanager
def reads_without_checksums() -> Iterator[None]:
    """What comes from the disk is served as it is."""

    fault = verify.fault_of

    def believed(batch: memoryview, size: int, left: int) -> str | None:
        reason = fault(batch, size, left)
        return None if reason == verify.WRONG_CRC else reason

    with mock.patch.object(verify, "fault_of", believed):
        yield


@contextmanager
def acknowledging_before_the_others_have_it() -> Iterator[None]:
    """A leader commits what it alone has written."""

    def high_watermark(_: Any, current: int, leader_end: int, **__: Any) -> int:
        return max(current, leader_end)

    with mock.patch.object(in_sync.InSyncReplicas, "high_watermark", high_watermark):
        yield


@contextmanager
def followers_that_do_not_truncate() -> Iterator[None]:
    """A follower keeps what another leader's epoch has replaced."""
    with mock.patch.object(log.Log, "truncate_to", return_value=None):
        yield


@contextmanager
def losing_the_end_in_silence() -> Iterator[None]:
    """A broker whose machine lost power says that its logs are whole."""
    with mock.patch.object(joining, "what_was_kept", return_value=Kept.ALL):
        yield
