"""The appender of a log whose records must name registered schemas.

It replaces the log's `LogAppender`. So a log without validation pays nothing, and every append to a log with validation passes the check.
"""

from __future__ import annotations

from barnabas import limits
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    only_batch,
    read_header,
)
from barnabas.protocol.records.compression import unfold
from barnabas.protocol.records.record import invalid
from barnabas.protocol.records.rows import ROW, Run
from barnabas.protocol.records.validate import AppendOrigin, validate_batch
from barnabas.server.schema_validation.topic_check import TopicCheck
from barnabas.storage.log import AppendResult, Log
from barnabas.storage.log.appender import LogAppender


class CheckedAppender(LogAppender):
    """Checks the batches of clients before it appends them."""

    __slots__ = ("check",)

    def __init__(self, log: Log, check: TopicCheck) -> None:
        super().__init__(log)
        self.check = check

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: int, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """See `LogAppender.append_as_leader`.

        Raises:
            InvalidRecordError: INVALID_RECORD, for records without a registered schema id.
            SchemaIdsUnknown: the registry must be asked.
        """
        if origin is AppendOrigin.CLIENT:
            records = only_batch(records)
            header = read_header(records)
            data = self._records_of(records, header)
            if data is None or not self.check.passes(data, header.records_count):
                self._refuse(records, header, now_ms)
        return super().append_as_leader(records, leader_epoch=leader_epoch, now_ms=now_ms, origin=origin)

    def admits_run(self, run: Run, buffer: memoryview, *, leader_epoch: int) -> bool:
        """See `LogAppender.admits_run`. Also False if an id is unknown: the append of each batch then finds the unknown ids."""
        for _, start, end, count, _ in ROW.iter_unpack(run.rows):
            batch = buffer[start:end]
            data = self._records_of(batch, read_header(batch))
            if data is None or not self.check.passes(data, count):
                return False
        return super().admits_run(run, buffer, leader_epoch=leader_epoch)

    def _records_of(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        """The uncompressed records of a batch, valid until the next call; None if the log refuses the batch anyway."""
        count = header.records_count
        if header.size > self._log.config.max_message_bytes or not 0 <= count <= limits.MAX_BATCH_RECORDS:
            return None
        body = memoryview(batch)[HEADER_SIZE : header.size]
        codec = header.attributes & COMPRESSION_MASK
        try:
            return unfold(codec, body) if codec else body
        except KafkaError:
            return None

    def _refuse(self, batch: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Raise an error of the batch itself first, and then the error of the check; return if the ids are known in the end."""
        validate_batch(batch, header, config=self._log.config, now_ms=now_ms, origin=AppendOrigin.CLIENT)
        data = self._records_of(batch, header)
        ids = None if data is None else self.check.ids_in(data, header.records_count)
        if ids is None:
            raise invalid("The schema ids of the records cannot be read.")
        self.check.refuse(ids)
