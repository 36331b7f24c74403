"""Which files of a place a source reads, and in which order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from barnabas.connect.plugins.files.storage import Entry

_SPECIAL = re.compile(r"[*?\[]")
ORDERS: dict[
    str, tuple[Callable[[Entry], Any], bool]
] = {  # SpoolDir's names: what is compared, and whether the greatest is first
    "NameAsc": (lambda each: each.name, False),
    "NameDesc": (lambda each: each.name, True),
    "LastModifiedAsc": (lambda each: each.modified_ms, False),
    "LastModifiedDesc": (lambda each: each.modified_ms, True),
    "LengthAsc": (lambda each: each.size, False),
    "LengthDesc": (lambda each: each.size, True),
}


class Place(NamedTuple):
    """Where to look: a folder, and a pattern of the names below it.

    Args:
        glob: None: every name.
    """

    root: str
    glob: re.Pattern[str] | None
    is_recursive: bool


def place_of(path: str, *, recursive: bool) -> Place:
    """The place of a path that may have `*`, `?`, `[a-z]`, and `**` for folders of any depth."""
    parts = path.rstrip("/").split("/")
    first = next((at for at, part in enumerate(parts) if _SPECIAL.search(part)), None)
    if first is None:
        return Place(path.rstrip("/") or "/", None, recursive)
    below = parts[first:]
    return Place("/".join(parts[:first]) or "/", re.compile(_expression(below)), len(below) > 1)


def _expression(parts: Sequence[str]) -> str:
    made = ""
    for at, part in enumerate(parts):
        is_last = at == len(parts) - 1
        if part == "**":
            made += ".*" if is_last else "(?:.*/)?"
        else:
            made += _part(part) + ("" if is_last else "/")
    return made


def _part(part: str) -> str:
    made, at = "", 0
    while at < len(part):
        end = part.find("]", at + 2) if part[at] == "[" else -1
        if end > 0:
            inside = part[at + 1 : end].replace("\\", "\\\\")
            made += f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            at = end
        else:
            made += {"*": "[^/]*", "?": "[^/]"}.get(part[at], re.escape(part[at]))
        at += 1
    return made


class Selection(NamedTuple):
    """The files of one task.

    Args:
        pattern: that the last part of a name fits to.
        order: keys of ORDERS; the first one decides first.
        excluded: beginnings of names.
        task, tasks: the number of the task, and how many there are.
    """

    place: Place
    pattern: re.Pattern[str]
    order: Sequence[str]
    excluded: Sequence[str] = ()
    task: int = 0
    tasks: int = 1

    def of(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of a listing, in their order."""
        found = [each for each in entries if self._has(each.name)]
        for name in reversed(self.order):
            key, reverse = ORDERS[name]
            found.sort(key=key, reverse=reverse)
        return found

    def _has(self, name: str) -> bool:
        glob = self.place.glob
        return (
            self.pattern.fullmatch(name.rpartition("/")[2]) is not None
            and (glob is None or glob.fullmatch(name) is not None)
            and not name.startswith(tuple(self.excluded))
            and crc32(name.encode()) % self.tasks == self.task
        )
