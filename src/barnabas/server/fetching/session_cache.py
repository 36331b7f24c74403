"""The incremental fetch sessions of a broker (KIP-227): a fetcher names only the partitions that changed since its last request.

Owns all `FetchSession`s. It uses no socket and no clock: `now_ms` is an argument, and `new_id` makes the ids.

Rules
  1. The cache has at most `slots` sessions. A full cache gives no session (id 0), and the client then names all partitions in each
     request.
  2. A dropped session is closed, so that no partition sends it further events.
  3. The cache drops no session of a follower for one of a consumer.
  4. A fetcher of a follower has one session. When it begins another, the cache drops the earlier one (`take_place`). A late request of an
     earlier connection is refused if it continues the earlier session. If it begins a session, the fetcher finds its own session gone, and
     names all its partitions again. Either way the last offsets from the follower are correct, though a session skips partitions without
     news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.error_codes import ErrorCode
from barnabas.protocol.fetch_request import Named
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest
from barnabas.server.fetching.fetch_session import (
    FetchContext,
    FetchedPartition,
    FetchParams,
    FetchSession,
    PartitionKey,
    TopicKey,
)

INITIAL_EPOCH, FINAL_EPOCH = 0, -1


class FetchSessionCache:
    """The sessions of a broker.

    Args:
        slots: maximum number of sessions, `max.incremental.fetch.session.cache.slots`.
        new_id: makes a positive 32-bit number; called again while the number is in use.
        eviction_ms: a full cache keeps a session for this time, `min.incremental.fetch.session.eviction.ms`.
    """

    def __init__(self, slots: int, new_id: Callable[[], int], eviction_ms: int) -> None:
        self._slots = slots
        self._new_id = new_id
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}  # the session unused for the longest time comes first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
        """The partitions and limits of `request`, together with the partitions that its session remembers."""
        uses_ids = version >= 13
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.remove(request.session_id)
            partitions = {(p.topic, p.index): p for p in _requested(request, uses_ids)}
            session = None
            if request.session_epoch == INITIAL_EPOCH and version >= 7:
                session = self._create(partitions, uses_ids, now_ms, params_of(request, version))
            return FetchContext(list(partitions.values()), session)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchContext([], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_ids:
            return FetchContext([], error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._continue(session, request, version, now_ms)

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _continue(self, session: FetchSession, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
        for topic in request.forgotten_topics_data:
            key: TopicKey = topic.topic_id if session.uses_topic_ids else topic.topic
            for index in topic.partitions:
                session.forget((key, index))
        for wanted in _requests(request, session.uses_topic_ids):
            known = session.partitions.get((wanted[0], wanted[1].partition))
            if known is None:
                session.add(_fetched(*wanted))
            else:
                session.update(known, _named(wanted[1]))
        if not session.partitions:
            self.remove(session.session_id)
            return FetchContext([])
        return self.go_on(session, params_of(request, version), now_ms)

    def take_place(self, session: FetchSession, fetcher: str) -> None:
        """Make `session` the only session of a follower's fetcher.

        Args:
            fetcher: its client id, which no other fetcher of any broker has.
        """
        for earlier in [each for each in self._sessions.values() if each.fetcher == fetcher]:
            self.remove(earlier.session_id)
        session.fetcher = fetcher

    def find(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def go_on(self, session: FetchSession, params: FetchParams, now_ms: int) -> FetchContext:
        """The next fetch of a session; the caller has updated the partitions from the request."""
        if params is not session.params:
            session.take_params(params)
        session.advance()
        session.used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        return FetchContext([], session, is_incremental=True)

    def _create(
        self, partitions: dict[PartitionKey, FetchedPartition], uses_ids: bool, now_ms: int, params: FetchParams
    ) -> FetchSession | None:
        is_of_follower = params.replica_id >= 0
        if not partitions or not (self._make_room(len(partitions), now_ms) or (is_of_follower and self._take_from_consumer())):
            return None
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_ids, now_ms, now_ms, params, is_of_follower)
        for partition in partitions.values():
            session.add(partition)
        self._sessions[session_id] = session
        return session

    def _make_room(self, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > self._eviction_ms:
            self.remove(oldest.session_id)
            return True
        smallest = min(self._sessions.values(), key=lambda s: (s.is_of_follower, len(s.partitions)))
        if not smallest.is_of_follower and len(smallest.partitions) < size and now_ms - smallest.created_ms > self._eviction_ms:
            self.remove(smallest.session_id)
            return True
        return False

    def _take_from_consumer(self) -> bool:
        """Drop a session of a consumer, if there is one. Followers have priority, as in Kafka, because the cluster depends on them."""
        found = next((session for session in self._sessions.values() if not session.is_of_follower), None)
        if found is not None:
            self.remove(found.session_id)
        return found is not None


def replica_id_of(request: FetchRequest) -> int:
    """The id of the follower that sends the request; negative for a consumer."""
    return max(request.replica_id, request.replica_state.replica_id)


def params_of(request: FetchRequest, version: int) -> FetchParams:
    replica_epoch = request.replica_state.replica_epoch
    return FetchParams(version, replica_id_of(request), replica_epoch, request.isolation_level, request.rack_id)


def _requests(request: FetchRequest, uses_ids: bool) -> Iterator[tuple[TopicKey, FetchPartition]]:
    for topic in request.topics:
        key: TopicKey = topic.topic_id if uses_ids else topic.topic
        for partition in topic.partitions:
            yield key, partition


def _fetched(topic: TopicKey, request: FetchPartition) -> FetchedPartition:
    index, leader_epoch, offset, last_epoch, log_start, most = _named(request)
    return FetchedPartition(topic, index, offset, most, leader_epoch, last_epoch, log_start)


def _named(request: FetchPartition) -> Named:
    return (
        request.partition,
        request.current_leader_epoch,
        request.fetch_offset,
        request.last_fetched_epoch,
        request.log_start_offset,
        request.partition_max_bytes,
    )


def _requested(request: FetchRequest, uses_ids: bool) -> Iterable[FetchedPartition]:
    return (_fetched(topic, partition) for topic, partition in _requests(request, uses_ids))
