"""Incremental fetch sessions (KIP-227): what a fetcher asked for last time, so that it only says what changed.

Owns the sessions of one broker. No socket, no clock: `now_ms` is an argument, ids come from the `new_id` given.

Rules
  1. A session answers only partitions that changed since its last answer: records, an error, another high watermark or log start.
  2. A partition that gave records goes to the end of the order, so that a busy one does not starve those behind it.
  3. At most `slots` sessions; a full cache gives no session (id 0), the client then asks in full each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_EPOCH = 2**31 - 1
TopicKey = str | UUID  # the name below version 13, the id from there on


@dataclass(slots=True)
class FetchedPartition:
    """One partition of a fetch, and what its fetcher was last told."""

    topic: TopicKey
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    told_high_watermark: int = -1
    told_log_start_offset: int = -1

    def update(self, request: FetchPartition) -> None:
        self.fetch_offset = request.fetch_offset
        self.max_bytes = request.partition_max_bytes
        self.leader_epoch = request.current_leader_epoch
        self.last_fetched_epoch = request.last_fetched_epoch

    def tell(self, *, error_code: int, high_watermark: int, log_start_offset: int, has_records: bool) -> bool:
        """Note what an answer would say; whether an incremental answer must say it."""
        if error_code:
            self.told_high_watermark = -1  # so that the next good answer is given even if nothing changed
            return True
        changed = has_records or high_watermark != self.told_high_watermark or log_start_offset != self.told_log_start_offset
        self.told_high_watermark = high_watermark
        self.told_log_start_offset = log_start_offset
        return changed


PartitionKey = tuple[TopicKey, int]


@dataclass(slots=True)
class FetchSession:
    session_id: int
    uses_topic_ids: bool
    created_ms: int
    used_ms: int
    epoch: int = 1  # the one that the next request must carry
    partitions: dict[PartitionKey, FetchedPartition] = field(default_factory=dict)

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def move_to_end(self, partition: FetchedPartition) -> None:
        key = (partition.topic, partition.index)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = partition


@dataclass(slots=True)
class FetchContext:
    """One fetch: which partitions it covers and how its answer is made."""

    partitions: list[FetchedPartition]
    session: FetchSession | None = None
    is_incremental: bool = False
    error: ErrorCode = ErrorCode.NONE

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.session_id


class FetchSessions:
    """The sessions of a broker.

    Args:
        slots: most sessions kept, `max.incremental.fetch.session.cache.slots`.
        eviction_ms: milliseconds for which a session is safe from eviction.
        new_id: gives a positive 32-bit number; asked again while it is taken.
    """

    def __init__(self, slots: int, eviction_ms: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}  # the longest unused first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
        """What `request` asks for, by itself or with what its session remembers."""
        uses_ids = version >= 13
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            partitions = {(p.topic, p.index): p for p in _requested(request, uses_ids)}
            session = None
            if request.session_epoch == INITIAL_EPOCH and version >= 7:
                session = self._create(partitions, uses_ids, now_ms)
            return FetchContext(list(partitions.values()), session)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchContext([], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_ids:
            return FetchContext([], error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._continue(session, request, now_ms)

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def _continue(self, session: FetchSession, request: FetchRequest, now_ms: int) -> FetchContext:
        for topic in request.forgotten_topics_data:
            key: TopicKey = topic.topic_id if session.uses_topic_ids else topic.topic
            for index in topic.partitions:
                session.partitions.pop((key, index), None)
        for wanted in _requests(request, session.uses_topic_ids):
            known = session.partitions.get((wanted[0], wanted[1].partition))
            if known is None:
                made = _fetched(*wanted)
                session.partitions[(made.topic, made.index)] = made
            else:
                known.update(wanted[1])
        if not session.partitions:
            self._sessions.pop(session.session_id)
            return FetchContext([])
        session.advance()
        session.used_ms = now_ms
        self._sessions.pop(session.session_id)
        self._sessions[session.session_id] = session
        return FetchContext(list(session.partitions.values()), session, is_incremental=True)

    def _create(self, partitions: dict[PartitionKey, FetchedPartition], uses_ids: bool, now_ms: int) -> FetchSession | None:
        if not partitions or not self._make_room(len(partitions), now_ms):
            return None
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_ids, now_ms, now_ms, partitions=partitions)
        self._sessions[session_id] = session
        return session

    def _make_room(self, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > self._eviction_ms:
            del self._sessions[oldest.session_id]
            return True
        smallest = min(self._sessions.values(), key=lambda s: len(s.partitions))
        if len(smallest.partitions) < size and now_ms - smallest.created_ms > self._eviction_ms:
            del self._sessions[smallest.session_id]
            return True
        return False


def _requests(request: FetchRequest, uses_ids: bool) -> Iterator[tuple[TopicKey, FetchPartition]]:
    for topic in request.topics:
        key: TopicKey = topic.topic_id if uses_ids else topic.topic
        for partition in topic.partitions:
            yield key, partition


def _fetched(topic: TopicKey, request: FetchPartition) -> FetchedPartition:
    return FetchedPartition(
        topic,
        request.partition,
        request.fetch_offset,
        request.partition_max_bytes,
        request.current_leader_epoch,
        request.last_fetched_epoch,
    )


def _requested(request: FetchRequest, uses_ids: bool) -> Iterable[FetchedPartition]:
    return (_fetched(topic, partition) for topic, partition in _requests(request, uses_ids))
