"""Reads a file of a listing from where it was left: batches with the progress behind them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import structs

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.files.line_formats import LineFormat
from barnabas.connect.plugins.files.progress import Progress, head_of
from barnabas.connect.plugins.files.storage import Entry, Storage
from barnabas.connect.plugins.files.table_formats import TableFormat

MOST_LINE_BYTES = 64 << 20  # no broker takes so much; a quotation mark that nothing closes would fill the memory
_COMPRESSED: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class Part(NamedTuple):
    """Records of a file, and how far they go.

    Args:
        records: None: there are none.
        bad: lines that are no records, as bytes, and why.
    """

    records: pa.Table | None
    progress: Progress
    bad: list[tuple[bytes, str]]


class Reading(NamedTuple):
    """How the files of a connector are read.

    Args:
        buffer_bytes: of a part.
        follows: whether a file is never finished.
        minimum_age_ms: after which a file that does not change is finished.
    """

    storage: Storage
    buffer_bytes: int
    follows: bool
    minimum_age_ms: int

    def is_old(self, entry: Entry) -> bool:
        """Whether nobody can be writing the file any more."""
        return entry.is_whole or time.time() * 1000 - entry.modified_ms >= self.minimum_age_ms

    def lines(self, form: LineFormat, entry: Entry, known: Progress | None) -> Iterator[Part]:
        """The next lines of a file, and at last that it is finished, if it is. Raises Changed, ConnectError."""
        opened = _COMPRESSED.get(entry.name[entry.name.rfind(".") :]) if "." in entry.name else None
        with self.storage.open(entry) as raw:
            position = 0
            if known is not None and (known.fits(entry) or (opened is None and known.continues(raw, entry.size))):
                position = known.position
            raw.seek(0)
            try:
                file = raw if opened is None else opened(raw)
                position = max(position, form.begin(file))
                file.seek(position)
                for part in self._parts(form, entry, file, position):
                    yield part if opened is not None else _with_head(part, raw)
            except _BROKEN as error:
                raise ConnectError(f"it cannot be decompressed: {str(error) or type(error).__name__}") from None

    def _parts(self, form: LineFormat, entry: Entry, file: IO[bytes], position: int) -> Iterator[Part]:
        rest = b""
        while data := file.read(self.buffer_bytes):
            data = rest + data
            ends = form.ends(data)
            if not len(ends):
                if len(data) > MOST_LINE_BYTES:
                    raise ConnectError(f"the line at the position {position} has more than {MOST_LINE_BYTES} bytes")
                rest = data
                continue
            end = int(ends[-1])
            yield _part(form, data[:end], ends, Progress(position + end, entry), position)
            position, rest = position + end, data[end:]
        if self.follows or not self.is_old(entry):
            return
        done = Progress(position + len(rest), entry, is_done=True)
        if not rest:
            yield Part(None, done, [])
            return
        if not rest.endswith(b"\n"):
            rest += b"\n"
        yield _part(form, rest, np.array([len(rest)]), done, position)

    def rows(self, form: TableFormat, entry: Entry, known: Progress | None) -> Iterator[Part]:
        """The rows of a file that are not read yet, and that it is finished. Raises Changed, ConnectError."""
        position = known.position if known is not None and known.fits(entry) else 0
        with self.storage.open(entry) as file:
            last: Part | None = None
            for records in form.rows(file, position):
                if last is not None:
                    yield last
                position += records.num_rows
                last = Part(records, Progress(position, entry), [])
            done = Progress(position, entry, is_done=True)
            yield Part(None if last is None else last.records, done, [])


def _part(form: LineFormat, data: bytes, ends: Any, progress: Progress, position: int) -> Part:
    parsed = form.parse(data, ends)
    bad = [(line, f"at the position {position + begin}: {reason}") for begin, line, reason in parsed.bad]
    return Part(parsed.records, progress, bad)


def _with_head(part: Part, file: IO[bytes]) -> Part:
    """The part with the checksum of the file's first bytes; the file is where it was."""
    place = file.tell()
    head = head_of(file, part.progress.position)
    file.seek(place)
    return part._replace(progress=structs.replace(part.progress, head=head))
