"""Memory of this process."""

from __future__ import annotations

import gc
import os
from pathlib import Path


def resident_bytes() -> int:
    """The resident memory in bytes, after a garbage collection."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
