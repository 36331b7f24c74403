"""The connection that streams from a replication slot. psycopg2 speaks the replication protocol; psycopg 3 does not."""

from __future__ import annotations

import select
from typing import Any, NamedTuple

import psycopg2
import psycopg2.errors
from psycopg2.extras import REPLICATION_LOGICAL, LogicalReplicationConnection

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture.settings import Settings

LOST = "has lost the connection of the slot"
ENDED = ("08", "57")  # classes of SQLSTATE: the connection is broken; an operator or a shutdown ended it
STATUS_S = 10  # between two reports to the server; its wal_sender_timeout is a minute by default


class Consistent(NamedTuple):
    """A slot that was created: changes behind `lsn` are in it, all others are visible in the snapshot."""

    lsn: int
    snapshot: str


class Messages:
    """Messages of a slot, and their places."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.lsns: list[int] = []

    @property
    def is_whole(self) -> bool:
        """Whether there are some, and no transaction is open behind them."""
        kinds = (each[:1] for each in reversed(self.payloads))
        return bool(self.payloads) and next((kind for kind in kinds if kind in (b"B", b"C")), b"") == b"C"

    @property
    def parts(self) -> tuple[list[bytes], list[int]]:
        """Messages and places."""
        return self.payloads, self.lsns

    def clear(self) -> None:
        """Forget them."""
        self.payloads, self.lsns = [], []


class Stream:
    """A connection for replication.

    Raises:
        ConnectError: the database cannot be reached.
    """

    def __init__(self, settings: Settings, place: str) -> None:
        self._settings, self._place = settings, place
        with _Translated(place, "cannot be reached"):
            connection: Any = psycopg2.connect(**settings.connection, connection_factory=LogicalReplicationConnection)
        self._connection, self._cursor = connection, connection.cursor()

    def create_slot(self, name: str, *, temporary: bool) -> Consistent:
        """Create a slot. Its snapshot is there until the next command of this connection."""
        with _Translated(self._place, f"does not create the slot {name}"):
            self._cursor.execute(f'CREATE_REPLICATION_SLOT "{name}" {"TEMPORARY " if temporary else ""}LOGICAL pgoutput')
            _, lsn, snapshot, _ = self._cursor.fetchone()
        return Consistent(lsn_of(lsn), snapshot)

    def start(self, lsn: int) -> None:
        """Begin to stream: transactions with the commit record at this place or behind it."""
        options = {"proto_version": "1", "publication_names": f'"{self._settings.publication}"'}
        with _Translated(self._place, f"does not stream from the slot {self._settings.slot}"):
            self._cursor.start_replication(
                slot_name=self._settings.slot, slot_type=REPLICATION_LOGICAL, start_lsn=lsn, options=options, decode=False,
                status_interval=STATUS_S,
            )  # fmt: skip

    def receive(self, into: Messages, most: int, most_bytes: int) -> bool:
        """Take what has come, up to limits; whether that is all."""
        read, payloads, lsns = self._cursor.read_message, into.payloads, into.lsns
        size = sum(map(len, payloads))
        with _Translated(self._place, LOST):
            while len(payloads) < most and size < most_bytes:
                if (found := read()) is None:
                    return True
                payload = found.payload
                size += len(payload)
                payloads.append(payload)
                lsns.append(found.data_start)
        return False

    def wait(self, longest_s: float) -> None:
        """Wait until something comes."""
        with _Translated(self._place, LOST):
            select.select([self._connection], [], [], longest_s)

    @property
    def seen_lsn(self) -> int:
        """Up to where the server has looked for changes."""
        return int(self._cursor.wal_end or 0)

    def confirm(self, lsn: int) -> None:
        """Tell the server up to where the changes are in the log for good."""
        with _Translated(self._place, LOST):
            self._cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, apply_lsn=lsn, force=True)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class SlotInUse(ConnectError):
    """Another connection streams from the slot."""


class StreamLost(ConnectError):
    """The server or the network has ended the stream. `reason` is what the server has said of it; None: nothing that explains it."""

    def __init__(self, message: str, reason: str | None) -> None:
        super().__init__(message)
        self.reason = reason


class _Translated:
    def __init__(self, place: str, what: str) -> None:
        self._place, self._what = place, what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, (psycopg2.Error, OSError, ValueError)):
            return
        text = " ".join(str(error).split())
        message = f"{self._place} {self._what}: {text}"
        if isinstance(error, psycopg2.errors.ObjectInUse):
            raise SlotInUse(message) from error
        if self._what == LOST:
            state = getattr(error, "pgcode", None)
            raise StreamLost(message, None if state is None or state.startswith(ENDED) else text) from error
        raise ConnectError(message) from error


def lsn_of(text: str) -> int:
    """The number of a place in the log, such as 0/16B3748."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    """A place in the log as PostgreSQL shows it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
