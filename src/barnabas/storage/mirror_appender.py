"""The appender of a log that is a copy of a topic of another cluster: only batches of the source get in.

It replaces the log's `LogAppender`, as schema validation does. So an ordinary log pays nothing for mirroring, and every way to write to a
copy passes here.

Rules
  1. Batches of the source come in by `append_as_follower`, with their own offsets.
  2. Writers of this cluster get POLICY_VIOLATION, with the name of the link.
  3. A marker of this cluster's transactions ends nothing here, because no producer of this cluster can write to a copy. Its sender gets
     INVALID_PRODUCER_EPOCH, which tells it not to try again.
"""

from __future__ import annotations

from typing import NoReturn

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import Buffer
from barnabas.protocol.records.record import OwnBatch
from barnabas.protocol.records.request_scan import Limits
from barnabas.protocol.records.rows import Run
from barnabas.protocol.records.validate import AppendOrigin
from barnabas.storage.log.appender import AppendResult, LogAppender
from barnabas.storage.markers import Ending


def refuse_write(topic: str, link: str) -> NoReturn:
    """Raise the error of a write to a copy."""
    text = f"Topic {topic} is a read-only copy of the mirror link {link}; `barnabas mirror promote` makes it writable."
    raise KafkaError(ErrorCode.POLICY_VIOLATION, text)


class MirrorAppender(LogAppender):
    """See the module."""

    __slots__ = ()

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: int, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """Raises KafkaError(POLICY_VIOLATION)."""
        refuse_write(self._log.topic, self._log.config.mirror_link)

    def append_own(self, batch: OwnBatch, ending: Ending | None, *, leader_epoch: int, now_ms: int) -> int:
        """Raises KafkaError: INVALID_PRODUCER_EPOCH for the marker of a transaction, POLICY_VIOLATION for other batches."""
        if ending is not None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        refuse_write(self._log.topic, self._log.config.mirror_link)

    def bounds_of_run(self, now_ms: int, max_request: int, requests: int) -> Limits | None:
        """None: no batch of a client can be appended, so `append_as_leader` refuses each."""
        return None

    def admits_run(self, run: Run, buffer: memoryview, *, leader_epoch: int) -> bool:
        """False: `append_as_leader` refuses each batch."""
        return False
