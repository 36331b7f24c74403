"""Damaged data that a read finds: the error code for the peer, and the line in the log.

CORRUPT_MESSAGE tells the client that a retry will not help: a CRC does not match, there is no batch where one must be, or the disk cannot
read a sector of the log. KAFKA_STORAGE_ERROR, after which clients retry, is for reads that fail otherwise, such as of an index.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import CorruptLog, ErrorCode, StorageError
from barnabas.storage.integrity import Damage

if TYPE_CHECKING:
    from barnabas.server.services import FaultReports

logger = logging.getLogger(__name__)


class ReadFaults(Protocol):
    """The parts of the broker that this module uses."""

    @property
    def faults(self) -> FaultReports: ...


def refuse_read(broker: ReadFaults, place: str, offset: int, error: StorageError | OSError) -> ErrorCode:
    """Report a failed read of the log `place`. Returns the error code for the peer."""
    if isinstance(error, OSError):
        broker.faults.report_read(place, offset, error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    broker.faults.report(error)
    return ErrorCode.CORRUPT_MESSAGE if isinstance(error, CorruptLog) else ErrorCode.KAFKA_STORAGE_ERROR


def tell_damage(topic: str, partition: int, damage: Damage) -> None:
    """Log one line for a damaged range that was not known before."""
    logger.error(
        "event=corrupt-data topic=%s partition=%d first_offset=%d last_offset=%d position=%d bytes=%d reason=%r",
        topic,
        partition,
        damage.first_offset,
        damage.next_offset - 1,
        damage.position,
        damage.end - damage.position,
        damage.reason,
    )
