"""One replica of a partition on this broker, in any role: its partition, its leader, and the methods that all roles have.

The roles are siblings. A caller checks `is_leader` or `is_offline` before it uses an attribute that only some roles have. With
the type `Partition` (see `partition`) mypy finds a caller that does not.

    Replica
      OnlineReplica         its log works: reading, waiting, flushing
        LeaderPartition     this broker leads it
        FollowerPartition   another broker leads it, or nobody
      OfflinePartition      its disk failed, so it has no log
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode

if TYPE_CHECKING:
    from uuid import UUID


class Replica(ABC):
    """See the module."""

    __slots__ = ("closed", "high_watermark", "index", "leader_epoch", "leader_id", "topic", "topic_id")

    is_leader: ClassVar[bool]
    is_offline: ClassVar[bool]
    topic: str
    topic_id: UUID
    index: int
    leader_id: int
    leader_epoch: int  # of that leader
    high_watermark: int
    closed: bool  # another object replaced this one, or the broker lost the partition

    @abstractmethod
    def update_config(self, config: TopicConfig) -> None:
        """Apply changed settings of the topic."""

    @abstractmethod
    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """End this object: this broker lost the partition, or has another role in it. Waiting requests get an error."""
