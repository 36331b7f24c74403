"""Replaces old segments by a cleaned one, safe against crashes.

Owns the names and the order of the renames, and the recovery of an interrupted swap at a start. For a segment that replaces
those at a, b and c:

    1. a.log.cleaned and its indexes are written and synced                    a start removes them, and so does the next cleaning
    2. they are renamed to a.log.swap and so on, indexes first; folder synced   a start removes them while one `.cleaned` is left
    3. a.log, b.log, c.log and their indexes get `.deleted`; folder synced      a start does 3 and 4 again
    4. the suffix `.swap` is removed, indexes first; folder synced              a start does 4 again
    5. files with `.deleted` are removed

Rules
  1. The offsets of a `.swap` identify the old segments that it replaces: those that begin in [its base offset, the offset after
     its last batch). The last batch reaches the end of the replaced segments, because the cleaner keeps its header
     (batch_retention.py).
  2. The folder is synced between the steps, so the disk may reorder renames within a step only.
  3. The steps are Kafka's, so each program can finish a swap of the other.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import HEADER_SIZE, LENGTH_OVERHEAD, read_header
from barnabas.storage.files import Files
from barnabas.storage.segment import (
    ABORTED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)

logger = logging.getLogger(__name__)

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
LOG_LAST = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX, LOG_SUFFIX)
OWN_NAME = re.compile(r"\d{20}\.(log|index|timeindex|txnindex)\.(cleaned|swap)")
OWN_LOG = re.compile(r"\d{20}\.log")
OWN_FILE = re.compile(r"\d{20}\.(log|index|timeindex|txnindex)")
READ_BYTES = 1024 * 1024


def announce(files: Files, directory: Path, base_offset: int) -> None:
    """Step 2: rename to `.swap`."""
    for suffix in LOG_LAST:
        name = file_name(base_offset, suffix)
        if files.exists(directory / (name + CLEANED_SUFFIX)):
            files.rename(directory / (name + CLEANED_SUFFIX), directory / (name + SWAP_SUFFIX))
    files.sync_directory(directory)


def retire_old(files: Files, directory: Path, bases: Iterable[int]) -> list[Path]:
    """Step 3; returns the paths to remove."""
    renamed = []
    for base in bases:
        for suffix in LOG_LAST:  # the log is renamed last: a start recognizes the other files by it
            path = directory / file_name(base, suffix)
            if files.exists(path):
                target = path.with_name(path.name + DELETED_SUFFIX)
                files.rename(path, target)
                renamed.append(target)
    files.sync_directory(directory)
    return renamed


def take_place(files: Files, directory: Path, base_offset: int) -> None:
    """Step 4, without the sync: a few renames, which the loop can afford."""
    for suffix in LOG_LAST:
        path = directory / file_name(base_offset, suffix)
        swap = path.with_name(path.name + SWAP_SUFFIX)
        if files.exists(swap):
            files.rename(swap, path)


def discard(files: Files, directory: Path, base_offset: int) -> None:
    """Discard a cleaned segment before step 3."""
    for suffix in LOG_LAST:
        for state in (CLEANED_SUFFIX, SWAP_SUFFIX):
            files.unlink(directory / (file_name(base_offset, suffix) + state))


def remove_leftovers(files: Files, directory: Path) -> None:
    """Remove the files of a cleaning that was given up; call it before another cleaning, and never during a swap.

    Beside swaps of the next cleaning these files would mislead a start: a `.swap` after a `.cleaned` counts as not announced.
    """
    for name in files.list_directory(directory):
        if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) and OWN_NAME.fullmatch(name):
            files.unlink(directory / name)


def drop_cleaned(files: Files, directory: Path) -> None:
    """Remove the files of an interrupted cleaning; the next start handles swaps."""
    for name in files.list_directory(directory):
        if name.endswith(CLEANED_SUFFIX) and OWN_NAME.fullmatch(name):
            files.unlink(directory / name)


class UnfinishedSwaps(Struct, frozen=True):
    """The unfinished swaps in a folder after a crash.

    Args:
        unwanted: names to remove: of cleaned segments whose announcement was not complete.
        complete: for each cleaned segment that takes its place, the base offsets of the old segments that still have a file.
    """

    unwanted: Sequence[str]
    complete: Mapping[int, Sequence[int]]

    @property
    def replaced(self) -> set[int]:
        """Base offsets of the old segments; some are also base offsets of cleaned ones."""
        return {old for olds in self.complete.values() for old in olds}


def find_unfinished(files: Files, directory: Path, names: Iterable[str]) -> UnfinishedSwaps | None:
    """The unfinished swaps in the folder; None if there are none.

    Raises:
        CorruptLog: a `.swap` is damaged.
        OSError: the disk fails.
    """
    names = list(names)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX) and OWN_NAME.fullmatch(name)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX) and OWN_NAME.fullmatch(name)]
    if not cleaned and not swaps:
        return None
    first_cleaned = min(map(_base, cleaned), default=None)
    unwanted = cleaned + [name for name in swaps if first_cleaned is not None and _base(name) >= first_cleaned]
    # After a power failure during the renames, any file of an old segment may be left; the first one counts only with its log.
    bases = {_base(name) for name in names if OWN_FILE.fullmatch(name)}
    logs = {_base(name) for name in names if OWN_LOG.fullmatch(name)}
    complete = {}
    for base in sorted(set(map(_base, swaps)) - set(map(_base, unwanted))):
        end = _end_offset(files, directory / (file_name(base, LOG_SUFFIX) + SWAP_SUFFIX))
        complete[base] = [] if end is None else sorted({old for old in bases if base < old < end} | ({base} & logs))
    return UnfinishedSwaps(unwanted, complete)


def finish_swaps(files: Files, directory: Path, names: list[str]) -> list[str]:
    """Finish the swaps of a folder; returns the names in it after that. The caller removes `.deleted` files.

    Raises:
        CorruptLog, OSError: as `find_unfinished`.
    """
    unfinished = find_unfinished(files, directory, names)
    if unfinished is None:
        return names
    for name in unfinished.unwanted:
        files.unlink(directory / name)
    for base, replaced in unfinished.complete.items():
        if replaced:
            retire_old(files, directory, replaced)
        take_place(files, directory, base)
        logger.info("event=segment-swap-finished directory=%s base_offset=%d", directory, base)
    files.sync_directory(directory)
    return files.list_directory(directory)


def _base(name: str) -> int:
    return int(name.partition(".")[0])


def _end_offset(files: Files, path: Path) -> int | None:
    """The offset after the last batch of a completely synced log file; None without the file or a batch."""
    if not files.exists(path):
        return None
    size, position, end = files.file_size(path), 0, int(path.name.partition(".")[0])
    fileno = files.open(path)
    try:
        while position < size:
            data = files.pread(fileno, min(READ_BYTES, size - position), position)
            at = 0
            while at + HEADER_SIZE <= len(data):
                header = read_header(data, at)
                if header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD:
                    raise CorruptLog(str(path), position + at, "no batch header")
                end, at = header.next_offset, at + header.size
            if not at:
                raise CorruptLog(str(path), position, "a header is cut off")
            position += at
    finally:
        files.close(fileno)
    return end
