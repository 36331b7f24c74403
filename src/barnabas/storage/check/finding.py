"""The result of a check: one error, its place, and its consequence."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace


class Repair(Enum):
    """A repair without loss; the values are for programs that read the JSON."""

    REBUILD_INDEXES = "rebuild-indexes"  # both sparse indexes of a segment
    REBUILD_ABORTED = "rebuild-aborted"  # the index of aborted transactions of a segment
    REBUILD_EPOCHS = "rebuild-epochs"
    REBUILD_SNAPSHOT = "rebuild-snapshot"
    RESTORE_TOPIC_ID = "restore-topic-id"
    CUT_TAIL = "cut-tail"
    REMOVE_FILE = "remove-file"
    REMOVE_FOLDER = "remove-folder"
    FINISH_COMPACTION = "finish-compaction"  # an interrupted swap of compacted segments


class Finding(Struct, frozen=True):
    """One error.

    Args:
        path: the file or folder.
        what: the error.
        loss: the consequence, also if there is none.
        position: its first byte; None for the whole file.
        first_offset, last_offset: the records concerned, both included; None if there are none, or if the last is unknown.
        repair: the possible repair; None if none is possible without loss.
        why_not: the reason if none is possible.
        mended: the next start of a broker repairs it without losing a flushed record, as after a killed broker.
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
        """The same finding without a repair; `reason` says why."""
        return replace(self, repair=None, why_not=reason)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "path": str(self.path), "repair": self.repair.value if self.repair else None}
