"""A partition whose log is on a failed disk: it stays known, and refuses every request.

It takes the place of the partition that was here (see `HostedPartitions.take_offline`). So working partitions need no check whether
their disk works.
"""

from __future__ import annotations

from typing import ClassVar, Literal
from uuid import UUID

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode
from barnabas.replication.replica import Replica


class OfflinePartition(Replica):
    """It has no log; a client that asks for it gets `refusal`."""

    __slots__ = ()

    is_leader: ClassVar[Literal[False]] = False
    is_offline: ClassVar[Literal[True]] = True
    refusal: ClassVar[ErrorCode] = ErrorCode.KAFKA_STORAGE_ERROR
    closed: Literal[True]

    def __init__(self, topic: str, topic_id: UUID, index: int, *, leader_id: int, leader_epoch: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = -1
        self.closed = True

    def update_config(self, config: TopicConfig) -> None:
        """Does nothing: a new log reads the settings again."""

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Does nothing: no request waits here."""
