"""Uses memory of the machine just before a repetition, so that the repetition does not wait for it.

Hosts of virtual machines take free pages back after about two seconds. They also take pages that nobody has used for half a minute, even
those of the page cache. They give pages back one by one.

| measured | in recently used pages | in others |
|---|---|---|
| a plain loop of writes | 5,500 MB/s | 360 MB/s |
| a topic of 1 GB is read | 7.0 million messages a second | 2.0 million, after a minute without readers |

Without this module, the system with the most writes and the longest retention would have the largest penalty.
"""

from __future__ import annotations

import tempfile

PIECE = bytes(1_000_000)
MOST = 2_500  # MB; with more, the kernel takes back the first pages before the last are used


def use(megabytes: float) -> None:
    """Make this much of the page cache available for the next writes: a file uses it and frees it again."""
    with tempfile.TemporaryFile() as file:
        for _ in range(int(min(megabytes, MOST))):
            file.write(PIECE)
