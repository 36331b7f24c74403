"""How far a source has come in a file: what its offset says, and what a later listing means for it.

    {"position": 120, "size": 300, "modified": 1735689600000, "version": "81", "head": [120, 2774], "done": false}

The position is in bytes for formats of lines, in rows for others. A file of lines is known again by its first bytes, so one that grew
goes on, and one that took the place of another begins anew. Other files are known by size, time and version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any
from zlib import crc32

from msgspec import Struct

from barnabas.connect.plugins.files.storage import Entry

HEAD_BYTES = 1024
PATH = "path"


class Progress(Struct, frozen=True):
    """See the module.

    Args:
        is_done: nothing follows, unless the file changes.
        failed: why the file is set aside.
    """

    position: int
    entry: Entry
    head: tuple[int, int] = (0, 0)
    is_done: bool = False
    failed: str | None = None

    @property
    def offset(self) -> dict[str, Any]:
        """As the offset of a batch."""
        more = {} if self.failed is None else {"failed": self.failed}
        return {
            "position": self.position, "size": self.entry.size, "modified": self.entry.modified_ms, "version": self.entry.version,
            "head": list(self.head), "done": self.is_done, **more,
        }  # fmt: skip

    def fits(self, entry: Entry) -> bool:
        """Whether the file is as it was."""
        known = self.entry
        return (entry.size, entry.modified_ms, entry.version) == (known.size, known.modified_ms, known.version)

    def continues(self, file: IO[bytes], size: int) -> bool:
        """Whether a file of lines that has changed has the bytes before the position still. The file is at any position then."""
        length, checksum = self.head
        return size >= self.position and (length == 0 or head_of(file, length) == (length, checksum))


def head_of(file: IO[bytes], position: int) -> tuple[int, int]:
    """The number of the first bytes of a file before a position, and their checksum."""
    length = min(HEAD_BYTES, position)
    file.seek(0)
    data = file.read(length)
    return len(data), crc32(data)


def progress_of(name: str, offset: Mapping[str, Any]) -> Progress:
    """The progress in a file, from its offset, which a user may have written: `{"position": 0}` is enough."""
    length, checksum = offset.get("head") or (0, 0)
    entry = Entry(name, int(offset.get("size", -1)), int(offset.get("modified", -1)), offset.get("version"), is_whole=False)
    return Progress(
        int(offset.get("position", 0)), entry, (int(length), int(checksum)), bool(offset.get("done", False)), offset.get("failed")
    )
