"""Tell the C library's allocator to keep the memory of large buffers for the next ones.

A produce request of a megabyte is received into a buffer of its own. Its records are copied once for the check. By default glibc returns
memory of that size to the kernel at once, and takes it back page by page for the next request. With requests of 900 kB this took 800 of
1,700 us of each request. `limits.KEPT_FREE_BYTES` bounds the free memory that is kept.
"""

from __future__ import annotations

from barnabas import limits

M_TRIM_THRESHOLD = -1  # free bytes at the end of the heap above which glibc returns them to the kernel
M_MMAP_THRESHOLD = -3  # size from which a buffer gets its own mapping, which ends when the buffer is freed


def keep_large_buffers() -> bool:
    """Whether the allocator accepted it. Only glibc has this call; other C libraries work as before."""
    import ctypes  # imported here, because the import takes milliseconds

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, limits.KEPT_FREE_BYTES) and mallopt(M_MMAP_THRESHOLD, limits.KEPT_FREE_BYTES))
