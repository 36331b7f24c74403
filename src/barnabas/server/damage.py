"""Damaged data met while serving: which code a peer gets, and the line in the log.

CORRUPT_MESSAGE says that these bytes will not come right by asking again: a CRC that does not match, no batch where one must be, or a
sector that the disk cannot read. KAFKA_STORAGE_ERROR, on which clients ask again, is left for a disk that fails as a whole.
"""

from __future__ import annotations

import errno
import logging

from barnabas.errors import CorruptLog, ErrorCode
from barnabas.storage.trust import Damage

log = logging.getLogger(__name__)


def code_of(error: Exception) -> ErrorCode:
    """What a peer is answered for a failed read."""
    if isinstance(error, CorruptLog) or (isinstance(error, OSError) and error.errno == errno.EIO):
        return ErrorCode.CORRUPT_MESSAGE
    return ErrorCode.KAFKA_STORAGE_ERROR


def tell_damage(topic: str, partition: int, damage: Damage) -> None:
    """One line for a stretch that was not known to be damaged."""
    log.error(
        "corrupt data topic=%s partition=%d first_offset=%d last_offset=%d position=%d bytes=%d reason=%r",
        topic,
        partition,
        damage.first_offset,
        damage.next_offset - 1,
        damage.position,
        damage.end - damage.position,
        damage.reason,
    )
