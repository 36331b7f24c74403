"""When to kill: at any time, or just when something delicate is seen in the data folder.

It observes only names of files, from the outside. Between seeing and killing some time passes, so the kill lands in or shortly
behind what was aimed at; many rounds make up for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path


class Moment(Enum):
    """The present action of the broker."""

    ANY = "any time"
    ROLL = "a segment roll"
    RETENTION = "segments going"
    COMPACTION = "compaction"
    MOVE = "a move between disks"
    TOPIC_MADE = "a topic's creation"
    TOPIC_DELETED = "a topic's deletion"
    CHECKPOINT = "a checkpoint"
    STOP = "a clean stop"
    STOPPED = "after a clean stop"  # without a kill


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):  # removed between the two calls
        return []


def _folders(disks: Sequence[Path]) -> list[str]:
    """The contents of the data folders themselves."""
    return [name for disk in disks for name in _names(disk)]


def _files(disks: Sequence[Path]) -> list[str]:
    """Files of partitions, relative to the data folder."""
    return [f"{name}/{inner}" for disk in disks for name in _names(disk) if "-" in name for inner in _names(disk / name)]


def _is_log(name: str) -> bool:
    return name.endswith(".log") and not name.startswith("fleeting") and "-future/" not in name


def _is_fleeting(name: str) -> bool:
    return name.startswith("fleeting") and not name.endswith(("-delete", "-future"))


# Where to look, and which names are the sign of a moment.
SIGNS: dict[Moment, tuple[Callable[[Sequence[Path]], list[str]], Callable[[str], bool]]] = {
    Moment.ROLL: (_files, _is_log),
    Moment.RETENTION: (_files, lambda name: name.endswith(".deleted")),
    Moment.COMPACTION: (_files, lambda name: name.endswith((".cleaned", ".swap"))),
    Moment.MOVE: (_folders, lambda name: name.endswith("-future")),
    Moment.TOPIC_MADE: (_folders, _is_fleeting),
    Moment.TOPIC_DELETED: (_folders, lambda name: name.endswith("-delete")),
    Moment.CHECKPOINT: (_folders, lambda name: "checkpoint" in name and not name.endswith("checkpoint")),
}


def wait_for(moment: Moment, disks: Sequence[Path], patience_s: float) -> bool:
    """Wait until a name that is a sign of `moment` appears; False where none did within `patience_s`."""
    if moment not in SIGNS:
        return True
    look, sign = SIGNS[moment]
    known = {name for name in look(disks) if sign(name)}
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if any(sign(name) and name not in known for name in look(disks)):
            return True
    return False
