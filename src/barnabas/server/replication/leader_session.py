"""A follower's side of one fetch session with a leader (KIP-227): the content of the next request, and the positions that an answer
belongs to.

Owns the positions that the leader remembers (`_told`), and the request numbers. No I/O.

Rules
  1. A request names the partitions whose position differs from the last one told to the leader. It forgets those that are not fetched any
     more. So partitions without news cost nothing.
  2. An answer belongs to the positions told up to its request. A later position of a partition makes the older answer void.
  3. Without a session (the leader has no place for one) every request names all partitions.
  4. A request that begins a session does not wait at the leader for records. No other request can follow before its answer, so partitions
     that are followed in the meantime would have to wait too. If the leader has no place for a session, requests wait as in a session.
  5. After an error of the session, `restart`: the next request begins another session, and answers to earlier requests are void.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.protocol.fetch_request import MAX_EPOCH
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from barnabas.replication.follower_state import Position

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.replication.follower_partition import FollowerPartition

# the topic id as a number, because looking up a UUID runs Python code; and the partition
Key = tuple[int, int]


class LeaderSession:
    """The session of one fetcher."""

    def __init__(self) -> None:
        self._asked: dict[Key, FollowerPartition] = {}  # partitions that are fetched now
        self._changed: dict[Key, None] = {}  # fetched partitions whose position the leader may not know
        self._forgotten: dict[Key, UUID] = {}  # partitions that the leader must forget, with the topic id
        self._told: dict[Key, tuple[Position, int]] = {}  # the last position told to the leader, and the number of its request
        self._session_id = 0
        self._epoch = 0
        self._number = 0
        self._void_up_to = 0
        self._is_without = False  # the leader had no place for a session

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def is_open(self) -> bool:
        """Whether the leader keeps a session, so that a second request may be sent before the answer to the first."""
        return self._session_id != 0

    @property
    def may_wait(self) -> bool:
        """Whether the next request may wait at the leader for news."""
        return self.is_open or self._is_without

    def ask(self, partition: FollowerPartition) -> None:
        """Fetch a partition, or continue at its next position."""
        key = partition.topic_id.int, partition.index
        self._asked[key] = partition
        self._changed[key] = None
        self._forgotten.pop(key, None)

    def leave(self, partition: FollowerPartition) -> None:
        """Stop fetching a partition, for now or for good."""
        key = partition.topic_id.int, partition.index
        if self._asked.get(key) is partition:
            del self._asked[key]
            self._changed.pop(key, None)
            if self._told.pop(key, None) is not None:
                self._forgotten[key] = partition.topic_id

    def asks_for(self, partition: FollowerPartition) -> bool:
        return self._asked.get((partition.topic_id.int, partition.index)) is partition

    def find(self, key: Key) -> FollowerPartition | None:
        return self._asked.get(key)

    def restart(self) -> None:
        self._session_id = self._epoch = 0
        self._is_without = False
        self._void_up_to = self._number
        self._told.clear()
        self._forgotten.clear()
        self._changed = dict.fromkeys(self._asked)

    def next_request(self, replica: ReplicaState, *, partition_max_bytes: int) -> tuple[int, FetchRequest]:
        """The number of the next request, and the request without its limits."""
        self._number += 1
        if not self.is_open:
            self._changed = dict.fromkeys(self._asked)
            self._forgotten.clear()
        named: dict[int, tuple[UUID, list[FetchPartition]]] = {}
        for key in self._changed:
            partition = self._asked[key]
            position = partition.position
            told = self._told.get(key)
            if self.is_open and told is not None and told[0] == position:
                continue
            self._told[key] = position, self._number
            named.setdefault(key[0], (partition.topic_id, []))[1].append(
                FetchPartition(
                    partition=key[1],
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=partition_max_bytes,
                )
            )
        request = FetchRequest(
            replica_id=replica.replica_id,  # for versions below 15
            replica_state=replica,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in named.values()],
            forgotten_topics_data=_forgotten(self._forgotten),
        )
        self._changed.clear()
        self._forgotten.clear()
        if self.is_open:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return self._number, request

    def receive(self, number: int, session_id: int) -> bool:
        """Take an answer that has no error of the session; False if it is void."""
        if number <= self._void_up_to:
            return False
        if not self.is_open:
            self._is_without = session_id == 0
            if session_id:
                self._session_id, self._epoch = session_id, 1
        return True

    def position_told(self, key: Key, number: int) -> Position | None:
        """The position at which an answer to this request begins; None if the leader was told another one later."""
        told = self._told.get(key)
        return told[0] if told is not None and told[1] <= number else None


def _forgotten(left: Mapping[Key, UUID]) -> list[ForgottenTopic]:
    by_topic: dict[UUID, list[int]] = {}
    for (_, index), topic_id in left.items():
        by_topic.setdefault(topic_id, []).append(index)
    return [ForgottenTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic.items()]
