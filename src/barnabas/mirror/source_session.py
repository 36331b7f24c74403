"""The side of a link in one fetch session with a broker of the source (KIP-227): the content of the next request. No I/O.

Rules
  1. A request names the partitions whose fields differ from those told last, and forgets those that are not fetched any more. So partitions
     without news cost nothing on both sides.
  2. Without a session (the source has no place for one, or is too old), each request names all partitions. A partition that gave records
     moves to the end, so a busy one does not starve the others. In a session the source does this.
  3. A request with topic ids and one without belong to different sessions.
  4. After an error of the session or a lost connection, `restart`: the next request begins another session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.fetch_request import MAX_EPOCH
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

Key = tuple[str, int]  # topic of the source, partition


class Wanted(NamedTuple):
    """The fields of a request about one partition."""

    topic_id: UUID
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    max_bytes: int


class SourceSession:
    """The session of one fetcher."""

    def __init__(self) -> None:
        self._wanted: dict[Key, Wanted] = {}
        self._told: dict[Key, Wanted] = {}
        self._changed: dict[Key, None] = {}  # wanted partitions whose fields the source may not know
        self._forgotten: dict[Key, UUID] = {}  # partitions that the source must forget
        self._names: dict[UUID, str] = {}
        self._session_id = self._epoch = 0
        self._without_id = 0  # wanted partitions whose topic has no id
        self._uses_ids = True

    def __len__(self) -> int:
        return len(self._wanted)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._wanted)

    @property
    def is_open(self) -> bool:
        return self._session_id != 0

    @property
    def uses_ids(self) -> bool:
        """Whether the last request names topics by id; otherwise its version is at most 12."""
        return self._uses_ids

    def ask(self, key: Key, wanted: Wanted) -> None:
        """Fetch a partition from now on, or with other fields."""
        before = self._wanted.pop(key, None)
        self._wanted[key] = wanted
        self._without_id += (wanted.topic_id == ZERO_UUID) - (before is not None and before.topic_id == ZERO_UUID)
        if wanted.topic_id != ZERO_UUID:
            self._names[wanted.topic_id] = key[0]
        if before is not None and before.topic_id != wanted.topic_id and key in self._told:
            self._forgotten[key] = before.topic_id
            del self._told[key]
        if self._told.get(key) != wanted:
            self._changed[key] = None
        else:
            self._changed.pop(key, None)

    def leave(self, key: Key) -> None:
        """Do not fetch a partition, for now or for good."""
        wanted = self._wanted.pop(key, None)
        if wanted is None:
            return
        self._without_id -= wanted.topic_id == ZERO_UUID
        self._changed.pop(key, None)
        told = self._told.pop(key, None)
        if told is not None:
            self._forgotten[key] = told.topic_id

    def find(self, topic: str | UUID, index: int) -> tuple[Key, Wanted] | None:
        """The partition of an answer, with the fields that it was asked with."""
        name = self._names.get(topic) if isinstance(topic, UUID) else topic
        if name is None:
            return None
        wanted = self._told.get((name, index))
        return None if wanted is None else ((name, index), wanted)

    def restart(self) -> None:
        self._session_id = self._epoch = 0
        self._told.clear()
        self._forgotten.clear()
        self._changed = dict.fromkeys(self._wanted)

    def next_request(self) -> tuple[FetchRequest, list[Key]]:
        """The next request without its limits, and the partitions that it names."""
        if self._uses_ids == bool(self._without_id):
            self.restart()
            self._uses_ids = not self._without_id
        if not self.is_open:
            self._told.clear()
            self._forgotten.clear()
            self._changed = dict.fromkeys(self._wanted)
            self._names = {wanted.topic_id: key[0] for key, wanted in self._wanted.items() if wanted.topic_id != ZERO_UUID}
        named = list(self._changed)
        topics: dict[tuple[str, UUID], list[FetchPartition]] = {}
        for key in named:
            wanted = self._told[key] = self._wanted[key]
            topics.setdefault((key[0], wanted.topic_id), []).append(
                FetchPartition(
                    partition=key[1],
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    partition_max_bytes=wanted.max_bytes,
                )
            )
        request = FetchRequest(
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=found) for (name, topic_id), found in topics.items()],
            forgotten_topics_data=self._forgotten_topics(),
        )
        self._changed.clear()
        self._forgotten.clear()
        if self.is_open:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return request, named

    def _forgotten_topics(self) -> list[ForgottenTopic]:
        found: dict[tuple[str, UUID], list[int]] = {}
        for (name, index), topic_id in self._forgotten.items():
            found.setdefault((name, topic_id), []).append(index)
        return [ForgottenTopic(topic=name, topic_id=topic_id, partitions=indexes) for (name, topic_id), indexes in found.items()]

    def receive(self, session_id: int) -> None:
        """Take the id in an answer without an error of the session."""
        if not self.is_open and session_id:
            self._session_id, self._epoch = session_id, 1
