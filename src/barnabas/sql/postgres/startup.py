"""The first packets of a connection, which have no kind: requests of encryption, of a cancellation, of a session. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import unpack_from
from typing import NamedTuple

from barnabas import limits
from barnabas.sql.postgres.messages import Fatal, decoded

TLS_REQUEST, GSS_REQUEST, CANCEL_REQUEST = (1234 << 16) + 5679, (1234 << 16) + 5680, (1234 << 16) + 5678
MAJOR = 3
NEWEST = (MAJOR << 16) + 2
OPTION = "_pq_."  # the beginning of the names of protocol options; none is known
UTF8 = frozenset({"utf8", "unicode", "sql_ascii"})


class EncryptionRequest(NamedTuple):
    """A client that asks for TLS or for GSSAPI's encryption."""

    tls: bool


class CancelRequest(NamedTuple):
    """A client that wants the statement of another connection to end."""

    process: int
    secret: bytes


class Startup(NamedTuple):
    """A client that wants a session.

    Args:
        version: that is spoken from here on.
        unknown: protocol options that the server lacks; `newer` says that the client asked for a newer version.
        parameters: settings, those of `options` among them; without `user` and `database`.
    """

    version: int
    newer: bool
    unknown: tuple[str, ...]
    user: str
    database: str
    parameters: Mapping[str, str]

    @property
    def negotiates(self) -> bool:
        """Whether the client must be told what the server lacks."""
        return self.newer or bool(self.unknown)


Packet = EncryptionRequest | CancelRequest | Startup


class StartupReader:
    """Takes bytes until a packet is complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes) -> Packet | None:
        """The packet that these bytes complete; `rest` has those after it. Raises Fatal."""
        self._buffer += data
        if len(self._buffer) < 8:
            return None
        size, code = unpack_from(">II", self._buffer)
        if not 8 <= size <= limits.MAX_POSTGRES_STARTUP_BYTES:
            raise Fatal("08P01", "invalid length of startup packet")
        if len(self._buffer) < size:
            return None
        body = bytes(self._buffer[8:size])
        del self._buffer[:size]
        return _packet(code, body)

    @property
    def rest(self) -> bytes:
        """Bytes that arrived after the last packet; they are given once."""
        found = bytes(self._buffer)
        self._buffer.clear()
        return found


def _packet(code: int, body: bytes) -> Packet:
    if code in (TLS_REQUEST, GSS_REQUEST):
        if body:
            raise Fatal("08P01", "invalid length of startup packet")
        return EncryptionRequest(code == TLS_REQUEST)
    if code == CANCEL_REQUEST:
        if not 8 <= len(body) <= 4 + 256:
            raise Fatal("08P01", "invalid length of a cancel request")
        return CancelRequest(unpack_from(">I", body)[0], body[4:])
    if code >> 16 != MAJOR:
        raise Fatal("08P01", f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0 to 3.2")
    return _startup(code, body)


def _startup(code: int, body: bytes) -> Startup:
    if not body.endswith(b"\0"):
        raise Fatal("08P01", "invalid startup packet layout: expected terminator as last byte")
    words = body[:-1].split(b"\0")
    if words.pop() != b"" or len(words) % 2:
        raise Fatal("08P01", "invalid startup packet layout: a name without a value")
    told = {decoded(name): decoded(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    unknown = tuple(name for name in told if name.startswith(OPTION))
    user = told.get("user", "")
    if not user:
        raise Fatal("28000", "no PostgreSQL user name specified in startup packet")
    if told.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise Fatal("0A000", "replication connections are not supported")
    _check_encoding(told.get("client_encoding", "UTF8"))
    parameters = {
        name: value for name, value in told.items() if name not in (*unknown, "user", "database", "options", "replication")
    }
    if "client_encoding" in parameters:
        parameters["client_encoding"] = "UTF8"  # asyncpg says 'utf-8', with the quotes
    return Startup(
        min(code, NEWEST),
        code > NEWEST,
        unknown,
        user,
        told.get("database") or user,
        _options(told.get("options", "")) | parameters,
    )


def _check_encoding(name: str) -> None:
    if name.lower().strip("'\" ").replace("-", "").replace("_", "") not in {each.replace("_", "") for each in UTF8}:
        raise Fatal("22023", f'invalid value for parameter "client_encoding": "{name}"', hint="The server speaks UTF8 alone.")


def _options(text: str) -> dict[str, str]:
    """Settings of a command line: `-c name=value`, `-cname=value`, `--name=value`; a backslash quotes the next character."""
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|[^\s\\])+", text)]
    found, waiting = dict[str, str](), iter(words)
    for word in waiting:
        if word == "-c":
            word = next(waiting, "")
        elif word.startswith(("--", "-c")):
            word = word[2:]
        else:
            raise Fatal("22023", f"invalid command-line argument for server process: {word}")
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Fatal("22023", f"invalid command-line argument for server process: {word}")
        found[name.replace("-", "_")] = value
    return found
