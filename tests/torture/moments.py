"""When to kill: at any time, or just when something delicate is seen in the data folder.

What is seen are names of files, from the outside. Between seeing and killing some time passes, so the kill lands in or shortly behind what
was aimed at; many rounds make up for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

PATIENCE_S = 3.0  # then the kill comes without what was waited for


class Moment(Enum):
    """What the broker is in the middle of."""

    ANY = "any time"
    ROLL = "a segment roll"
    RETENTION = "segments going"
    COMPACTION = "compaction"
    TOPIC_MADE = "a topic's creation"
    TOPIC_DELETED = "a topic's deletion"
    CHECKPOINT = "a checkpoint"
    STOP = "a clean stop"
    STOPPED = "after a clean stop"  # no kill at all


def _names(folder: Path) -> Iterator[str]:
    """Every folder and file, relative to the data folder; what goes away while looking is left out."""
    for name in _list(folder):
        yield name
        if "-" in name:
            yield from (f"{name}/{inner}" for inner in _list(folder / name))


def _list(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_log(name: str) -> bool:
    return name.endswith(".log") and not name.startswith("fleeting")


def _is_fleeting(name: str) -> bool:
    return name.startswith("fleeting") and "/" not in name and not name.endswith("-delete")


SIGNS: dict[Moment, Callable[[str], bool]] = {
    Moment.ROLL: _is_log,
    Moment.RETENTION: lambda name: name.endswith(".deleted"),
    Moment.COMPACTION: lambda name: name.endswith((".cleaned", ".swap")),
    Moment.TOPIC_MADE: _is_fleeting,
    Moment.TOPIC_DELETED: lambda name: name.endswith("-delete"),
    Moment.CHECKPOINT: lambda name: "checkpoint" in name and not name.endswith("checkpoint"),
}


def wait_for(moment: Moment, folder: Path) -> bool:
    """Wait until a name that is a sign of `moment` appears; False where none did in time."""
    sign = SIGNS.get(moment)
    if sign is None:
        return True
    known = {name for name in _names(folder) if sign(name)}
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if any(sign(name) and name not in known for name in _names(folder)):
            return True
    return False
