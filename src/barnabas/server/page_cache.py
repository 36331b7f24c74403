"""Decides whether file data can be sent at once. If not, a thread reads it into memory and verifies it.

`sendfile` blocks the loop while the kernel reads from disk. So non-blocking reads of single bytes test this first. The kernel reads ahead
in steps, so one probe for each step finds the ranges that are not in memory. A thread reads these. It also verifies data from the disk
before the broker serves it: `storage/integrity.py` knows which bytes need verification.

The descriptors of logs load only the requested data (`Files.expect_random`), so that the loop never pays for a kernel's read-ahead. The
thread asks the kernel to load the data that a reader in order will request next. Only then must the bytes after a read be verified too. If
every read of unverified bytes had this effect, one page from the disk would send all later data of its segment through the thread.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.protocol.fetch import Copied
from barnabas.server.outbox import Region
from barnabas.server.pinned_regions import PinnedRegion
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import Files
from barnabas.storage.integrity import READ_AHEAD_BYTES
from barnabas.storage.verify import Verified, verify

# up to this size data is read at once: to ask whether it is in memory takes as long
COPIED_BYTES = 16 * 1024
PROBE_STEP_BYTES = 128 * 1024  # the kernel's usual read-ahead
_probe = bytearray(1)
_probes = [_probe]


def is_resident(files: Files, region: Region) -> bool:
    """Whether the region can be sent without waiting. True if the platform cannot tell."""
    return _is_in_memory(files, region.fileno, region.position, region.size)


def _is_in_memory(files: Files, fileno: int, position: int, size: int) -> bool:
    last = position + size - 1
    try:
        while position < last:
            files.preadv_nowait(fileno, _probes, position)
            position += PROBE_STEP_BYTES
        files.preadv_nowait(fileno, _probes, last)
    except BlockingIOError:
        return False
    except OSError as error:
        return _tells_nothing(error)
    return True


def _tells_nothing(error: OSError) -> bool:
    """Whether the platform cannot tell what is in memory. False if the disk cannot read some bytes: the next reader of the bytes finds out
    which.
    """
    if error.errno == errno.EIO:
        return False
    if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
        return True
    raise error


def _is_trusted(region: FileRegion) -> bool:
    """Whether the bytes of the region can be served without verification."""
    start, integrity = region.position, region.integrity
    return start >= integrity.tail or integrity.covers(start, start + region.size)


def at_hand(files: Files, region: FileRegion, *, may_copy: bool) -> FileRegion | Copied | None:
    """The region's data in a form that can be sent now; None if a thread must verify or read it first."""
    if region.reach or not _is_trusted(region):
        return None
    size = region.size
    if size > COPIED_BYTES or not may_copy:
        return region if is_resident(files, region) else None
    data = bytearray(size)
    try:
        return Copied(data) if files.preadv_nowait(region.fileno, (data,), region.position) == size else None
    except BlockingIOError:
        return None
    except OSError as error:
        return region if _tells_nothing(error) else None


class Loaded(NamedTuple):
    """The valid part of a region, and whether bytes of it, or after it, came from the disk. Those are then in memory and not verified."""

    verified: Verified
    is_from_disk: bool


def load(files: Files, regions: Sequence[tuple[FileRegion, PinnedRegion]]) -> list[Loaded | OSError]:
    """Read the regions into the page cache and verify them; blocks, so it runs in a thread.

    The kernel loads all regions before the first is verified, so the disk works while the CRCs are computed. Memory and work are limited,
    because the fetch and its connection wait.

    Args:
        regions: each with its held region.

    Returns:
        For each region its valid part, or the error if the disk is unreadable.
    """
    asked = [_bring(files, held.fileno, region.position, region.size) for region, held in regions]
    return [_load(files, *each, is_from_disk=was_asked) for each, was_asked in zip(regions, asked, strict=True)]


def _load(files: Files, region: FileRegion, held: PinnedRegion, *, is_from_disk: bool) -> Loaded | OSError:
    fileno, start, tail = held.fileno, region.position, region.integrity.tail
    end_offset = region.integrity.end_offset()
    try:
        found = verify(files, fileno, start, start + region.size, region.base_offset, end_offset, region.reach, tail=tail)
    except OSError as error:
        return error
    if found.damage is None and found.end < found.size:
        next_size = min(region.size, READ_AHEAD_BYTES, found.size - found.end)
        is_from_disk = _bring(files, fileno, found.end, next_size) or is_from_disk
    return Loaded(found, is_from_disk)


def _bring(files: Files, fileno: int, position: int, size: int) -> bool:
    """Ask the kernel to load these bytes. Returns False if they were in memory."""
    with suppress(OSError):  # the reader of the file meets the same error
        if _is_in_memory(files, fileno, position, size):
            return False
        files.will_need(fileno, position, size)
    return True
