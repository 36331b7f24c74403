"""One round of copying the missing part of a log to its copy in another log directory.

Owns the reading and writing of the files; `log_move` decides which bytes to copy.

Rules
  1. Copied bytes are synced before the round ends.
  2. An error of the target disk is raised as a StorageError of its log directory, an error of the source disk as OSError.
  3. Files are found by name while the log changes. A file that is missing, or was replaced meanwhile, is `lost`: the caller
     knows whether the log has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from barnabas.errors import LogDirFailed
from barnabas.storage.files import Files, sync_file, write_all
from barnabas.storage.os_errors import storage_error
from barnabas.storage.producer_loading import snapshots_in
from barnabas.storage.segment import ABORTED_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, Segment, file_name

COPY_BYTES = 1024 * 1024  # per read


class Piece(Struct, frozen=True):
    """Bytes [start, end) of a segment, and the first entries of its indexes (all entries if the segment is sealed)."""

    segment: Segment
    start: int
    end: int
    index_bytes: int
    time_index_bytes: int
    is_last: bool  # the last piece of a sealed segment


class Unreadable(OSError):
    """A segment's file is missing or too short, although the segment is still part of its log."""


@contextmanager
def writing_to(directory: Path) -> Iterator[None]:
    """A context that converts errors of the disk to those of a log directory.

    Raises:
        LogDirFailed, StorageExhausted
    """
    try:
        yield
    except OSError as error:
        raise storage_error(directory, error) from error


class CopyPlan:
    """One round of copying, fixed on the loop; `run` blocks, and belongs in a thread."""

    def __init__(
        self, files: Files, source: Path, target: Path, *, truncations: int, durable_end: int, starts_over: bool
    ) -> None:
        self.pieces: list[Piece] = []
        self.unwanted: list[Path] = []
        self.truncations = truncations
        self.durable_end = durable_end  # of the copy, after this round
        self.starts_over = starts_over
        self.size = 0
        self.lost: set[Segment] = set()  # segments whose files were missing
        self._files = files
        self._source = source
        self._target = target

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.size += piece.end - piece.start

    def run(self) -> None:
        """Copy and sync.

        Raises:
            StorageError: the target disk fails, or is full.
            OSError: the source cannot be read.
        """
        with self._writing():
            if self.starts_over:
                self.unwanted += [self._target / name for name in self._files.list_directory(self._target) if name[:1].isdigit()]
            for path in self.unwanted:
                self._files.unlink(path)
        for piece in self.pieces:
            try:
                self._copy_segment(piece)
            except (FileNotFoundError, Unreadable):  # the files were renamed in the meantime; the next plan knows the change
                self.lost.add(piece.segment)
        for offset in snapshots_in(self._files.list_directory(self._source)):
            with suppress(FileNotFoundError):  # snapshots are removed together with their segments
                self._copy_small(file_name(offset, SNAPSHOT_SUFFIX))
        with self._writing():
            self._files.sync_directory(self._target)

    def _writing(self) -> AbstractContextManager[None]:
        return writing_to(self._target.parent)

    def _copy_segment(self, piece: Piece) -> None:
        base, index, time_index = piece.segment.base_offset, piece.segment.index_name, piece.segment.time_index_name
        self._copy(file_name(base, LOG_SUFFIX), piece.start, piece.end)
        self._copy(index, 0, piece.index_bytes)
        self._copy(time_index, 0, piece.time_index_bytes)
        self._copy_small(file_name(base, ABORTED_SUFFIX), again=True)

    def _copy(self, name: str, start: int, end: int) -> None:
        source = self._files.open(self._source / name)
        try:
            with self._writing():
                target = self._files.open(self._target / name, create=True)
            try:
                position = start
                while position < end:
                    data = self._files.pread(source, min(COPY_BYTES, end - position), position)
                    if not data:
                        raise Unreadable(f"{self._source / name} ends at {position}, before {end}")
                    with self._writing():
                        write_all(self._files, target, data, position)
                    position += len(data)
                with self._writing():
                    self._files.truncate(target, end)
                    self._sync(target)
            finally:
                self._files.close(target)
        finally:
            self._files.close(source)

    def _sync(self, target: int) -> None:
        try:
            self._files.sync(target)
        except OSError as error:  # with any errno: see `storage.os_errors`
            raise LogDirFailed(str(self._target.parent), str(error)) from error

    def _copy_small(self, name: str, *, again: bool = False) -> None:
        if not self._files.exists(self._source / name) or (not again and self._files.exists(self._target / name)):
            return
        data = self._files.read_file(self._source / name)
        with self._writing():
            self._files.replace_file(self._target / name, data, sync=False)
            sync_file(self._files, self._target / name)
