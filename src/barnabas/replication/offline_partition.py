"""A partition whose log is on a disk that failed: it stays known, and refuses whatever is asked of it.

It stands in the place of a `Partition` (see `HostedPartitions.take_offline`), so that those which work pay nothing for the question whether
they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from uuid import UUID

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.replication.replica import FetchWaiter


class OfflinePartition(Partition):
    """Answers KAFKA_STORAGE_ERROR; it has no log."""

    __slots__ = ()
    is_offline = True

    def __init__(self, topic: str, topic_id: UUID, index: int, *, leader_id: int, leader_epoch: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = -1
        self.closed = True

    def append_as_leader(self, *_: object, **__: object) -> NoReturn:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def append_own(self, *_: object, **__: object) -> NoReturn:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def check_leader_epoch(self, epoch: int) -> NoReturn:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def read(self, *_: object, **__: object) -> NoReturn:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def add_fetch_waiter(self, waiter: FetchWaiter, *, as_follower: bool = False) -> None:
        """Nothing: there is no news to wait for, and who asks is refused."""

    def remove_fetch_waiter(self, waiter: FetchWaiter) -> None:
        """Nothing: nobody waits here."""

    def update_config(self, config: TopicConfig) -> None:
        """Nothing: the settings are read anew with the log."""

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Nothing: nobody waits here."""
