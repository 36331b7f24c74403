"""What the cleaning asks of the code that goes over records, of which there are two: `plain` and `compiled`.

Rules
  1. Both give the same answers to the byte. The compiled one needs numpy and numba (the `spark` or the `fast` extra) and is a
     hundred times faster; the plain one starts at once and needs nothing.
  2. A key is known by all its bytes. Kafka knows keys by their MD5 only, so that two keys that somebody made collide lose one's
     records; here the table holds the keys themselves, at the price of fitting fewer of them into the same memory.
  3. What is read is believed only as far as a CRC vouches for it: the keys of the dirty part are from batches that passed, and a
     batch that is written anew passed before it gets a new CRC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from barnabas.errors import BarnabasError
from barnabas.protocol.records.batch_header import BatchHeader


class CorruptBatch(BarnabasError):
    """Bytes that are no batch, at `position` of a chunk."""

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
        """Bytes of whole batches."""
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
            How many rows were noted as a whole: fewer than there are once the memory is full. The first row that is ever added
            fits whatever it takes, so that there is progress.

        Raises:
            CorruptBatch: a batch fails its CRC, or holds no records where it should.
        """
        ...


class FilteredRecords(Protocol):
    """What stays of the records of a chunk, by row; rows whose retention asks for no look are 0."""

    @property
    def kept(self) -> Sequence[int]:
        """Records that stay."""
        ...

    @property
    def counts(self) -> Sequence[int]:
        """Records there are."""
        ...

    @property
    def has_tombstones(self) -> Sequence[int]:
        """Whether one of those that stay has no value."""
        ...

    @property
    def max_timestamps(self) -> Sequence[int]:
        """Of those that stay."""
        ...

    def body(self, row: int, base_timestamp: int) -> bytes:
        """The records that stay, uncompressed, their times counted from `base_timestamp`."""
        ...


B = TypeVar("B", bound=Batches)
K = TypeVar("K", bound=KeyMap)


class EngineOf(Protocol[B, K]):
    """Chunks and maps of one engine are for that engine only."""

    def scan(self, data: bytes) -> B: ...

    def new_map(self, memory_bytes: int, load_factor: float) -> K:
        """An empty map."""
        ...

    def filter_records(self, batches: B, retentions: bytearray, keys: K, latest_offset: int, expired_ms: int) -> FilteredRecords:
        """Look at the records of the rows whose retention is FILTER, FILTER_KEEP_HEADER or KEEP_WITH_HORIZON (which keeps all).

        A record stays if it lies past `latest_offset`, up to which `keys` knows the log, or if it is the last one of its key
        and either has a value or its batch's delete horizon has not passed.

        Raises:
            CorruptBatch: records that are none, or a compressed batch that does not unfold.
        """
        ...


Engine = EngineOf[Any, Any]
