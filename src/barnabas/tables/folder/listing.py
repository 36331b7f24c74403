"""Finds the segments of a partition's folder while a broker may rename and remove them.

How it works: names are listed, files are opened by these names, and the names are looked at again. If a name of a segment that was
taken leads to another file by then, or a compaction began to put segments in place, all of it begins anew. So the segments of one
listing were the log at one moment.

While a compaction replaces segments (`storage/compaction/swap.py`), a `.swap` file stands for the old segments that it replaces.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.storage.compaction.swap import CLEANED_SUFFIX, SWAP_SUFFIX, find_unfinished
from barnabas.storage.files import ReadingFiles
from barnabas.storage.segment.file_names import ABORTED_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, file_name
from barnabas.tables.errors import TableError
from barnabas.tables.folder.segments import NO_ABORTED, FileId, LogSegment, SegmentGone, read_aborted

ATTEMPTS = 1000  # each fails only if a file was renamed meanwhile
DIGITS = 20
FILES = ReadingFiles()


class Listing(NamedTuple):
    """A folder at one moment.

    Args:
        segments: in the order of offsets; the last one is the active one.
        snapshots: offsets of the snapshots of producers, rising.
    """

    segments: Sequence[LogSegment]
    snapshots: Sequence[int]


def list_segments(folder: Path, known: Sequence[LogSegment] = ()) -> Listing:
    """The segments of a folder, held open as far as the limit allows.

    Args:
        known: of an earlier listing; those that are still there are used again.

    Raises:
        TableError: the files change faster than they can be listed.
        FileNotFoundError: there is no such folder.
        CorruptLog: a file that a compaction left is damaged.
    """
    by_name = {(each.base_offset, each.name_suffix, each.identity): each for each in known}
    for _ in range(ATTEMPTS):
        names = os.listdir(folder)
        try:
            segments = [_segment(folder, names, base, suffix, by_name) for base, suffix in _log_files(folder, names)]
            for segment in segments:
                segment.hold()
        except (SegmentGone, FileNotFoundError):
            if not folder.exists():
                raise FileNotFoundError(folder) from None
            continue
        again = os.listdir(folder)
        if _swaps(again) == _swaps(names) and all(each.has_its_name() for each in segments):
            return Listing(segments, _snapshots(names))
    raise TableError(f"{folder}: its files are renamed faster than they can be read")


def _log_files(folder: Path, names: Sequence[str]) -> list[tuple[int, str]]:
    """Base offsets and name suffixes of the segments that make the log up."""
    logs = {_base(name): "" for name in names if name.endswith(LOG_SUFFIX) and len(name) == DIGITS + len(LOG_SUFFIX)}
    if _swaps(names):
        unfinished = find_unfinished(FILES, folder, names)
        for base, replaced in () if unfinished is None else unfinished.complete.items():
            for old in replaced:
                logs.pop(old, None)
            if file_name(base, LOG_SUFFIX) + SWAP_SUFFIX in names:
                logs[base] = SWAP_SUFFIX
    return sorted(logs.items())


def _segment(
    folder: Path, names: Sequence[str], base_offset: int, suffix: str, known: dict[tuple[int, str, FileId], LogSegment]
) -> LogSegment:
    identity = FileId.of(os.stat(folder / (file_name(base_offset, LOG_SUFFIX) + suffix)))
    found = known.get((base_offset, suffix, identity))
    if found is not None:
        return found
    path = folder / _aborted_name(names, base_offset, suffix)
    aborted = NO_ABORTED
    if path.name in names:
        aborted = read_aborted(path)
        if not path.exists():
            raise SegmentGone(str(path))
    return LogSegment(folder, base_offset, suffix, identity, aborted)


def _aborted_name(names: Sequence[str], base_offset: int, suffix: str) -> str:
    """The name that the file of aborted transactions of a segment has, if there is one.

    A compaction takes `.swap` off the indexes before the log. Before that, it renames the old log after the old indexes.
    """
    name = file_name(base_offset, ABORTED_SUFFIX)
    is_renamed = name + suffix not in names and file_name(base_offset, LOG_SUFFIX) not in names
    return name if is_renamed else name + suffix


def _swaps(names: Sequence[str]) -> set[str]:
    return {name for name in names if name.endswith((SWAP_SUFFIX, CLEANED_SUFFIX))}


def _snapshots(names: Sequence[str]) -> list[int]:
    size = DIGITS + len(SNAPSHOT_SUFFIX)
    return sorted(_base(name) for name in names if name.endswith(SNAPSHOT_SUFFIX) and len(name) == size)


def _base(name: str) -> int:
    return int(name.partition(".")[0])
