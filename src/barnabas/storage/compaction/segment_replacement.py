"""Replaces segments of a log in use by a cleaned segment: the steps on the loop and in a thread.

`replace_segments` executes the steps of swap.py. Steps that wait for the disk go to `in_thread`; between them, on the loop, the
list of segments changes and the files get their names:

    thread  `.cleaned` becomes `.swap`
    loop    the log reads from the cleaned segment, under its `.swap` names, and no longer from the old ones
    thread  the old files become `.deleted`
    loop    the cleaned segment gets its own names: a few renames, because it finds its indexes by name
    thread  the folder is synced

A reader with a region of an old segment can finish: descriptors stay open until the garbage is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from barnabas.errors import Closed, LogDirFailed, SegmentsGone
from barnabas.storage.compaction import swap
from barnabas.storage.compaction.task import CleanedGroup
from barnabas.storage.garbage import Garbage
from barnabas.storage.log import Log
from barnabas.storage.segment import SNAPSHOT_SUFFIX, Segment, file_name

InThread = Callable[[Callable[[], None]], Awaitable[None]]


async def replace_segments(log: Log, group: CleanedGroup, now_ms: int, in_thread: InThread) -> None:
    """Replace segments by the cleaned segment that was made from them.

    Raises:
        SegmentsGone: the log has changed; the cleaned files are removed.
        OSError: the disk failed in the first step; nothing has changed.
        LogDirFailed: the disk failed after that; the next start finishes the swap.
    """
    files, directory, base = log.files, log.directory, group.base_offset
    prepared: list[Segment] = []

    def announce() -> None:
        swap.announce(files, directory, base)
        prepared.append(Segment.existing(files, directory, base, now_ms, swap.SWAP_SUFFIX))

    def settle() -> None:
        files.sync_directory(directory)
        for gone in group.replaced[1:]:
            files.unlink(directory / file_name(gone, SNAPSHOT_SUFFIX))

    try:
        log.check_open()
    except Closed as error:
        raise SegmentsGone(directory.name) from error
    try:
        await in_thread(announce)
        old = log.truncator.begin_swap(group.replaced, prepared[0])
    except (SegmentsGone, OSError):
        await in_thread(lambda: swap.discard(files, directory, base))
        raise
    doomed: list[Path] = []
    try:
        await in_thread(lambda: doomed.extend(swap.retire_old(files, directory, group.replaced)))
        swap.take_place(files, directory, base)
        prepared[0].drop_name_suffix()
        await in_thread(settle)
    except OSError as error:
        raise LogDirFailed(str(directory.parent), str(error)) from error
    finally:
        log.truncator.end_swap(Garbage(files, doomed, [segment.close for segment in old]))
