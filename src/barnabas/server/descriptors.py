"""Divides the descriptors that the system grants, so that connections leave enough of them for files.

- Nine sixteenths are for connections, one for each.
- Five sixteenths are for files of segments. Up to half of them may belong to files that wait for slow readers. Beyond that, the broker
  drops the slowest readers.
- The rest is for answers in progress, checkpoints and files that are being created.

Connections get more than files, because the broker can reopen a file on demand, but must refuse a connection without a descriptor. A limit
of 20,000 is enough for 10,000 clients and 5,000 partitions.
"""

from __future__ import annotations

import resource
import sys

from barnabas import limits


def granted() -> int:
    """The number of descriptors that this process may have."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def most_open_segments() -> int:
    return min(limits.MAX_OPEN_SEGMENTS, granted() // 16 * 5)


def most_held_files() -> int:
    return most_open_segments() // 2


def most_connections() -> int:
    return granted() // 16 * 9
