"""The messages of a client: bytes to frames, frames to fields. No I/O.

Rules
  1. A frame that lies about its kind or length ends the connection (`Fatal`), because the next frame cannot be found.
  2. A frame whose fields do not add up is an error of its statement (`SqlError` 08P01); the connection goes on.
  3. Nothing is allocated for bytes that have not arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error, unpack_from
from typing import NamedTuple

from barnabas.sql.interface import SqlError

QUERY, PARSE, BIND, DESCRIBE, EXECUTE, CLOSE, FLUSH, SYNC = b"Q", b"P", b"B", b"D", b"E", b"C", b"H", b"S"
COPY_DATA, COPY_DONE, COPY_FAIL, PASSWORD, TERMINATE, FUNCTION_CALL = b"d", b"c", b"f", b"p", b"X", b"F"
SMALL = frozenset({DESCRIBE, EXECUTE, CLOSE, FLUSH, SYNC, COPY_DONE, TERMINATE})  # Postgres limits these, too
LARGE = frozenset({QUERY, PARSE, BIND, COPY_DATA, COPY_FAIL, PASSWORD, FUNCTION_CALL})
MAX_SMALL_BYTES = 10_000
TEXT, BINARY = 0, 1
_HEAD, _INT16, _INT32, _UINT32 = Struct(">cI"), Struct(">H"), Struct(">i"), Struct(">I")


class Fatal(SqlError):
    """An error after which the connection ends."""


class Message(NamedTuple):
    """A frame: its kind, one byte, and what follows its length."""

    kind: bytes
    body: bytes


class Frames:
    """Cuts a stream of bytes into messages.

    Args:
        most: bytes of a message.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._buffer = bytearray()
        self._at = 0

    @property
    def waiting(self) -> int:
        """Bytes of a message whose end has not arrived."""
        return len(self._buffer) - self._at

    def receive(self, data: bytes) -> list[Message]:
        """The messages that these bytes complete. Raises Fatal."""
        buffer, found = self._buffer, []
        buffer += data
        at, size = self._at, len(buffer)
        while size - at >= 5:
            kind, length = _HEAD.unpack_from(buffer, at)
            if kind not in LARGE and kind not in SMALL:
                raise Fatal("08P01", f"invalid frontend message type {kind[0]}")
            if length < 4 or length > (MAX_SMALL_BYTES if kind in SMALL else self.most):
                raise Fatal("08P01", f"invalid length {length} of a message of type {kind[0]}")
            end = at + 1 + length
            if end > size:
                break
            found.append(Message(kind, bytes(memoryview(buffer)[at + 5 : end])))
            at = end
        if at == size:
            buffer.clear()
            at = 0
        elif at > 65_536:
            del buffer[:at]
            at = 0
        self._at = at
        return found


class Parse(NamedTuple):
    """A statement to check; a type of 0 is not told."""

    name: str
    text: str
    types: Sequence[int]


class Bind(NamedTuple):
    """Values for a statement: a portal. Formats: none for text, one for all, or one each."""

    portal: str
    statement: str
    formats: Sequence[int]
    values: Sequence[bytes | None]
    result_formats: Sequence[int]


class Target(NamedTuple):
    """A statement (`S`) or a portal (`P`) to describe or to close."""

    kind: bytes
    name: str


class Execute(NamedTuple):
    """A portal to run; 0 rows are all."""

    portal: str
    most_rows: int


def parse_query(body: bytes) -> str:
    """The text of a simple query. Raises SqlError."""
    reader = _Reader(body)
    text = reader.text()
    reader.end()
    return text


def parse_parse(body: bytes) -> Parse:
    """Raises SqlError."""
    reader = _Reader(body)
    name, text = reader.text(), reader.text()
    types = [reader.uint32() for _ in range(reader.count())]
    reader.end()
    return Parse(name, text, types)


def parse_bind(body: bytes) -> Bind:
    """Raises SqlError."""
    reader = _Reader(body)
    portal, statement = reader.text(), reader.text()
    formats = reader.formats()
    values = [reader.value() for _ in range(reader.count())]
    result_formats = reader.formats()
    reader.end()
    if len(formats) > 1 and len(formats) != len(values):
        raise SqlError("08P01", f"bind message has {len(formats)} parameter formats but {len(values)} parameters")
    return Bind(portal, statement, formats, values, result_formats)


def parse_target(body: bytes) -> Target:
    """Raises SqlError."""
    reader = _Reader(body)
    kind, name = reader.take(1), reader.text()
    reader.end()
    if kind not in (b"S", b"P"):
        raise SqlError("08P01", f"invalid subtype {kind[0]} of a message: S is a statement, P a portal")
    return Target(kind, name)


def parse_execute(body: bytes) -> Execute:
    """Raises SqlError."""
    reader = _Reader(body)
    portal, most_rows = reader.text(), reader.int32()
    reader.end()
    return Execute(portal, max(0, most_rows))


def parse_sasl_start(body: bytes) -> tuple[str, bytes]:
    """The mechanism of a client's log-in and its first message. Raises SqlError."""
    reader = _Reader(body)
    mechanism, first = reader.text(), reader.value()
    reader.end()
    return mechanism, first or b""


def format_of(formats: Sequence[int], index: int) -> int:
    """The format of a field, by the rule of `Bind`."""
    return TEXT if not formats else formats[0] if len(formats) == 1 else formats[index]


def decoded(data: bytes) -> str:
    """A text of a client. Raises SqlError 22021."""
    try:
        return data.decode()
    except UnicodeDecodeError as failure:
        found = " ".join(f"0x{byte:02x}" for byte in data[failure.start : failure.start + 4])
        raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": {found}') from None


class _Reader:
    """The fields of one message."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise SqlError("08P01", "invalid string in message")
        found, self._at = self._body[self._at : end], end + 1
        return decoded(found)

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._body):
            raise _short()
        found, self._at = self._body[self._at : end], end
        return found

    def count(self) -> int:
        return int(self._number(_INT16))

    def int32(self) -> int:
        return self._number(_INT32)

    def uint32(self) -> int:
        return self._number(_UINT32)

    def _number(self, kind: Struct) -> int:
        try:
            (found,) = kind.unpack_from(self._body, self._at)
        except error:
            raise _short() from None
        self._at += kind.size
        return int(found)

    def value(self) -> bytes | None:
        size = self.int32()
        return None if size == -1 else self.take(size)

    def formats(self) -> Sequence[int]:
        count = self.count()
        found = unpack_from(f">{count}H", self.take(2 * count))
        if not {TEXT, BINARY}.issuperset(found):
            raise SqlError("22023", f"invalid format code: {next(each for each in found if each not in (TEXT, BINARY))}")
        return found

    def end(self) -> None:
        if self._at != len(self._body):
            raise SqlError("08P01", "invalid message format: bytes after its last field")


def _short() -> SqlError:
    return SqlError("08P01", "insufficient data left in message")
