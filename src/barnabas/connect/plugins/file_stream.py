"""Kafka Connect's first examples: lines of a file into a topic, and records of a topic into a file.

The offset of the source is Kafka Connect's: `{"position": bytes}` for the partition `{"filename": path}`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Batch, Config, Identity, Offset, Sink, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.converters.plain import StringConverter
from barnabas.connect.errors import ConnectError
from barnabas.connect.validators import NonEmptyString, Range

FILE, TOPIC, BATCH_SIZE = "file", "topic", "batch.size"
READ_BYTES = 4 << 20
NON_EMPTY = NonEmptyString()
LINE_FEED, CARRIAGE_RETURN = 10, 13


class FileStreamSource(Source):
    """Reads a file that grows, line by line; without a file, the standard input of the engine."""

    config = (
        ConfigDef()
        .define(
            FILE, Type.STRING, None, importance=Importance.HIGH,
            documentation="Source filename. If not specified, the standard input will be used",
        )
        .define(TOPIC, Type.STRING, importance=Importance.HIGH, documentation="The topic to publish data to", validator=NON_EMPTY)
        .define(
            BATCH_SIZE, Type.INT, 2000, importance=Importance.LOW, validator=Range(1),
            documentation="The maximum number of records the source task can read from the file each time it is polled",
        )
    )  # fmt: skip

    def __init__(self) -> None:
        self._closed = False

    @classmethod
    def check_offset(cls, config: Mapping[str, str], partition: Mapping[str, Any], offset: Offset | None) -> None:
        if "filename" not in partition:
            raise ConnectError("Partition objects should contain the key 'filename'")
        if offset is None:
            return
        if "position" not in offset:
            raise ConnectError("Offset objects should either be null or contain the key 'position'")
        position = offset["position"]
        if not isinstance(position, int) or isinstance(position, bool):
            raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
        if position < 0:
            raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        path = config[FILE]
        partition = {} if path is None else {"filename": path}
        position = next((int(offset["position"]) for known, offset in offsets if known == partition), 0)
        rest = b""
        file = _waited_for(path)
        while file is None:
            if self._closed:
                return
            yield None
            file = _waited_for(path)
        with file:
            if path is not None:
                file.seek(position)
            while not self._closed:
                data = file.read(READ_BYTES)
                if not data:
                    yield None
                    continue
                data = rest + data
                ends = line_ends(data)
                begin = 0
                for first in range(0, len(ends), config[BATCH_SIZE]):
                    end = int(ends[min(first + config[BATCH_SIZE], len(ends)) - 1])
                    values = lines_of(data[begin:end])
                    position, begin = position + end - begin, end
                    yield Batch(pa.table({"value": values}), {"position": position}, partition, is_records=True)
                rest = data[begin:]

    def close(self) -> None:
        self._closed = True


def _waited_for(path: str | None) -> IO[bytes] | None:
    """The file; None while it does not exist, as Kafka Connect's source waits for it."""
    if path is None:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConnectError(f"{path} cannot be read: {error.strerror}") from None


def line_ends(data: bytes) -> Any:
    """Where the lines of some bytes end: behind each line feed, and each carriage return that no line feed follows."""
    found = np.frombuffer(data, np.uint8)
    ends = found == LINE_FEED
    if CARRIAGE_RETURN in data:
        alone = (found == CARRIAGE_RETURN)[:-1] & ~ends[1:]  # the last byte may be half of an end
        ends[:-1] |= alone
    return np.flatnonzero(ends) + 1


def lines_of(data: bytes) -> Any:
    """Whole lines, without their ends, as strings. Bytes that are no UTF-8 become the replacement character."""
    if CARRIAGE_RETURN in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    whole: Any = pa.array([data[:-1]], pa.binary())
    return StringConverter({}, is_key=False).decode(pc.split_pattern(whole, "\n").flatten()).column


class FileStreamSink(Sink):
    """Writes the values of records to a file, a line each; without a file, to the standard output of the engine."""

    config = ConfigDef().define(
        FILE, Type.STRING, None, importance=Importance.HIGH,
        documentation="Destination filename. If not specified, the standard output will be used",
    )  # fmt: skip

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: str | None = None

    def open(self, config: Config) -> None:
        self._path = path = config[FILE]
        try:
            self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb") if path is None else open(path, "ab", buffering=0)  # noqa: SIM115 - `close` closes it
        except OSError as error:
            raise ConnectError(f"{path} cannot be written: {error.strerror}") from None

    def write(self, records: pa.Table, identity: Identity) -> None:
        del identity
        assert self._file is not None
        if not records.num_rows:
            return
        value: Any = records.column("value").combine_chunks()
        texts: Any = StringConverter({}, is_key=False).encode(value, "")
        filled: Any = pc.fill_null(texts, b"null")
        joined: Any = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), b"\n")
        data = memoryview(b"%b\n" % joined[0].as_py())
        begun = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
            self._file.flush()
        except OSError as error:
            if self._path is not None and stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                os.ftruncate(self._file.fileno(), begun)  # the batch comes again as a whole
            raise ConnectError(f"{self._path or 'the standard output'} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
