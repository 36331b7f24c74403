"""Whether file data can be sent without waiting for the disk, and bringing it to memory where it cannot.

`sendfile` blocks the loop while the kernel reads from disk. A non-blocking read of single bytes across the region asks first; the kernel
reads ahead in steps, so a probe for each step finds the cold stretches. What is cold is read by a thread.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from barnabas.server.outbox import Region
from barnabas.storage.files import Files

PROBE_STEP_BYTES = 128 * 1024  # the kernel's usual read-ahead
LOAD_STEP_BYTES = 1024 * 1024
_probe = bytearray(1)
_probes = [_probe]


def is_resident(files: Files, region: Region) -> bool:
    """Whether the region can be sent without waiting; True where the platform cannot tell."""
    position, end = region.position, region.position + region.size
    try:
        while position < end:
            files.preadv_nowait(region.fileno, _probes, position)
            position += PROBE_STEP_BYTES
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            return True
        raise
    return True


def load(files: Files, regions: Sequence[Region]) -> None:
    """Read the regions into the page cache; blocks, so it runs in a thread."""
    for region in regions:
        position, end = region.position, region.position + region.size
        while position < end:
            size = len(files.pread(region.fileno, min(LOAD_STEP_BYTES, end - position), position))
            if not size:
                return
            position += size
