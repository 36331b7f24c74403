"""Whether file data can be sent as it is, and bringing it to memory and verifying it where it cannot.

`sendfile` blocks the loop while the kernel reads from disk. A non-blocking read of single bytes across the region asks first; the kernel
reads ahead in steps, so a probe for each step finds the cold stretches. What is cold is read by a thread, and what comes from the disk
is verified there before it is served: `storage/trust.py` says which bytes that concerns.

The descriptors of logs bring nothing to memory but what is read (`Files.expect_random`), so that the loop never pays for what a kernel
reads ahead. What a reader in order will ask for next is put on its way here, in the thread.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress

from barnabas.server.outbox import HeldRegion, Region
from barnabas.storage.files import Files
from barnabas.storage.reading import FileRegion
from barnabas.storage.trust import READ_AHEAD_BYTES
from barnabas.storage.verify import Verified, verify

PROBE_STEP_BYTES = 128 * 1024  # the kernel's usual read-ahead
_probe = bytearray(1)
_probes = [_probe]


def is_resident(files: Files, region: Region) -> bool:
    """Whether the region can be sent without waiting; True where the platform cannot tell."""
    position, last = region.position, region.position + region.size - 1
    try:
        while position < last:
            files.preadv_nowait(region.fileno, _probes, position)
            position += PROBE_STEP_BYTES
        files.preadv_nowait(region.fileno, _probes, last)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno == errno.EIO:
            return False  # who reads it next says which bytes it is that the disk does not give
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            return True
        raise
    return True


def is_servable(files: Files, region: FileRegion) -> bool:
    """Whether the region is in memory and needs no look at its bytes."""
    start, trust = region.position, region.trust
    if region.reach or not (start >= trust.tail or trust.covers(start, start + region.size)):
        return False
    return is_resident(files, region)


def load(files: Files, regions: Sequence[tuple[FileRegion, HeldRegion]]) -> list[Verified | OSError]:
    """Read the regions into the page cache and verify them; blocks, so it runs in a thread.

    All are on their way before the first is looked at, so the disk works while the CRCs are computed. Memory and work are bounded by the
    fetch that asked: it waits, and so does its connection.

    Args:
        regions: each with the descriptor that is its own.

    Returns:
        For each how far it is whole, or why the disk cannot be read at all.
    """
    for region, held in regions:
        _expect(files, held.fileno, region.position, region.size)
    return [_load(files, region, held.fileno) for region, held in regions]


def _load(files: Files, region: FileRegion, fileno: int) -> Verified | OSError:
    start = region.position
    try:
        found = verify(files, fileno, start, start + region.size, region.base_offset, region.trust.end_offset(), region.reach)
    except OSError as error:
        return error
    if found.damage is None and found.end < found.size:
        _expect(files, fileno, found.end, min(region.size, READ_AHEAD_BYTES, found.size - found.end))
    return found


def _expect(files: Files, fileno: int, position: int, size: int) -> None:
    with suppress(OSError):  # a hint: who reads it meets the error
        files.will_need(fileno, position, size)
