"""The messages of a server, as bytes. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct, pack
from typing import NamedTuple

from barnabas.sql.interface import Notice, SqlError
from barnabas.sql.postgres.messages import Fatal

PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = b"1\0\0\0\4", b"2\0\0\0\4", b"3\0\0\0\4"
NO_DATA, EMPTY_QUERY, PORTAL_SUSPENDED, COPY_DONE = b"n\0\0\0\4", b"I\0\0\0\4", b"s\0\0\0\4", b"c\0\0\0\4"
AUTHENTICATION_OK = b"R\0\0\0\x08\0\0\0\0"
CLEARTEXT, SASL, SASL_CONTINUE, SASL_FINAL = 3, 10, 11, 12  # kinds of authentication requests
TLS_ACCEPTED, ENCRYPTION_REFUSED = b"S", b"N"
_FIELD = Struct(">IhIhih")
_LENGTH = Struct(">I")


class Described(NamedTuple):
    """A column of a RowDescription: its size is negative for types of no fixed size, its modifier -1 for none."""

    name: str
    oid: int
    size: int
    modifier: int
    format: int


def message(kind: bytes, *parts: bytes) -> bytes:
    """A message of any kind."""
    body = b"".join(parts)
    return kind + _LENGTH.pack(len(body) + 4) + body


def text(value: str) -> bytes:
    """A field of text; a NUL cannot be in one."""
    return value.replace("\0", "").encode(errors="replace") + b"\0"


def authentication(kind: int, data: bytes = b"") -> bytes:
    """A request to prove something."""
    return message(b"R", pack(">I", kind), data)


def parameter_status(name: str, value: str) -> bytes:
    """A setting that the client wants to know."""
    return message(b"S", text(name), text(value))


def backend_key(process: int, secret: bytes) -> bytes:
    """With these a client can cancel from another connection."""
    return message(b"K", pack(">I", process), secret)


def negotiate(version: int, unknown: Sequence[str]) -> bytes:
    """The newest version that the server speaks, and the options that it does not know."""
    return message(b"v", pack(">II", version, len(unknown)), *map(text, unknown))


def ready(state: str) -> bytes:
    """ReadyForQuery, with the state of the transaction: I, T or E."""
    return b"Z\0\0\0\5" + state.encode()


def row_description(columns: Iterable[Described]) -> bytes:
    """RowDescription; no column belongs to a table that has an oid."""
    fields = [text(each.name) + _FIELD.pack(0, 0, each.oid, each.size, each.modifier, each.format) for each in columns]
    return message(b"T", pack(">H", len(fields)), *fields)


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", pack(f">H{len(oids)}I", len(oids), *oids))


def command_complete(tag: str) -> bytes:
    """The end of a statement."""
    return message(b"C", text(tag))


def copy_response(kind: bytes, form: int, columns: int) -> bytes:
    """The start of a COPY in (`G`) or out (`H`)."""
    return message(kind, pack(f">bH{columns}H", form, columns, *[form] * columns))


def error(failure: SqlError, *, offset: int = 0) -> bytes:
    """ErrorResponse.

    Args:
        offset: of the statement in the text that the client sent, in characters.
    """
    return _told(b"E", "FATAL" if isinstance(failure, Fatal) else "ERROR", failure, offset)


def notice(told: Notice) -> bytes:
    """NoticeResponse."""
    return _told(b"N", told.severity, SqlError(told.sqlstate, told.message, hint=told.hint), 0)


def _told(kind: bytes, severity: str, failure: SqlError, offset: int) -> bytes:
    fields = [(b"S", severity), (b"V", severity), (b"C", failure.sqlstate), (b"M", failure.message)]
    if failure.detail:
        fields.append((b"D", failure.detail))
    if failure.hint:
        fields.append((b"H", failure.hint))
    if failure.position is not None:
        fields.append((b"P", str(failure.position + offset)))
    if failure.table:
        fields += zip((b"s", b"t"), _parts(failure.table), strict=True)
    fields += [(code, name) for code, name in ((b"c", failure.column), (b"n", failure.constraint)) if name]
    return message(kind, *(code + text(value) for code, value in fields), b"\0")


def _parts(table: str) -> tuple[str, str]:
    """The schema and the name of a table."""
    schema, _, name = table.rpartition(".")
    return schema or "public", name
