"""Captures the changes of a PostgreSQL database: `io.debezium.connector.postgresql.PostgresConnector`, without a JVM.

Rules
  1. The slot comes before the snapshot, which is the state at which the slot begins. So no change is lost between them.
  2. The slot is confirmed behind the commit of a transaction of ours alone. So whatever dies, the server sends the rest again.
  3. While nothing waits for a commit, the slot follows the server. So a quiet table holds back no WAL.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.heartbeats import Heartbeats
from barnabas.connect.plugins.debezium.settings import REST_S
from barnabas.connect.plugins.debezium.signals import Reading
from barnabas.connect.plugins.postgres_capture.catalog import Catalog
from barnabas.connect.plugins.postgres_capture.cells import load_kernels
from barnabas.connect.plugins.postgres_capture.chunks import Chunks
from barnabas.connect.plugins.postgres_capture.settings import KEYS, Settings, errors_of, settings_of
from barnabas.connect.plugins.postgres_capture.shape import shape_of
from barnabas.connect.plugins.postgres_capture.slot_batches import SlotBatches
from barnabas.connect.plugins.postgres_capture.snapshot import Snapshot
from barnabas.connect.plugins.postgres_capture.stream import Messages, SlotInUse, Stream, StreamLost, lsn_text

logger = logging.getLogger(__name__)
ROWS, BYTES = 10_000, 16 << 20  # of messages that are read together; the last one may go beyond
WAIT_S = 0.1  # for messages, before the source looks whether it is closed
CONFIRM_S = 1.0  # between two confirmations
SNAPSHOTS = ("initial", "always", "initial_only")


class PostgresCapture(Source):
    """See the module."""

    config = KEYS

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._committed_lsn = 0
        self._committed: Offset | None = None
        self._yielded: Offset | None = None
        self._stream_now: Stream | None = None
        self._confirmed_s = 0.0

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return errors_of(config)

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        settings = settings_of(config)
        partition = {"server": settings.prefix}
        known = next((_of_debezium(offset) for name, offset in offsets if name == partition), None)
        load_kernels()  # takes seconds on a busy machine; a stream without reports for so long would be ended
        catalog = Catalog(settings)
        try:
            catalog.check()
            catalog.ensure_publication()
            begin = yield from self._snapshot(settings, catalog, partition, known)
            offset = {**begin, **Reading(known or {}).offset()}
            if settings.snapshot == "initial_only":
                return
            beats = Heartbeats(config, lambda statement: catalog.run(statement, None))
            yield from self._stream(settings, catalog, partition, offset, beats)
        finally:
            catalog.close()

    def committed(self, partition: Mapping[str, Any], offset: Offset) -> None:
        self._committed = offset
        if not offset.get("snapshot"):
            self._committed_lsn = offset["lsn"]

    def keep_alive(self) -> None:
        """The server ends a connection without a report after its wal_sender_timeout."""
        if self._stream_now is not None:
            self._confirm(self._stream_now, self._committed_lsn)

    def close(self) -> None:
        self._closed.set()

    def _snapshot(
        self, settings: Settings, catalog: Catalog, partition: Mapping[str, Any], known: Mapping[str, Any] | None
    ) -> Generator[Batch, None, Mapping[str, Any]]:  # fmt: skip
        """Make the slot, and read the tables if that is wanted; the offset from which the stream begins."""
        has_slot = _has_slot(settings, catalog)
        is_begun = known is not None and bool(known.get("snapshot"))
        if known is not None and not has_slot:
            raise ConnectError(
                f"{catalog.place} has no slot {settings.slot} any more: changes since {lsn_text(known['lsn'])} may be lost. "
                "Delete the offsets of the connector to begin with a snapshot"
            )
        wants_rows = is_begun or settings.snapshot == "always" or (known is None and settings.snapshot in SNAPSHOTS)
        if known is not None and not wants_rows:
            return known
        if has_slot and not wants_rows:
            return {"lsn": 0}
        with closing(Stream(settings, catalog.place)) as stream:
            name = f"barnabas_{uuid.uuid4().hex}" if has_slot else settings.slot
            at = stream.create_slot(name, temporary=has_slot)
            if not wants_rows:
                return {"lsn": at.lsn}
            begin_lsn: int = at.lsn if known is None else known["lsn"]
            done = known["tables"] if known is not None and is_begun else {}
            tables = [each for each in catalog.published() if f"{each.schema}.{each.table}" != settings.signals]
            shapes = [shape_of(each, catalog, settings) for each in tables]
            for batch in Snapshot(settings, catalog, at, _now_us).batches(shapes, done, begin_lsn, partition):
                if batch.offset is not None:
                    self._yielded = batch.offset
                yield batch
        assert self._yielded is not None
        return self._yielded

    def _stream(
        self, settings: Settings, catalog: Catalog, partition: Mapping[str, Any], offset: Mapping[str, Any], beats: Heartbeats
    ) -> Iterator[Batch]:  # fmt: skip
        try:
            yield from self._streamed(settings, catalog, partition, offset, beats)
        except StreamLost as error:  # the library often does not tell what the server has said
            reason = error.reason or catalog.reason_of_loss()
            if reason is None:
                raise
            raise ConnectError(f"{catalog.place} does not stream from the slot {settings.slot}: {reason}") from error

    def _streamed(
        self, settings: Settings, catalog: Catalog, partition: Mapping[str, Any], offset: Mapping[str, Any], beats: Heartbeats
    ) -> Iterator[Batch]:  # fmt: skip
        chunks = Chunks(settings, catalog, Reading(offset), settings.signals) if settings.signals is not None else None
        transactions = SlotBatches(settings, offset, lambda relation: shape_of(relation, catalog, settings), chunks)
        with (
            closing(chunks) if chunks is not None else nullcontext(),
            closing(self._started(settings, catalog, offset["lsn"])) as stream,
        ):
            self._stream_now, self._confirmed_s = stream, time.monotonic()
            waiting, taken_s = Messages(), 0.0
            while not self._closed.is_set():
                is_idle = stream.receive(waiting, ROWS, BYTES)
                if not is_idle or waiting.is_whole:
                    taken_s = time.monotonic()
                    for part in [waiting.parts] if chunks is None else chunks.parts(*waiting.parts):
                        yield from self._given(transactions.batches(*part, partition, _now_us()))
                    waiting.clear()
                if chunks is not None and not transactions.is_open and chunks.go_on():
                    yield from self._given([Batch([], transactions.offset(), partition)])
                if is_idle and not waiting.payloads and not transactions.is_open:
                    transactions.follow(stream.seen_lsn)  # all that the server has looked at is behind
                self._confirm(stream, transactions.done_lsn if self._has_all() and is_idle else self._committed_lsn)
                if not waiting.payloads and beats.is_due():
                    yield from self._given([beats.beat(transactions.offset(), partition)])
                if is_idle:
                    if chunks is None or chunks.window is None:
                        self._closed.wait(taken_s + REST_S - time.monotonic())
                    stream.wait(WAIT_S)

    def _confirm(self, stream: Stream, lsn: int) -> None:
        """Confirm, if the last time is long ago."""
        if time.monotonic() - self._confirmed_s >= CONFIRM_S:
            self._confirmed_s = time.monotonic()
            stream.confirm(lsn)

    def _started(self, settings: Settings, catalog: Catalog, lsn: int) -> Stream:
        """The stream of the slot, once no other connection uses it."""
        for left in range(settings.slot_retries, -1, -1):
            stream = Stream(settings, catalog.place)
            try:
                stream.start(lsn)
            except SlotInUse as error:
                stream.close()
                logger.warning("event=slot-in-use slot=%s tries_left=%d reason=%r", settings.slot, left, str(error))
                if not left or self._closed.wait(settings.slot_delay_s):
                    raise
            except ConnectError:
                stream.close()
                raise
            else:
                return stream
        raise AssertionError("the last try returns or raises")

    def _given(self, batches: Sequence[Batch]) -> Iterator[Batch]:
        if batches:
            self._yielded = batches[-1].offset
        yield from batches

    def _has_all(self) -> bool:
        """Whether all that was read is in the log."""
        return self._yielded is None or self._yielded == self._committed


def _has_slot(settings: Settings, catalog: Catalog) -> bool:
    """Whether the slot is there. Raises ConnectError for one that others made for other things."""
    slot = catalog.slot()
    if slot is not None and (slot.plugin, slot.database) != ("pgoutput", settings.database):
        raise ConnectError(
            f"the slot {settings.slot} has the plug-in {slot.plugin} and the database {slot.database}; this connector needs pgoutput and "
            f"{settings.database}: set slot.name to another name"
        )
    if slot is not None and slot.wal_status == "lost":
        raise ConnectError(
            f"{catalog.place} has removed the WAL that the slot {settings.slot} needs (max_slot_wal_keep_size): changes are lost. "
            "Drop the slot, and delete the offsets of the connector to begin with a snapshot"
        )
    return slot is not None


def _of_debezium(offset: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An offset, also one that Debezium's connector has written; None for one within a snapshot of Debezium."""
    if "lsn_proc" not in offset and "last_snapshot_record" not in offset:
        return offset
    if offset.get("snapshot") and not offset.get("last_snapshot_record"):
        return None
    return {"lsn": offset.get("lsn_commit") or offset["lsn"]}


def _now_us() -> int:
    return time.time_ns() // 1000
