"""A source over record batches in memory, for tests of scans: fast, and every offset is chosen by the test.

source = MemorySource("orders", partitions=2)
source.append(0, [(b"key", b"value")], timestamp_ms=5)
source.append(1, [(None, b"pending")], producer_id=7)
source.end_transaction(7, commit=False)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from barnabas.protocol.records.batch_header import BatchHeader, read_header
from barnabas.protocol.records.record import Record, build_batch, iterate_records
from barnabas.storage.markers import marker_batch
from barnabas.tables import TableError
from barnabas.tables.source import Bounds, Chunk, Snapshot

NO_PRODUCER_ID = -1
Pair = tuple[bytes | None, bytes | None]


class MemorySource:
    """A topic in memory.

    Args:
        partitions: their number.
        topic_id: as hexadecimal digits.
        chunk_batches: batches of one chunk.
    """

    def __init__(self, topic: str, partitions: int = 1, *, topic_id: str = "0" * 31 + "1", chunk_batches: int = 4) -> None:
        self.topic, self.topic_id = topic, topic_id
        self.chunk_batches = chunk_batches
        self.requests: list[tuple[int, int, int]] = []  # partition, start and end of each call of `chunks`
        self.bytes_read = 0
        self.is_deleted = False
        self._batches: list[list[bytes]] = [[] for _ in range(partitions)]
        self._starts = [0] * partitions
        self._ends = [0] * partitions
        self._open: list[dict[int, int]] = [{} for _ in range(partitions)]  # first offset by producer id
        self._aborted: list[list[tuple[int, int, int]]] = [[] for _ in range(partitions)]  # producer id, first and last offset

    # Writing

    def append(
        self,
        partition: int,
        records: Sequence[Record | Pair],
        *,
        timestamp_ms: int = 0,
        producer_id: int = NO_PRODUCER_ID,
        compression: int = 0,
    ) -> int:
        """Append one batch; its base offset. With a producer id it is part of a transaction."""
        base_offset = self._ends[partition]
        is_transactional = producer_id != NO_PRODUCER_ID
        batch = build_batch(
            records,
            base_offset=base_offset,
            timestamp_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
            transactional=is_transactional,
            compression=compression,
        )
        if is_transactional:
            self._open[partition].setdefault(producer_id, base_offset)
        self._add(partition, batch)
        return base_offset

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Append a marker to each partition of the producer's transaction."""
        for partition, is_open in enumerate(self._open):
            if producer_id not in is_open:
                continue
            first, last = is_open.pop(producer_id), self._ends[partition]
            marker = bytearray(marker_batch(producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=0).batch.data)
            marker[:8] = last.to_bytes(8, "big")
            self._add(partition, bytes(marker))
            if not commit:
                self._aborted[partition].append((producer_id, first, last))

    def _add(self, partition: int, batch: bytes) -> None:
        self._batches[partition].append(batch)
        self._ends[partition] = read_header(batch).next_offset

    def delete_records(self, partition: int, before: int) -> None:
        """Move the start of a partition."""
        self._starts[partition] = before
        self._batches[partition] = [each for each in self._batches[partition] if read_header(each).next_offset > before]

    def remove_batch(self, partition: int, offset: int) -> None:
        """Take the batch with this record away, as compaction does."""
        self._batches[partition] = [each for each in self._batches[partition] if offset not in _offsets(read_header(each))]

    # Reading

    def snapshot(self) -> Snapshot:
        if self.is_deleted:
            raise TableError(f"there is no topic {self.topic}")
        bounds = {}
        for partition, start in enumerate(self._starts):
            end = min(self._open[partition].values(), default=self._ends[partition])
            bounds[partition] = Bounds(start, max(start, end))
        return Snapshot(self.topic, self.topic_id, bounds)

    def end_of_epoch(self, partition: int, epoch: int) -> int:
        raise AssertionError("its snapshots have no epochs")

    def offsets_from(self, snapshot: Snapshot, timestamp_ms: int) -> Mapping[int, int]:
        return {each: self._first_from(each, bounds, timestamp_ms) for each, bounds in snapshot.partitions.items()}

    def _first_from(self, partition: int, bounds: Bounds, timestamp_ms: int) -> int:
        if timestamp_ms < 0:
            return bounds.start
        for batch in self._batches[partition]:
            for record in iterate_records(batch):
                if bounds.start <= record.offset < bounds.end and record.timestamp >= timestamp_ms:
                    return record.offset
        return bounds.end

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        self.requests.append((partition, start, end))
        if self.is_deleted or snapshot.topic_id != self.topic_id:
            raise TableError(f"the topic {self.topic} was deleted while it was read")
        headers = [(read_header(each), each) for each in self._batches[partition]]
        wanted = [each for header, each in headers if header.next_offset > start and header.base_offset < end]
        bounds = [*range(0, len(wanted), self.chunk_batches), len(wanted)]
        for low, high in pairwise(bounds):
            if low < high:
                records = b"".join(wanted[low:high])
                self.bytes_read += len(records)
                first, last = read_header(wanted[low]).base_offset, read_header(wanted[high - 1]).next_offset
                aborted = ((each[0], each[1]) for each in self._aborted[partition] if each[1] < last and each[2] >= first)
                yield Chunk(records, tuple(aborted))

    def close(self) -> None:
        pass


def _offsets(header: BatchHeader) -> range:
    return range(header.base_offset, header.next_offset)
