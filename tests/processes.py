"""Queries about processes that a test did not start itself."""

from __future__ import annotations


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
