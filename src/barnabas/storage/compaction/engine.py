"""The interface of the two implementations of the passes over records: `plain` and `compiled`.

Rules
  1. Both implementations give the same results, byte by byte. The compiled one needs numpy and numba (the `spark` or the
     `fast` extra) and is a hundred times faster; the plain one starts at once and needs nothing.
  2. Keys are compared by all their bytes. Kafka compares only their MD5, so with a constructed collision, one of two keys
     loses its records. Here the table holds the keys themselves, so fewer keys fit into the same memory.
  3. Only bytes with a checked CRC are used: the keys of the dirty part come from checked batches, and a batch is checked before
     it is rewritten with another CRC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from barnabas.errors import BarnabasError
from barnabas.protocol.records.batch_header import BatchHeader


class CorruptBatch(BarnabasError):
    """Bytes at `position` of a chunk that are not a batch."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"at byte {self.position}: {self.reason}"


class Batches(Protocol):
    """The whole batches at the start of a chunk of a log file; rows are numbered from 0."""

    @property
    def data(self) -> bytes: ...

    @property
    def end(self) -> int:
        """The number of bytes of the whole batches."""
        ...

    @property
    def positions(self) -> Sequence[int]: ...

    @property
    def sizes(self) -> Sequence[int]: ...

    @property
    def last_offsets(self) -> Sequence[int]: ...

    @property
    def max_timestamps(self) -> Sequence[int]: ...

    def __len__(self) -> int: ...

    def header(self, row: int) -> BatchHeader: ...

    def of_producers(self) -> Sequence[int]:
        """The rows that have a producer id, or are control batches."""
        ...


class KeyMap(Protocol):
    """The last offset of each key, in bounded memory."""

    def __len__(self) -> int: ...

    def add(self, batches: Batches, skipped: bytearray, from_offset: int) -> int:
        """Note the keys of records at or past `from_offset`, of the rows that are 0 in `skipped`.

        Returns:
            The number of rows that were added completely: fewer than all if the memory is full. The first row always fits,
            whatever its size, so that there is progress.

        Raises:
            CorruptBatch: a batch fails its CRC, or holds no records where it should.
        """
        ...


class FilteredRecords(Protocol):
    """The retained records of a chunk by row; rows whose records need no check are 0."""

    @property
    def kept(self) -> Sequence[int]:
        """The number of records that stay."""
        ...

    @property
    def counts(self) -> Sequence[int]:
        """The number of records."""
        ...

    @property
    def has_tombstones(self) -> Sequence[int]:
        """Whether a retained record has no value."""
        ...

    @property
    def max_timestamps(self) -> Sequence[int]:
        """The largest timestamp of the records that stay."""
        ...

    def body(self, row: int, base_timestamp: int) -> bytes:
        """The records that stay, uncompressed, with timestamp deltas from `base_timestamp`."""
        ...


B = TypeVar("B", bound=Batches)
K = TypeVar("K", bound=KeyMap)


class EngineOf(Protocol[B, K]):
    """An engine; its chunks and maps work with this engine only."""

    def scan(self, data: bytes) -> B: ...

    def new_map(self, memory_bytes: int, load_factor: float) -> K:
        """An empty map."""
        ...

    def filter_records(self, batches: B, retentions: bytearray, keys: K, latest_offset: int, expired_ms: int) -> FilteredRecords:
        """Filter the records of the rows whose retention is FILTER, FILTER_KEEP_HEADER or KEEP_WITH_HORIZON (which keeps all).

        A record stays if it is after `latest_offset`, the end of the range that `keys` covers. It also stays if it is the last
        one of its key, and has a value or its batch's delete horizon has not passed.

        Raises:
            CorruptBatch: invalid records, or a batch that cannot be decompressed.
        """
        ...


Engine = EngineOf[Any, Any]
