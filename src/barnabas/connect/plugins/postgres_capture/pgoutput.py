"""The messages of PostgreSQL's output plug-in pgoutput, protocol version 1, with values as texts.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from barnabas.connect.errors import ConnectError

_BEGIN, _COMMIT, _RELATION = Struct(">qqI"), Struct(">bqqq"), Struct(">I")
_COLUMN, _COUNT, _LENGTH, _TRUNCATE = Struct(">Ii"), Struct(">h"), Struct(">i"), Struct(">iB")
_NULL, _UNCHANGED, _TEXT = b"nut"
_EPOCH_US = 946_684_800_000_000  # 2000-01-01, from which PostgreSQL counts


class Toast(Enum):
    """A large value that a change left as it was; the stream does not have it."""

    UNCHANGED = "unchanged"


Row = tuple[bytes | Toast | None, ...]


class Begin(NamedTuple):
    """A transaction begins: its commit record is at `commit_lsn`."""

    commit_lsn: int
    time_us: int
    xid: int


class Commit(NamedTuple):
    """A transaction ends; the next one is behind `end_lsn`."""

    commit_lsn: int
    end_lsn: int


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


class Change(NamedTuple):
    """A row was inserted (c), updated (u) or deleted (d).

    Args:
        old: the row before, as far as the table's identity has it.
        is_key: whether `old` has the columns of the identity alone.
    """

    oid: int
    op: str
    old: Row | None
    new: Row | None
    is_key: bool = False


class Truncate(NamedTuple):
    """Tables were emptied."""

    oids: tuple[int, ...]


class Other(NamedTuple):
    """A message that does not matter here: types, origins, messages of applications."""

    kind: str


Message = Begin | Commit | Relation | Change | Truncate | Other


def message_of(data: bytes) -> Message:
    """The message in a payload. Raises ConnectError for one that is cut off."""
    try:
        return _message(data)
    except (IndexError, ValueError, StructError) as wrong:
        raise ConnectError(f"a message of pgoutput cannot be read: {wrong}; it begins with {data[:40]!r}") from None


def _message(data: bytes) -> Message:
    kind = data[:1]
    if kind in (b"I", b"U", b"D"):
        return _change(kind, data)
    if kind == b"B":
        commit_lsn, time_us, xid = _BEGIN.unpack_from(data, 1)
        return Begin(commit_lsn, time_us + _EPOCH_US, xid)
    if kind == b"C":
        _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
        return Commit(commit_lsn, end_lsn)
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        count, _ = _TRUNCATE.unpack_from(data, 1)
        return Truncate(tuple(_RELATION.unpack_from(data, 6 + 4 * at)[0] for at in range(count)))
    if kind in (b"Y", b"O", b"M"):
        return Other(kind.decode())
    raise ConnectError(f"pgoutput sent a message of the unknown kind {kind!r}")


def _change(kind: bytes, data: bytes) -> Change:
    (oid,) = _RELATION.unpack_from(data, 1)
    which = data[5:6]
    if kind == b"I":
        return Change(oid, "c", None, _row(data, 6)[0])
    if kind == b"D":
        return Change(oid, "d", _row(data, 6)[0], None, which == b"K")
    if which == b"N":
        return Change(oid, "u", None, _row(data, 6)[0])
    old, at = _row(data, 6)
    return Change(oid, "u", old, _row(data, at + 1)[0], which == b"K")


def _row(data: bytes, at: int) -> tuple[Row, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: list[bytes | Toast | None] = []
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            (length,) = _LENGTH.unpack_from(data, at + 1)
            begin, at = at + 5, at + 5 + length
            if at > len(data):
                raise ValueError("a value goes beyond the end")
            values.append(data[begin:at])
        elif kind == _NULL:
            values.append(None)
            at += 1
        elif kind == _UNCHANGED:
            values.append(Toast.UNCHANGED)
            at += 1
        else:
            raise ValueError(f"a value has the unknown kind {kind}")
    return tuple(values), at


def _relation(data: bytes) -> Relation:
    (oid,) = _RELATION.unpack_from(data, 1)
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
