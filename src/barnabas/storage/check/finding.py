"""What a check has to say: one thing that is wrong, where, and what it costs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace


class Repair(Enum):
    """What would put a finding right without losing anything; the values are for programs that read the JSON."""

    REBUILD_INDEXES = "rebuild-indexes"  # both sparse indexes of a segment
    REBUILD_ABORTED = "rebuild-aborted"  # its index of aborted transactions
    REBUILD_EPOCHS = "rebuild-epochs"
    REBUILD_SNAPSHOT = "rebuild-snapshot"
    RESTORE_TOPIC_ID = "restore-topic-id"
    CUT_TAIL = "cut-tail"
    REMOVE_FILE = "remove-file"
    REMOVE_FOLDER = "remove-folder"
    FINISH_COMPACTION = "finish-compaction"  # the swap of compacted segments that a stop interrupted


class Finding(Struct, frozen=True):
    """One thing that is wrong.

    Args:
        path: the file or folder.
        what: what is wrong with it.
        loss: what that costs, or that it costs nothing.
        position: the byte where it begins; None where the file as a whole is meant.
        first_offset, last_offset: the records concerned, both included; None where none are, or the last is not known.
        repair: what would put it right; None where nothing can without losing something.
        why_not: the reason, for those that cannot.
        mended: the next start of a broker deals with it by itself, and no record that was on the disk is lost: what a broker that was
            killed leaves behind.
    """

    path: Path
    what: str
    loss: str
    position: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    repair: Repair | None = None
    why_not: str = ""
    mended: bool = False

    @property
    def place(self) -> str:
        """File, position and offsets."""
        parts = [str(self.path)]
        if self.position is not None:
            parts.append(f"byte {self.position}")
        if self.first_offset is not None:
            if self.last_offset is None:
                parts.append(f"from offset {self.first_offset} on")
            elif self.first_offset == self.last_offset:
                parts.append(f"offset {self.first_offset}")
            else:
                parts.append(f"offsets {self.first_offset} to {self.last_offset}")
        return ", ".join(parts)

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.loss}"

    def without_repair(self, reason: str) -> Finding:
        """The same, left alone for `reason`."""
        return replace(self, repair=None, why_not=reason)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "path": str(self.path), "repair": self.repair.value if self.repair else None}
