"""The aborted transactions of a segment, file `<base offset>.txnindex`: what readers of committed records must skip.

Owns its entries, 34 bytes big-endian: version int16 = 0, producer id int64, first offset int64, last offset int64 (the
marker's), last stable offset int64. Sorted by last offset. The file exists only once a transaction was aborted.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path

from barnabas.storage.files import Files, sync_file, write_all
from barnabas.storage.producer_state import CompletedTransaction
from barnabas.storage.segment import ABORTED_SUFFIX, Segment

VERSION = 0
ENTRY = struct.Struct(">hqqqq")
READ_ENTRIES = 120  # per read: 4 kB


class AbortedTransactions:
    """The file of one segment; nothing of it is kept in memory.

    Args:
        base_offset: of the segment.
    """

    def __init__(self, files: Files, path: Path, base_offset: int) -> None:
        self._files = files
        self._base_offset = base_offset
        self.path = path

    def __iter__(self) -> Iterator[CompletedTransaction]:
        if self._files.exists(self.path):
            data = self._files.read_file(self.path)
            for entry in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size]):
                yield _transaction(*entry)

    def ending_from(self, offset: int) -> Iterator[CompletedTransaction]:
        """The transactions that ended at or past `offset`; reads these, and a few entries to find the first."""
        if not self._files.exists(self.path):
            return
        fileno = self._files.open(self.path)
        try:
            count = self._files.size(fileno) // ENTRY.size
            slot = bisect_left(range(count), offset, key=lambda at: self._read(fileno, at).last_offset)
            while slot < count:
                data = self._files.pread(fileno, min(READ_ENTRIES, count - slot) * ENTRY.size, slot * ENTRY.size)
                for entry in ENTRY.iter_unpack(data):
                    yield _transaction(*entry)
                slot += READ_ENTRIES
        finally:
            self._files.close(fileno)

    def is_whole(self, end_offset: int) -> bool:
        """Whether the file can be complete: whole entries, and a first and last one that fit into a segment up to `end_offset`.

        The file is created with its first entry, so an empty file was cut off.
        """
        if not self._files.exists(self.path):
            return True
        size = self._files.file_size(self.path)
        if not size or size % ENTRY.size:
            return False
        fileno = self._files.open(self.path)
        try:
            ends = [self._read(fileno, 0), self._read(fileno, size // ENTRY.size - 1)]
        finally:
            self._files.close(fileno)
        return all(
            entry.first_offset < entry.last_offset and self._base_offset <= entry.last_offset < end_offset for entry in ends
        )

    def remove(self) -> None:
        self._files.unlink(self.path)

    def append(self, transaction: CompletedTransaction) -> None:
        """Add an entry, unless the file has it already (the log is being read again)."""
        fileno = self._files.open(self.path, create=True)
        try:
            count = self._files.size(fileno) // ENTRY.size
            if not count or self._read(fileno, count - 1).last_offset < transaction.last_offset:
                self._put(fileno, count, [transaction])
        finally:
            self._files.close(fileno)

    def _read(self, fileno: int, slot: int) -> CompletedTransaction:
        return _transaction(*ENTRY.unpack(self._files.pread(fileno, ENTRY.size, slot * ENTRY.size)))

    def truncate(self, end_offset: int) -> None:
        """Keep the transactions that ended before `end_offset`, up to the first entry that cannot be right.

        After a power failure the file may have its old length and be full of zeros, which look like a transaction of producer 0.
        """
        if not self._files.exists(self.path):
            return
        kept, previous = 0, self._base_offset - 1
        for entry in self:
            if not previous < entry.last_offset < end_offset or entry.first_offset >= entry.last_offset:
                break
            kept, previous = kept + 1, entry.last_offset
        if not kept:
            self.remove()
        elif kept * ENTRY.size < self._files.file_size(self.path):
            fileno = self._files.open(self.path)
            try:
                self._put(fileno, kept, [])
            finally:
                self._files.close(fileno)

    def sync(self) -> None:
        if self._files.exists(self.path):
            sync_file(self._files, self.path)

    def _put(self, fileno: int, count: int, added: list[CompletedTransaction]) -> None:
        """Write entries after the first `count`, and cut what follows."""
        data = encode_entries(added)
        write_all(self._files, fileno, data, count * ENTRY.size)
        self._files.truncate(fileno, count * ENTRY.size + len(data))


def _transaction(_: int, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> CompletedTransaction:
    return CompletedTransaction(producer_id, first_offset, last_offset, True, last_stable_offset)


def encode_entries(entries: Iterable[CompletedTransaction]) -> bytes:
    """Entries as the file has them."""
    return b"".join(
        ENTRY.pack(VERSION, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
        for entry in entries
    )


def aborted_in(segment: Segment, offset: int) -> Iterable[CompletedTransaction]:
    """The transactions that end in a segment at or past `offset`, for its readers; if it has no file, the disk is asked only once."""
    return aborted_of(segment).ending_from(offset) if segment.has_aborted else ()


def add_aborted(segment: Segment, transaction: CompletedTransaction) -> None:
    """Add an aborted transaction to the segment in which it ended."""
    aborted_of(segment).append(transaction)
    segment.has_aborted = True


def aborted_of(segment: Segment) -> AbortedTransactions:
    """The aborted transactions of a segment."""
    return AbortedTransactions(segment.files, segment.directory / segment.name_of(ABORTED_SUFFIX), segment.base_offset)
