"""How the descriptors that the system grants are shared out, so that whoever may connect cannot take those that files need.

Half of them are for files of segments, three eighths for connections, and the rest for what connections need while they wait for room,
answers under way, checkpoints and new files.
"""

from __future__ import annotations

import resource
import sys

from barnabas import limits


def granted() -> int:
    """How many descriptors this process may have."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def most_open_segments() -> int:
    return min(limits.MAX_OPEN_SEGMENTS, granted() // 2)


def most_connections() -> int:
    return granted() // 8 * 3
