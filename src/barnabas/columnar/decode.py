"""Decodes raw record batches (v2) to Arrow columns, without a Python object for each record.

Owns the conversion of a buffer of batches to `pyarrow.RecordBatch`es with the columns of Spark's `kafka` source. Depends on
neither Spark nor sockets; its users are the tasks of the Spark data source and `tables`.

How it works: a kernel lists the batch headers. For each batch the decoder checks the CRC and decompresses the records. Then one
kernel call converts the records of many batches into the buffers of one Arrow batch.

Rules
  1. Control batches give no rows; batches of aborted transactions give none if the caller lists the aborted transactions.
  2. Offsets before `start` and from `end` on are left out, also in the middle of a batch.
  3. An incomplete batch at the end of the buffer is left for the next buffer.
  4. Columns with the same value in all rows (topic, partition) are created once and shared.
  5. A producer may write any bytes as the key of a header. Those that are no UTF-8 become U+FFFD, as in Kafka's own clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.columnar.batches import (
    APPEND_TIME,
    CODEC_MASK,
    CorruptBatch,
    Longs,
    batch_table,
    check_batches,
    visible_batches,
)
from barnabas.columnar.codecs import OutputBuffer
from barnabas.errors import BarnabasError
from barnabas.lazy_module import LazyModule
from barnabas.limits import MAX_DECOMPRESSED_BATCH_BYTES
from barnabas.protocol.base_message import Buffer

if TYPE_CHECKING:
    from barnabas.protocol.records import kernels as k
else:
    k = LazyModule("barnabas.protocol.records.kernels")

PIECE_BYTES = 16 << 20  # decompressed bytes in one Arrow batch, unless one record batch has more
SPARE_BYTES = 4 << 20  # extra space, so that the last batch of a piece rarely has to be decompressed twice
MAX_BATCH_BYTES = (1 << 31) - 1  # Arrow's offsets are 32 bits wide

HEADER_TYPE = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
COLUMNS: list[pa.Field[Any]] = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
]
SCHEMA = pa.schema(COLUMNS)
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", HEADER_TYPE))

Bytes = npt.NDArray[np.uint8]
Array = Any  # pyarrow.Array of any type


class BadTimestamp(BarnabasError):
    """A record with a timestamp that the column cannot hold; brokers accept it if message.timestamp.after.max.ms is large
    enough."""

    def __init__(self, topic: str, partition: int, offset: int, timestamp: int) -> None:
        super().__init__(topic, partition, offset, timestamp)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: the record at offset {self.offset} has the timestamp {self.timestamp}, which overflows as "
            "microseconds. Timestamps are milliseconds: its producer may have given microseconds or nanoseconds"
        )


class RecordDecoder:
    """Decodes batches of one partition.

    Args:
        topic, partition: values of these columns, also for errors.
        include_headers: whether rows have their headers (null if a record has none).
        check_crc: False only if the bytes were checked before.
        piece_bytes: approximate decompressed bytes of one Arrow batch.
        max_batch_bytes: limit of one decompressed batch; a larger one counts as corrupt.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        include_headers: bool = False,
        check_crc: bool = True,
        piece_bytes: int = PIECE_BYTES,
        max_batch_bytes: int = MAX_DECOMPRESSED_BATCH_BYTES,
    ) -> None:
        self.topic, self.partition = topic, partition
        self.schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
        self._include_headers = include_headers
        self._check_crc = check_crc
        self._piece_bytes = piece_bytes
        self._max_batch_bytes = max_batch_bytes
        self._output: OutputBuffer | None = None  # allocated at the first compressed batch
        self._topics: Array = pa.array([], pa.string())
        self._partitions: Array = pa.array([], pa.int32())

    def decode(
        self, records: Buffer, start: int = 0, end: int = 2**63 - 1, aborted: Sequence[tuple[int, int]] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The records of `records` with start <= offset < end; empty Arrow batches are left out.

        Args:
            aborted: (producer id, first offset) of aborted transactions, as Fetch returns them to a read_committed reader.

        Raises:
            CorruptBatch: bad CRC, codec or lengths, or a format older than v2.
            BadTimestamp: a record's time does not fit the column.
        """
        table = batch_table(records)
        table = table[(table[:, k.BASE_OFFSET] + table[:, k.LAST_DELTA] >= start) & (table[:, k.BASE_OFFSET] < end)]
        if not len(table):
            return
        check_batches(self.topic, self.partition, records, table, check_crc=self._check_crc)
        table = visible_batches(records, table, aborted)
        for data, sections in self._pieces(records, table):
            batch = self._arrow_batch(data, sections, start, end)
            if batch.num_rows:
                yield batch

    def _corrupt(self, row: Longs, reason: str) -> CorruptBatch:
        return CorruptBatch(self.topic, self.partition, int(row[k.BASE_OFFSET]), reason)

    def _pieces(self, records: Buffer, table: Longs) -> Iterator[tuple[Bytes, Longs]]:
        """Groups of batches that become one Arrow batch each: the buffer that holds them, and their sections."""
        compressed = (table[:, k.ATTRIBUTES] & CODEC_MASK) != 0
        if not compressed.any():
            yield from self._uncompressed(records, table)
            return
        changes = np.flatnonzero(np.diff(compressed)) + 1
        for run in np.split(table, changes):
            if run[0, k.ATTRIBUTES] & CODEC_MASK:
                yield from self._compressed(records, run)
            else:
                yield from self._uncompressed(records, run)

    def _uncompressed(self, records: Buffer, table: Longs) -> Iterator[tuple[Bytes, Longs]]:
        data = np.frombuffer(records, np.uint8)
        total = np.cumsum(table[:, k.SIZE])
        for piece in np.split(table, np.flatnonzero(np.diff((total - 1) // self._piece_bytes)) + 1):
            begin = piece[:, k.POSITION] + k.HEADER_BYTES
            yield data, self._sections(piece, begin, piece[:, k.POSITION] + piece[:, k.SIZE])

    def _compressed(self, records: Buffer, table: Longs) -> Iterator[tuple[Bytes, Longs]]:
        view = memoryview(records)
        if self._output is None:
            self._output = OutputBuffer(self._piece_bytes + SPARE_BYTES, self._max_batch_bytes)
        room = self._output
        room.clear()
        first, ends = 0, [0]
        for i, row in enumerate(table):
            if not self._unfold(view, row, room):
                yield room.data, self._output_sections(table[first:i], ends)
                room.clear()
                first, ends = i, [0]
                self._unfold(view, row, room)
            ends.append(room.used)
            if room.used >= self._piece_bytes or i == len(table) - 1:
                yield room.data, self._output_sections(table[first : i + 1], ends)
                room.clear()
                first, ends = i + 1, [0]

    def _unfold(self, view: memoryview, row: Longs, room: OutputBuffer) -> bool:
        begin, end = int(row[k.POSITION]) + k.HEADER_BYTES, int(row[k.POSITION] + row[k.SIZE])
        try:
            return room.append(int(row[k.ATTRIBUTES]) & CODEC_MASK, view[begin:end])
        except ValueError as error:
            raise self._corrupt(row, str(error)) from error

    def _output_sections(self, table: Longs, ends: list[int]) -> Longs:
        bounds = np.array(ends, np.int64)
        return self._sections(table, bounds[:-1], bounds[1:])

    def _sections(self, table: Longs, begin: Longs, end: Longs) -> Longs:
        sections = np.empty((len(table), k.SECTION_COLUMNS), np.int64)
        sections[:, k.BEGIN], sections[:, k.END] = begin, end
        sections[:, k.RECORDS] = table[:, k.COUNT]
        sections[:, k.FIRST_OFFSET] = table[:, k.BASE_OFFSET]
        sections[:, k.FIRST_TIME] = table[:, k.BASE_TIME]
        sections[:, k.APPEND_TIME] = table[:, k.MAX_TIME]
        sections[:, k.IS_APPEND_TIME] = (table[:, k.ATTRIBUTES] & APPEND_TIME) != 0
        room = (end - begin) // k.MIN_RECORD_BYTES
        wrong = np.flatnonzero((table[:, k.COUNT] < 0) | (table[:, k.COUNT] > room) | (end - begin > MAX_BATCH_BYTES))
        if len(wrong):
            row = int(wrong[0])
            raise self._corrupt(table[row], f"{table[row, k.COUNT]} records in {end[row] - begin[row]} bytes")
        return sections

    def _arrow_batch(self, data: Bytes, sections: Longs, start: int, end: int) -> pa.RecordBatch:
        rows = int(sections[:, k.RECORDS].sum())
        room = int((sections[:, k.END] - sections[:, k.BEGIN]).sum())
        key_ends, value_ends = np.empty(rows + 1, np.int32), np.empty(rows + 1, np.int32)
        keys, values = np.empty(room, np.uint8), np.empty(room, np.uint8)
        key_valid, value_valid = np.zeros(rows // 8 + 1, np.uint8), np.zeros(rows // 8 + 1, np.uint8)
        offsets, times, kinds = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int32)
        state = np.zeros(k.STATE_SIZE, np.int64)
        k.decode_records(
            data, sections, start, end, key_ends, keys, key_valid, value_ends, values, value_valid, offsets, times, kinds, state
        )
        self._raise_error(sections, state)
        n = int(state[k.ROWS])
        topics, partitions = self._constants(n)
        columns = [
            _binary(n, key_ends, keys, key_valid, int(state[k.KEY_BYTES]), int(state[k.NULL_KEYS])),
            _binary(n, value_ends, values, value_valid, int(state[k.VALUE_BYTES]), int(state[k.NULL_VALUES])),
            topics,
            partitions,
            _fixed(pa.int64(), n, offsets),
            _fixed(pa.timestamp("us", tz="UTC"), n, times),
            _fixed(pa.int32(), n, kinds),
        ]
        if self._include_headers:
            columns.append(self._headers(data, sections, start, end, n))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _headers(self, data: Bytes, sections: Longs, start: int, end: int, rows: int) -> Array:
        room = int((sections[:, k.END] - sections[:, k.BEGIN]).sum())
        most = room // 2  # a header has at least two bytes
        list_ends, list_valid = np.empty(rows + 1, np.int32), np.zeros(rows // 8 + 1, np.uint8)
        key_ends, value_ends = np.empty(most + 1, np.int32), np.empty(most + 1, np.int32)
        keys, values, value_valid = np.empty(room, np.uint8), np.empty(room, np.uint8), np.zeros(most // 8 + 1, np.uint8)
        state = np.zeros(k.STATE_SIZE, np.int64)
        k.decode_headers(
            data, sections, start, end, list_ends, list_valid, key_ends, keys, value_ends, values, value_valid, state
        )
        self._raise_error(sections, state)
        n = int(state[k.HEADERS])
        parts = [
            _texts(_binary(n, key_ends, keys, None, int(state[k.HEADER_KEY_BYTES]), 0)),
            _binary(n, value_ends, values, value_valid, int(state[k.HEADER_VALUE_BYTES]), -1),
        ]
        items = pa.Array.from_buffers(HEADER_TYPE.value_type, n, [None], children=parts)
        ends = _buffer(list_ends[: rows + 1])
        return pa.Array.from_buffers(HEADER_TYPE, rows, [_buffer(list_valid), ends], children=[items])

    def _raise_error(self, sections: Longs, state: Longs) -> None:
        if state[k.ERROR] == k.BAD_TIME:
            raise BadTimestamp(self.topic, self.partition, int(state[k.ERROR_OFFSET]), int(state[k.ERROR_TIME]))
        if state[k.ERROR] != k.OK:
            base_offset = int(sections[state[k.ERROR_SECTION], k.FIRST_OFFSET])
            raise CorruptBatch(self.topic, self.partition, base_offset, k.REASONS[int(state[k.ERROR])])

    def _constants(self, rows: int) -> tuple[Array, Array]:
        """The topic and partition columns, slices of columns that were created before."""
        if len(self._topics) < rows:
            room = max(1 << (rows - 1).bit_length(), 1024)
            name = self.topic.encode()
            ends = np.arange(room + 1, dtype=np.int32) * len(name)
            text = np.tile(np.frombuffer(name, np.uint8), room)
            self._topics = _binary(room, ends, text, None, len(text), 0, pa.string())
            self._partitions = _fixed(pa.int32(), room, np.full(room, self.partition, np.int32))
        return self._topics.slice(0, rows), self._partitions.slice(0, rows)


def _binary(
    rows: int, ends: npt.NDArray[np.int32], data: Bytes, valid: Bytes | None, size: int, nulls: int, kind: Any = None
) -> Array:
    validity = None if valid is None or nulls == 0 else _buffer(valid)
    buffers = [validity, _buffer(ends[: rows + 1]), _buffer(data[:size])]
    return pa.Array.from_buffers(kind or pa.binary(), rows, buffers, 0 if validity is None else nulls)


def _texts(array: Array) -> Array:
    """The bytes of an array without nulls as text."""
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([each.decode(errors="replace") for each in array.to_pylist()], pa.string())


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(values)  # type: ignore[arg-type]  # numpy arrays are buffers, which the stubs do not know


def _fixed(kind: Any, rows: int, values: npt.NDArray[Any]) -> Array:
    return pa.Array.from_buffers(kind, rows, [None, _buffer(values[:rows])], 0)
