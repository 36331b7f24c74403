"""How the descriptors that the system grants are shared out, so that whoever may connect cannot take those that files need.

Nine sixteenths are for connections, one for each. Five are for files of segments, up to half of them for those of which pieces wait for
slow readers, who make way beyond. The rest is for answers under way, checkpoints and new files. Connections have more than files, since
a file that has no descriptor is opened again when somebody asks for it, and a connection that has none is refused: a limit of 20,000 is
enough for 10,000 clients and 5,000 partitions.
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
    return min(limits.MAX_OPEN_SEGMENTS, granted() // 16 * 5)


def most_held_files() -> int:
    return most_open_segments() // 2


def most_connections() -> int:
    return granted() // 16 * 9
