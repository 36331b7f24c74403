"""The windows of incremental snapshots: tables are read chunk by chunk, in the order of their keys, while the capture goes on.

Before a chunk is read, a row goes into the table of signals, and another one afterwards. They come by the log of the database, as all
changes do. Rows of the chunk that have changed between the two are left out, because their changes come by the log. The others become
records at the second one, in one transaction with the offset that says how far the reading has come.
"""

from __future__ import annotations

import datetime
import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.connect.plugins.debezium.settings import CaptureSettings
from barnabas.connect.plugins.debezium.signal_topic import SignalTopic
from barnabas.connect.plugins.debezium.signals import CLOSE, OPEN, Reading, Signal, Wanted

AGAIN_S = 1.0  # before a chunk is read again that lacked a change
logger = logging.getLogger(__name__)


class Unreadable(Exception):
    """A table cannot be read by chunks."""


class Chunk(NamedTuple):
    """Rows of a table that were read together.

    Args:
        keys: of the rows, in their order.
        last: the key of the last one, as the offset keeps it; None: there are no rows.
        most: the greatest key of the table, in the same form; empty: the table has no rows.
        is_last: whether no rows follow.
        rows: themselves, as the capture has them.
    """

    keys: Sequence[Hashable]
    last: list[str] | None
    most: list[str]
    is_last: bool
    rows: Any


class Window:
    """The time between the two rows in the table of signals.

    Attributes:
        turn: of the reading when it began.
        is_stale: whether the chunk must be read again, because it may lack a change.
    """

    def __init__(self, name: str, turn: int, chunk: Chunk) -> None:
        self.name, self.turn, self.chunk = name, turn, chunk
        self.is_open = self.is_stale = False
        self._places = {key: place for place, key in enumerate(chunk.keys)}

    def leave_out(self, keys: Iterable[Hashable]) -> None:
        """Leave out rows that have changed."""
        for key in keys:
            self._places.pop(key, None)

    def leave_out_all(self) -> None:
        """The table was emptied."""
        self._places.clear()

    @property
    def left(self) -> list[int]:
        """The places of the rows that are left."""
        return list(self._places.values())


class Windows(ABC):
    """See the module. A capture calls `signalled` for each signal of the log, and `go_on` between two transactions.

    Args:
        reading: what is to be read, as the offset has it.

    Attributes:
        window: that was begun; None: no chunk waits.
    """

    def __init__(self, settings: CaptureSettings, reading: Reading) -> None:
        self.reading = reading
        self.window: Window | None = None
        self._not_before_s = 0.0
        self._by_table = "source" in settings.channels
        self._topic = SignalTopic(settings, settings.signal_options) if "kafka" in settings.channels else None

    def signalled(self, signal: Signal) -> Chunk | None:
        """Do what a signal says. What is left of the chunk whose window ends there, unless it must be read again."""
        window = self.window
        if signal.kind not in {OPEN, CLOSE}:
            if self._by_table:
                self.reading.take(signal, self.captured())
        elif window is None or signal.id not in {f"{window.name}-open", f"{window.name}-close"}:
            return None  # of an earlier start, or of another capture
        elif signal.kind == OPEN:
            window.is_open, window.is_stale = True, window.is_stale or not self.has_seen(window.chunk)
        elif window.is_open:
            self.window = None
            return self._closed(window)
        return None

    def _closed(self, window: Window) -> Chunk | None:
        chunk, reading = window.chunk, self.reading
        if window.is_stale:
            self._not_before_s = time.monotonic() + AGAIN_S
        if window.is_stale or window.turn != reading.turn:
            return None  # it is read again, or was stopped
        reading.behind, reading.most = chunk.last, chunk.most
        if chunk.is_last:
            logger.info("event=incremental-snapshot-of-table-done table=%r", reading.tables[0].name)
            reading.table_ended()
        return chunk._replace(rows=self.rows_left(chunk, window.left)) if window.left else None

    def go_on(self) -> bool:
        """Read the topic of signals, and the next chunk, if there is one to read, and no window; whether the offset is another one."""
        reading, is_news = self.reading, self._topic is not None and self._look(self._topic)
        if self.window is not None or reading.is_paused or not reading.tables or time.monotonic() < self._not_before_s:
            return is_news
        try:
            self.window = self._read(reading.tables[0])
        except Unreadable as error:
            logger.warning("event=table-not-read table=%r reason=%r", reading.tables[0].name, str(error))
            reading.table_ended()
            return True
        return is_news

    def _look(self, topic: SignalTopic) -> bool:
        """Do what the signals of the topic say; whether there were records."""
        before = self.reading.position
        signals, self.reading.position = topic.signals(before)
        captured = self.captured() if signals else ()
        for each in signals:
            self.reading.take(each, captured)
        return self.reading.position != before

    def close(self) -> None:
        """Close the connections to the topic of signals."""
        if self._topic is not None:
            self._topic.close()

    def _read(self, wanted: Wanted) -> Window:
        name, begin = str(uuid.uuid4()), f'"openWindowTimestamp": "{_now()}"'
        self.mark(f"{name}-open", OPEN, f"{{{begin}}}")
        window = Window(name, self.reading.turn, self.chunk(wanted))
        self.mark(f"{name}-close", CLOSE, f'{{{begin}, "closeWindowTimestamp": "{_now()}"}}')
        return window

    @abstractmethod
    def captured(self) -> Sequence[str]:
        """The names of the tables that may be read."""

    @abstractmethod
    def mark(self, name: str, kind: str, data: str) -> None:
        """Add a row to the table of signals. Raises Unreadable."""

    @abstractmethod
    def chunk(self, wanted: Wanted) -> Chunk:
        """Read the next chunk of a table. Raises Unreadable."""

    @abstractmethod
    def rows_left(self, chunk: Chunk, places: Sequence[int]) -> Any:
        """Some rows of a chunk."""

    def has_seen(self, chunk: Chunk) -> bool:
        """Whether a chunk has all changes that the log had before the window."""
        del chunk
        return True


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
