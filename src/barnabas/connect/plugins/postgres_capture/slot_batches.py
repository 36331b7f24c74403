"""From the messages of a slot to batches of records: keeps where in which transaction they are, and the tables as they are at that place.

No socket and no clock. Many messages are read at once, and the changes of a table become columns.

The offset is `{"lsn": L}` between two transactions: the next one has its commit record at L or behind it. Within a transaction it is
`{"lsn": L, "commit": C, "seq": N}`: of the transaction with the commit record at C, which is the next one behind L, the first N changes
are in the log. The server sends a transaction each time with the same changes in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from barnabas.connect.api import Batch
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture.cells import Longs, cells_of
from barnabas.connect.plugins.postgres_capture.chunks import Chunks
from barnabas.connect.plugins.postgres_capture.events import IS_TRUNCATE, Changes, Events, events_of, records_of
from barnabas.connect.plugins.postgres_capture.pgoutput import Relation, relation_of, truncated_of, unreadable
from barnabas.connect.plugins.postgres_capture.runs import RELATION, Progress, Run, read_run
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape
from barnabas.lazy_module import LazyModule

if TYPE_CHECKING:
    from barnabas.connect.plugins.postgres_capture import kernels
else:
    kernels = LazyModule("barnabas.connect.plugins.postgres_capture.kernels")

Eras = dict[int, list[tuple[int, Shape | None]]]  # by oid: shapes, each with the number of the first message that it is for


class SlotBatches:
    """See the module.

    Args:
        offset: from which the slot sends.
        chunks: incremental snapshots, whose rows come between those of the stream.
        shape: of a table, as it is from a message on.
    """

    def __init__(
        self, settings: Settings, offset: Mapping[str, Any], shape: Callable[[Relation], Shape], chunks: Chunks | None = None
    ) -> None:
        self._settings, self._shape_of, self._chunks = settings, shape, chunks
        self._progress = Progress(offset["lsn"], delivered=(offset.get("commit"), offset.get("seq", 0)))
        self._is_within = "commit" in offset  # whether the last offset that was given is within a transaction
        self._since: dict[str, int] = dict(offset.get("tables", {}))
        self._shapes: dict[int, Shape | None] = {}

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._progress.begun is not None

    @property
    def done_lsn(self) -> int:
        """Where the stream is between two transactions."""
        return self._progress.done_lsn

    def follow(self, lsn: int) -> None:
        """The server has nothing up to here; not while a transaction is open."""
        self._progress = self._progress._replace(done_lsn=max(self.done_lsn, lsn))

    def batches(self, messages: Sequence[bytes], lsns: Sequence[int], partition: Mapping[str, Any], now_us: int) -> list[Batch]:
        """The batches of messages, which follow those of the call before; the last one has the offset.

        Raises:
            ConnectError: a message does not fit, or a value has no form.
        """
        if not messages:
            return []
        run = read_run(messages, lsns, self._progress)
        self._progress = run.progress
        tables = sorted(self._tables(messages, run), key=lambda each: int(each[1][0]))
        made = [(shape, self._events(shape, run, numbers, messages)) for shape, numbers in tables]
        made = [(shape, events) for shape, events in made if len(events.codes)]
        is_news = False
        if self._chunks is not None:
            made, is_news = self._chunks.taken(made)
        offset = self.offset()
        was_within, is_within = self._is_within, "commit" in offset
        is_news |= was_within and not is_within  # otherwise the slot would go on without the offset
        if made or is_news:
            self._is_within = is_within
        if is_news and not made:
            return [Batch([], offset, partition)]
        return [
            Batch(
                records_of(shape, events, self._settings, now_us), offset if at == len(made) else None, partition, topic=shape.topic,
                is_records=True,
            )
            for at, (shape, events) in enumerate(made, 1)
        ]  # fmt: skip

    def _tables(self, messages: Sequence[bytes], run: Run) -> Iterator[tuple[Shape, Longs]]:
        """The captured tables that have changes, and the numbers of these messages; a table that changes has several shapes."""
        numbers = np.flatnonzero(run.codes >= 0)
        oids = run.lines[numbers, kernels.OID]
        is_truncation = run.codes[numbers] == IS_TRUNCATE
        if np.any(is_truncation):
            parts = [(number, oid) for number in numbers[is_truncation] for oid in truncated_of(messages[number])]
            numbers = np.append(numbers[~is_truncation], [number for number, _ in parts]).astype(np.int64)
            oids = np.append(oids[~is_truncation], [oid for _, oid in parts]).astype(np.int64)
            order = np.argsort(numbers, kind="stable")
            numbers, oids = numbers[order], oids[order]
        eras = self._eras(messages, run)
        for oid in np.unique(oids).tolist():
            own = numbers[oids == oid]
            known = eras.get(oid, [])
            if not known or own[0] < known[0][0]:
                raise ConnectError(f"the slot sent a change of the table {oid} before the table itself")
            for (begin, shape), (end, _) in zip(known, [*known[1:], (len(messages), None)], strict=True):
                part = own[(own >= begin) & (own < end)]
                if shape is not None and self._since:
                    since = self._since.get(f"{shape.relation.schema}.{shape.relation.table}", 0)
                    part = part[run.commit_lsns[part] >= since]  # the snapshot of the table has the others
                if shape is not None and len(part):
                    yield shape, part

    def _eras(self, messages: Sequence[bytes], run: Run) -> Eras:
        """The shapes of tables, and those that the messages bring; None for a table that is not captured."""
        eras: Eras = {oid: [(0, shape)] for oid, shape in self._shapes.items()}
        for number in np.flatnonzero(run.kinds == RELATION).tolist():
            relation = relation_of(messages[number])
            takes = self._settings.takes(relation.schema, relation.table)
            self._shapes[relation.oid] = shape = self._shape_of(relation) if takes else None
            eras.setdefault(relation.oid, []).append((number, shape))
        return eras

    def _events(self, shape: Shape, run: Run, numbers: Longs, messages: Sequence[bytes]) -> Events:
        columns, lines = len(shape.relation.columns), run.lines[numbers]
        old, new = (cells_of(run.data, np.ascontiguousarray(lines[:, at]), columns) for at in (kernels.OLD, kernels.NEW))
        if isinstance(old, int):
            raise unreadable(messages[numbers[old]])
        if isinstance(new, int):
            raise unreadable(messages[numbers[new]])
        is_key = lines[:, kernels.IS_KEY] != 0
        return events_of(Changes(run.codes[numbers], old, new, is_key, run.at.take(numbers)), shape, self._settings)

    def offset(self) -> dict[str, Any]:
        """The offset behind all that was received."""
        done_lsn, _, delivered, begun, seq = self._progress
        found: dict[str, Any] = {"lsn": done_lsn}
        commit, sent = delivered
        if begun is not None and seq:
            commit, sent = begun.commit_lsn, max(seq, sent)
        if sent:
            found |= {"commit": commit, "seq": sent}
        self._since = {name: lsn for name, lsn in self._since.items() if lsn > done_lsn}
        if self._chunks is not None:
            found |= self._chunks.reading.offset()
        return found | ({"tables": self._since} if self._since else {})
