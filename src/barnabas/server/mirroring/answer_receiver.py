"""Appends the records of a Fetch response of a source to the copies, while it arrives.

`steps` has the next step of each partition that the response names. A failure of one partition ends only that partition, and an unexpected
one is kept for the fetcher (`failure`): a receiver must not raise into the connection.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.mirror.partition_copy import PartitionCopy, SourceAnswer, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from barnabas.mirror.source_session import Key, SourceSession
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
NO_RECORDS = memoryview(b"")


class AnswerReceiver:
    """The receiver of one response.

    Args:
        copies: by topic of the source and partition.
    """

    def __init__(self, services: Services, session: SourceSession, copies: Mapping[Key, tuple[PartitionCopy, UUID, int]]) -> None:
        self._services = services
        self._session = session
        self._copies = copies
        self._key: Key | None = None
        self._copy: PartitionCopy | None = None  # None: the rest of this partition is of no use
        self._asked = 0
        self._answer = SourceAnswer(ErrorCode.NONE, -1, -1, NO_RECORDS)
        self._step: Step | None = None
        self._is_closed = False
        self.steps: dict[Key, Step] = {}
        self.failure: Exception | None = None
        self.first_byte_s = 0.0  # of the response; 0 before it
        self.appending_s = 0.0
        self.size = 0  # bytes of records

    def close(self) -> None:
        """Append nothing more, also if the response goes on."""
        self._is_closed = True

    def _now_s(self) -> float:
        return self._services.clock.monotonic_ms() / 1000

    # FetchReceiver

    def begins(self) -> None:
        self.first_byte_s = self._now_s()

    def partition_begins(
        self, topic: str | UUID, index: int, error_code: int, high_watermark: int, log_start_offset: int, size: int
    ) -> None:
        self._key = self._copy = self._step = None
        found = None if self._is_closed or self.failure is not None else self._session.find(topic, index)
        known = None if found is None else self._copies.get(found[0])
        if found is None or known is None:
            return
        self._key, wanted = found
        self._copy, self._asked = known[0], wanted.offset
        self._answer = SourceAnswer(ErrorCode(error_code), high_watermark, log_start_offset, NO_RECORDS)

    def records(self, batches: memoryview) -> None:
        self.size += len(batches)
        copy = self._copy
        if copy is None or self._is_closed:
            return
        began_s = self._now_s()
        if self._step is None:
            self._act(copy, self._answer._replace(records=batches), batches)
        elif self._step is Step.TAKE:
            self._guarded(copy, lambda: self._take(copy, batches))
        self.appending_s += self._now_s() - began_s

    def partition_ends(self, *, has_diverged: bool) -> None:
        if self._copy is not None and self._step is None and not self._is_closed:
            answer = self._answer._replace(has_diverged=has_diverged, is_limited=self.size > 0)
            self._act(self._copy, answer, NO_RECORDS)
        if self._key is not None and self._step is not None:
            self.steps[self._key] = self._step

    def _act(self, copy: PartitionCopy, answer: SourceAnswer, batches: memoryview) -> None:
        def act() -> None:
            self._step = copy.receive(self._asked, answer, self._services.clock.now_ms())
            if self._step is Step.TAKE:
                self._take(copy, batches)

        self._guarded(copy, act)

    def _take(self, copy: PartitionCopy, batches: memoryview) -> None:
        for _ in copy.take(batches, self._services.clock.now_ms()):
            pass

    def _guarded(self, copy: PartitionCopy, act: Callable[[], None]) -> None:
        try:
            act()
        except KafkaError as error:
            copy.stop(f"{error.code.name}: {error.message or 'the records of the source cannot be taken'}")
            self._step, self._copy = Step.STOP, None
        except StorageError as error:
            self._services.faults.report(error)
            copy.reason = "the disk does not take the records"
            self._step, self._copy = Step.WAIT, None
        except Exception as error:  # see the module
            logger.exception("event=mirror-append-failed topic=%s partition=%d", copy.partition.topic, copy.partition.index)
            self.failure, self._copy = error, None
