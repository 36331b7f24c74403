"""The connection that reads the binary log. It knows whether more has come, so that transactions that come together are read together."""

from __future__ import annotations

import select
from collections.abc import Iterator, Mapping
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import HeartbeatLogEvent, QueryEvent, RotateEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from barnabas.connect.plugins.mysql_capture.settings import Settings

BEAT_S = 0.2  # between two signs of life of the server: then the source looks whether it is closed
EVENTS = (TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent, QueryEvent, RotateEvent, HeartbeatLogEvent)
AT_ONCE = 256 << 10  # bytes


class LogReader:
    """Reads the binary log from an offset on."""

    def __init__(self, settings: Settings, offset: Mapping[str, Any]) -> None:
        self._connections: list[Any] = []
        self._reader: Any = BinLogStreamReader(
            connection_settings=dict(settings.connection), server_id=settings.server_id, blocking=True, resume_stream=True,
            log_file=offset["file"], log_pos=offset["pos"], only_events=list(EVENTS), slave_heartbeat=BEAT_S, enable_logging=False,
            pymysql_wrapper=self._connected,
        )  # fmt: skip

    def _connected(self, **settings: Any) -> Any:
        """Connect for the library, which gives the name of the database by a key that PyMySQL has deprecated."""
        settings["database"] = settings.pop("db", None)
        connection: Any = pymysql.connect(**settings)
        # what it has read from before has nothing in its buffer, because the server waits for a command
        connection._rfile = _Buffered(connection._sock, connection._rfile)
        # the library connects again when a connection is lost
        self._connections = [each for each in self._connections if each.open] + [connection]
        return connection

    def __iter__(self) -> Iterator[Any]:
        return iter(self._reader)

    @property
    def place(self) -> tuple[str, int]:
        """File and position behind the event that was read last."""
        return self._reader.log_file, int(self._reader.log_pos or 0)

    def has_more(self) -> bool:
        """Whether the next event has begun to come."""
        return any(each.open and each._rfile.has_more() for each in self._connections)

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()


class _Buffered:
    """What PyMySQL reads from.

    Args:
        replaced: what it has read from before, closed together with this.
    """

    def __init__(self, sock: Any, replaced: Any) -> None:
        self._socket, self._replaced = sock, replaced
        self._data, self._at = b"", 0

    def read(self, count: int) -> bytes:
        """So many bytes; fewer at the end of the connection. Raises OSError."""
        end = self._at + count
        if end <= len(self._data):
            begin, self._at = self._at, end
            return self._data[begin:end]
        parts = [self._data[self._at :]]
        missing = count - len(parts[0])
        self._data, self._at = b"", 0
        while missing > 0:
            more: bytes = self._socket.recv(max(missing, AT_ONCE))
            if not more:
                break
            if len(more) > missing:
                self._data, self._at = more, missing
                more = more[:missing]
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def has_more(self) -> bool:
        """Whether bytes are here that were not read."""
        if self._at < len(self._data):
            return True
        pending = getattr(self._socket, "pending", None)  # of TLS
        return bool((pending is not None and pending()) or select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        """Give up what PyMySQL has read from before."""
        self._replaced.close()
