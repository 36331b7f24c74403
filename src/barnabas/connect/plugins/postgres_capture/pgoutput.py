"""The messages of PostgreSQL's output plug-in pgoutput, protocol version 1, as far as they are read one by one: those of tables. All others
are read by `kernels.py`, many at once.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeVar

from barnabas.connect.errors import ConnectError

_OID, _COLUMN, _COUNT, _TRUNCATE = Struct(">I"), Struct(">Ii"), Struct(">h"), Struct(">iB")
T = TypeVar("T")


class Begin(NamedTuple):
    """A transaction begins: its commit record is at `commit_lsn`."""

    commit_lsn: int
    time_us: int
    xid: int


class Column(NamedTuple):
    """A column of a relation."""

    name: str
    type_oid: int
    modifier: int
    is_identity: bool  # the old rows of updates and deletes have it


class Relation(NamedTuple):
    """A table as it is from here on. Identity: d default, n nothing, f full, i index."""

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[Column, ...]


def unreadable(data: bytes) -> ConnectError:
    """The error of a message that is cut off, or of an unknown kind."""
    return ConnectError(f"a message of pgoutput cannot be read; it begins with {data[:40]!r}")


def _checked(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    @wraps(read)
    def checked(data: bytes) -> T:
        try:
            return read(data)
        except (IndexError, ValueError, StructError):
            raise unreadable(data) from None

    return checked


@_checked
def truncated_of(data: bytes) -> tuple[int, ...]:
    """The tables that a message says are empty. Raises ConnectError."""
    count, _ = _TRUNCATE.unpack_from(data, 1)
    return tuple(_OID.unpack_from(data, 6 + 4 * at)[0] for at in range(count))


@_checked
def relation_of(data: bytes) -> Relation:
    """The table of a message. Raises ConnectError."""
    (oid,) = _OID.unpack_from(data, 1)
    schema, at = _string(data, 5)
    table, at = _string(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _string(data, at + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        columns.append(Column(name, type_oid, modifier, bool(flags & 1)))
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
