"""The appender of a log whose records must name registered schemas.

It takes the place of the log's `LogAppender`, so a log without validation pays nothing, and no way to a log with validation leads
past the check. Runs are refused (`bounds_of_run`): their batches come one by one.
"""

from __future__ import annotations

from barnabas import limits
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import COMPRESSION_MASK, HEADER_SIZE, Buffer, only_batch, read_header
from barnabas.protocol.records.compression import unfold
from barnabas.protocol.records.record import invalid
from barnabas.protocol.records.request_scan import Limits
from barnabas.protocol.records.schema_ids import SchemaIds, schema_ids
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
        """As that of a LogAppender.

        Raises:
            InvalidRecordError: INVALID_RECORD, for records without a registered schema id.
            SchemaIdsUnknown: the registry must be asked.
        """
        if origin is AppendOrigin.CLIENT:
            records = only_batch(records)
            ids = self._ids_in(records)
            if ids is None or not self.check.passes(ids):
                header = read_header(records)  # an error of the batch itself comes first
                validate_batch(records, header, config=self._log.config, now_ms=now_ms, origin=origin)
                if ids is None:
                    raise invalid("The schema ids of the records cannot be read.")
                self.check.refuse(ids)
        return super().append_as_leader(records, leader_epoch=leader_epoch, now_ms=now_ms, origin=origin)

    def bounds_of_run(self, now_ms: int, max_request: int, requests: int) -> Limits | None:
        """None: no run is appended."""
        return None

    def _ids_in(self, records: Buffer) -> SchemaIds | None:
        """The ids in a batch; None if the log refuses the batch anyway."""
        header = read_header(records)
        too_large = header.size > self._log.config.max_message_bytes or header.records_count > limits.MAX_BATCH_RECORDS
        if too_large or header.records_count < 0:
            return None
        body = memoryview(records)[HEADER_SIZE : header.size]
        codec = header.attributes & COMPRESSION_MASK
        try:
            data = bytes(unfold(codec, body) if codec else body)
        except KafkaError:
            return None
        check = self.check
        return schema_ids(data, header.records_count, keys=check.keys is not None, values=check.values is not None)
