"""Gathers the records of a topic partition for files. No I/O.

A window has the records from one offset to another. It ends all at once: each folder of its records gets one file, whose name has the
offset of its first record.

Rule: the offset behind a window is committed before a file of the next one is written. So it does not matter when a window ends. After
a kill its records come again from its beginning. The first record of each folder is the same as before, so the file that has it gets
the same name, and takes the place of the one that was written before the kill.

Invariant: the records before `durable` are in windows that have ended, or are none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.connect.plugins.files.partitioners import Folders


class Rules(NamedTuple):
    """When a window ends.

    Args:
        flush_size: records of one folder.
        interval_ms: between the times of its first record and of one that no longer belongs to it; None: at no time.
        most_bytes: in memory.
    """

    flush_size: int
    interval_ms: int | None
    most_bytes: int


class File(NamedTuple):
    """Records for one file."""

    folder: str
    start: int
    records: pa.Table


class Window:
    """Records that are in no file yet.

    Args:
        start: the offset of the first one, `begun_ms` its time.
    """

    def __init__(self, start: int, begun_ms: int) -> None:
        self.start, self.begun_ms = start, begun_ms
        self.size_bytes = 0
        self.counts: dict[str, int] = {}
        self._parts: dict[str, list[pa.Table]] = {}
        self._starts: dict[str, int] = {}
        self._schema: pa.Schema | None = None

    def takes(self, schema: pa.Schema) -> bool:
        """Whether records of this schema can be in one file with those that are there."""
        try:
            self._schema = (
                schema if self._schema is None else pa.unify_schemas([self._schema, schema], promote_options="permissive")
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return False
        return True

    def add(self, records: pa.Table, folders: Folders) -> None:
        """Add records in the order of their offsets."""
        self.size_bytes += records.nbytes
        offsets = records.column("offset")
        for code in np.unique(folders.codes).tolist():
            name = folders.names[code]
            rows = np.flatnonzero(folders.codes == code)
            some = records if len(rows) == records.num_rows else records.take(pa.array(rows, pa.int64()))
            self._starts.setdefault(name, offsets[int(rows[0])].as_py())
            self._parts.setdefault(name, []).append(some)
            self.counts[name] = self.counts.get(name, 0) + len(rows)

    def files(self) -> list[File]:
        """One for each folder."""
        return [
            File(name, self._starts[name], pa.concat_tables(parts, promote_options="permissive").combine_chunks())
            for name, parts in self._parts.items()
        ]


class Gathering:
    """The windows of one topic partition: one that is open, and those that have ended.

    Attributes:
        ended: windows whose files are to be written, in their order; the caller takes them out.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._open: Window | None = None
        self._behind = 0  # the offset behind all that was added
        self.ended: list[Window] = []

    @property
    def durable(self) -> int:
        """The offset before which all records are in files."""
        if self.ended:
            return self.ended[0].start
        return self._behind if self._open is None else self._open.start

    @property
    def size_bytes(self) -> int:
        """Of the open window."""
        return 0 if self._open is None else self._open.size_bytes

    def add(self, records: pa.Table, times_ms: Any, folders: Folders, end: int) -> None:
        """Add records in the order of their offsets, of which some may have been added before.

        Args:
            end: the offset behind them, and behind records that were left out.
        """
        offsets = records.column("offset").to_numpy()
        at = int(np.searchsorted(offsets, self._behind))
        positions = [np.flatnonzero(folders.codes == code) for code in range(len(folders.names))]
        while at < records.num_rows:
            if self._open is None:
                self._open = Window(int(offsets[at]), int(times_ms[at]))
            window = self._open
            cut, ends = self._cut(window, at, times_ms, folders, positions)
            if not window.takes(records.schema):
                cut, ends = at, True
            while at < cut < len(offsets) and offsets[cut] == offsets[cut - 1]:  # records of one offset stay together
                cut += 1
            if cut > at:
                window.add(records.slice(at, cut - at), Folders(folders.names, folders.codes[at:cut]))
            if ends or window.size_bytes >= self._rules.most_bytes:
                self.end()
            at = cut
        self._behind = max(self._behind, end)

    def _cut(
        self, window: Window, at: int, times_ms: Any, folders: Folders, positions: list[Any]
    ) -> tuple[int, bool]:  # fmt: skip
        """Up to which record the window goes, and whether it ends there."""
        cut, ends = len(times_ms), False
        for name, rows in zip(folders.names, positions, strict=True):
            last = int(np.searchsorted(rows, at)) + self._rules.flush_size - window.counts.get(name, 0) - 1
            if last < len(rows) and rows[last] < cut:
                cut, ends = int(rows[last]) + 1, True
        if self._rules.interval_ms is not None:
            late = times_ms[at:cut] - window.begun_ms >= self._rules.interval_ms
            if late.any():
                cut, ends = at + int(late.argmax()), True
        return cut, ends

    def end(self) -> None:
        """End the open window."""
        if self._open is not None:
            self.ended.append(self._open)
            self._open = None
