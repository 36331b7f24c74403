"""COPY between a statement and a client.

Clients take each CopyData message of a COPY out for one row, as Postgres sends them. The engine gives pieces of its output, and they
are cut into rows here: at each line feed in the text format, which escapes those in values; in CSV at each one outside of quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.arrays import Numbers, bytes_of, fixed_size, join, variable
from barnabas.sql.postgres.channel import Channel
from barnabas.sql.postgres.messages import COPY_DATA, COPY_DONE, COPY_FAIL, FLUSH, SYNC, Fatal, decoded

_OPTIONS = re.compile(r"\b(?:to\s+stdout|from\s+stdin)\b(?P<options>.*)$", re.IGNORECASE | re.DOTALL)
_FORMAT = re.compile(r"\b(?:format\s+'?(?P<named>\w+)|(?P<old>csv|binary))\b", re.IGNORECASE)
_HEADER = re.compile(r"\bheader\b(?!\s+(?:false|off|0)\b)", re.IGNORECASE)
_HEAD = np.dtype([("kind", "S1"), ("length", ">u4")])


class CopyFormat:
    """The format of a COPY, from its text."""

    def __init__(self, text: str) -> None:
        found = _OPTIONS.search(text)
        options = found["options"] if found else ""
        named = _FORMAT.search(options)
        self.name = (named["named"] or named["old"]).lower() if named else "text"
        self.has_header = bool(_HEADER.search(options))


class Incoming:
    """The data that a client sends for a COPY in. The iteration raises SqlError 57014 if the client gives up."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.ended = False

    def __iter__(self) -> Iterator[bytes]:
        while not self.ended:
            kind, body = self._channel.receive()
            if kind == COPY_DATA:
                yield body
            elif kind == COPY_DONE:
                self.ended = True
            elif kind == COPY_FAIL:
                self.ended = True
                raise SqlError("57014", f"COPY from stdin failed: {decoded(body.rstrip(bytes(1)))}")
            elif kind not in (FLUSH, SYNC):
                self.ended = True
                raise Fatal("08P01", f"unexpected message type 0x{kind[0]:02X} during COPY from stdin")

    def drop(self) -> None:
        """Read the rest of the data of a statement that ended before it."""
        for _ in self:
            pass


def outgoing(pieces: Iterable[bytes], form: CopyFormat) -> Iterator[tuple[bytes | memoryview, int]]:
    """CopyData messages, and for each portion the count of its rows."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        ends = _row_ends(data, quoted=form.name == "csv")
        if len(ends):
            yield _messages(data[: ends[-1]], ends), len(ends)
            rest = data[ends[-1] :]
        else:
            rest = data
    if rest:
        yield _messages(rest, np.array([len(rest)])), 1


def _row_ends(data: bytes, *, quoted: bool) -> Numbers:
    """Where the rows end in data that begins with a row."""
    found = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(found == ord("\n"))
    if quoted:
        quotes = np.flatnonzero(found == ord('"'))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]  # an even count of quotes before it
    return ends + 1


def _messages(data: bytes, ends: Numbers) -> memoryview:
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    rows = variable(offsets, data)
    heads = np.empty(len(ends), _HEAD)
    heads["kind"], heads["length"] = b"d", np.diff(offsets) + 4
    return bytes_of(join(fixed_size(heads), rows))
