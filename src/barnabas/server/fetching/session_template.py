"""Fetch requests of a session that differ from the last one of their connection only in a few fields.

Followers and consumers with sessions send these for hours. Only the correlation id, the session's epoch and the named partitions differ.
So the fast path compares the bytes before and after these with those of the last request, and decodes only the named partitions. If few
partitions have news and none has an error, the answer is known too, except for a few numbers. Or the fast path knows that there is no
answer yet.

Rules
  1. A learnt request is an incremental fetch that forgets no partition.
  2. A request that differs in any other way, or names partitions that the session does not know, takes the general way: `take` then
     declines and has changed nothing.
  3. If data is not in memory, or a case is not simple, or there is an error, a `Fetch` decides. It gets the request already decoded.
  4. After its wait a `Fetch` asks here first (`_answer_of_waiting`).
  5. The fast path notes no value as told before it knows the whole answer. The log end offset of a follower may count twice for one
     request, which changes nothing.

`recognisable.py` decides which requests may be learnt.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import partial
from itertools import groupby
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Literal, Protocol

from barnabas import limits
from barnabas.errors import KafkaError, StorageError
from barnabas.protocol.codec import uuid_of
from barnabas.protocol.fetch import FIRST_TOPIC_ID_VERSION, Copied, FetchAnswerShape, Parts
from barnabas.protocol.fetch_request import EPOCH_BYTES, NO_EPOCH, read_named, session_epoch_at
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.request_headers import API_BYTES, BEHIND_CORRELATION_ID
from barnabas.replication.partition import READ_COMMITTED
from barnabas.server.fetching.disk_loading import MOST_COPIED_BYTES
from barnabas.server.fetching.fetch import Fetch
from barnabas.server.fetching.partition_lookup import FetchBroker, count_follower
from barnabas.server.fetching.read_ahead import ReadAhead, ReadAheadBroker
from barnabas.server.fetching.recognisable import is_simple, may_continue
from barnabas.server.fetching.session_cache import params_of
from barnabas.server.page_cache import COPIED_BYTES, at_hand
from barnabas.storage.file_region import FileRegion

if TYPE_CHECKING:
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.replication.partition import OnlinePartition, Partition
    from barnabas.server.connection import Connection
    from barnabas.server.fetching.fetch_session import FetchContext, FetchedPartition, FetchSession
    from barnabas.server.fetching.partition_lookup import Records
    from barnabas.server.quotas.client_quotas import ClientQuotas

    Looked = list[tuple[FetchedPartition, LeaderPartition, "Given | None"]]
    Given = tuple[FileRegion, FileRegion | Copied, int]
    """Where records lie, as they are sent, and how many bytes they were to have at most."""

_I32 = Struct(">i")
MOST_PARTITIONS = 8  # with news, in one answer
MOST_SHAPES = 64  # of answers; each order of partitions has its own


class SessionFetchBroker(FetchBroker, ReadAheadBroker, Protocol):
    """The parts of the broker that this module uses."""

    client_quotas: ClientQuotas | None


class _None(Enum):
    """The reason why the fast path has no answer."""

    YET = auto()  # no error, and no records yet
    THIS_WAY = auto()


class SessionFetchTemplate:
    """The fetches of one session on one connection."""

    __slots__ = (
        "_ahead",
        "_api",
        "_broker",
        "_client_id",
        "_is_plain",
        "_params",
        "_replica_id",
        "_request",
        "_session_id",
        "_shapes",
        "_start",
        "_tail",
        "_version",
    )

    api_key = ApiKey.FETCH

    def __init__(self, broker: SessionFetchBroker) -> None:
        self._broker = broker
        self._ahead = ReadAhead()  # for a consumer
        self._api = b""
        self._start = b""  # from the client id up to the session's epoch
        self._tail = b""  # the bytes after the partitions
        self._version = -1
        self._session_id = 0  # 0: no request is known
        self._client_id: str | None = None
        self._request = FetchRequest()  # without its partitions
        self._params = params_of(self._request, self._version)
        self._replica_id = -1
        self._is_plain = False  # may be answered at once
        self._shapes: dict[tuple[FetchedPartition, ...], FetchAnswerShape[Records]] = {}  # by the partitions that they name

    def forget(self) -> None:
        self._session_id = 0

    def learn(self, frame: memoryview, body: int, version: int, request: FetchRequest, client_id: str | None) -> None:
        """Remember a request that the general way handled, if the fast path can handle similar ones."""
        self._ahead.forget()
        self._session_id = 0
        if len(frame) > limits.MAX_REPEATED_FETCH_BYTES or not may_continue(request):
            return
        data = bytes(frame)
        epoch_at = session_epoch_at(body, version)
        found = read_named(data, epoch_at + EPOCH_BYTES, version)
        if found is None:
            return
        self._api, self._start, self._tail = data[:API_BYTES], data[BEHIND_CORRELATION_ID:epoch_at], data[found[1] :]
        self._version, self._client_id = version, client_id
        request.topics = ()
        self._request = request
        self._params = params_of(request, version)
        self._replica_id = self._params.replica_id
        self._is_plain = is_simple(request)
        self._shapes.clear()
        self._session_id = request.session_id

    def take(self, connection: Connection, data: memoryview, position: int, stop: int) -> tuple[int, int]:
        """Answer the request at `position` if it is known, now or when there are records."""
        broker = self._broker
        if not self._session_id or broker.client_quotas is not None:
            return 0, position
        frame = bytes(data[position + 4 : stop])
        epoch_at = BEHIND_CORRELATION_ID + len(self._start)
        if not (
            frame.startswith(self._api)
            and frame.startswith(self._start, BEHIND_CORRELATION_ID)
            and len(frame) > epoch_at + EPOCH_BYTES
        ):
            return 0, position
        context = self._go_on(broker, frame, epoch_at)
        if context is None:
            return 0, position
        correlation_id = _I32.unpack_from(frame, API_BYTES)[0]
        is_quick = self._replica_id < 0 and self._ahead.begin(connection)
        found = self._look(broker, connection, context, correlation_id, is_quick=is_quick) if self._is_plain else _None.THIS_WAY
        if not isinstance(found, _None):
            connection.send(found)
            if is_quick:
                self._ahead.answered(broker, connection, self._request.isolation_level)
            return 1, stop
        request = self._request
        fetch = Fetch(broker, connection, request, context, self._version, correlation_id, self._client_id)
        known = partial(self._answer_of_waiting, broker, connection, request, context, correlation_id) if self._is_plain else None
        if found is _None.YET and request.max_wait_ms > 0 and request.min_bytes > 0:
            session = context.session
            assert session is not None, "it goes on"
            fetch.wait([each.partition for each in session.pending if each.partition is not None], known)
        else:
            fetch.start(known)
        return 1, stop

    def _go_on(self, broker: SessionFetchBroker, data: bytes, epoch_at: int) -> FetchContext | None:
        """Update the session with the named partitions and return its fetch; None, without any change, if the general way must handle the
        request.
        """
        sessions, uses_ids = broker.fetch_sessions, self._version >= FIRST_TOPIC_ID_VERSION
        session = sessions.find(self._session_id)
        if session is None or session.uses_topic_ids != uses_ids or session.epoch != _I32.unpack_from(data, epoch_at)[0]:
            return None
        found = read_named(data, epoch_at + EPOCH_BYTES, self._version)
        if found is None or data[found[1] :] != self._tail:
            return None
        partitions = session.partitions
        known = [
            (partitions.get((uuid_of(topic) if uses_ids else topic.decode(errors="replace"), named[0])), named)
            for topic, named in found[0]
        ]
        if not partitions or any(partition is None for partition, _ in known):
            return None
        for partition, named in known:
            assert partition is not None
            session.update(partition, named)
        return sessions.go_on(session, self._params, broker.clock.now_ms())

    def _answer_of_waiting(
        self,
        broker: SessionFetchBroker,
        connection: Connection,
        request: FetchRequest,
        context: FetchContext,
        correlation_id: int,
    ) -> Parts[Records] | None:
        """The answer of a fetch that began here, after an event; None if the general way must answer."""
        if self._request is not request:
            return None  # the connection now continues another session
        found = self._look(broker, connection, context, correlation_id, is_quick=False, is_first=False)
        return None if isinstance(found, _None) else found

    def _look(
        self,
        broker: SessionFetchBroker,
        connection: Connection,
        context: FetchContext,
        correlation_id: int,
        *,
        is_quick: bool,
        is_first: bool = True,
    ) -> Parts[Records] | _None:
        """An answer with the records of the partitions with news, if it needs nothing else.

        Args:
            is_quick: whether to look up the consumer's next data in advance.
            is_first: whether this is the first look for the request, at which a follower's log end offset counts.
        """
        session, replica_id = context.session, self._replica_id
        assert session is not None, "it goes on"
        if (
            len(session.pending) > MOST_PARTITIONS
            or len(session.waiters) > (0 if is_first else 1)
            or connection.budget is not None
            or broker.authorizer is not None
        ):
            return _None.THIS_WAY
        try:
            found = self._look_at_all(broker, session)
            if found is None:
                return _None.THIS_WAY
            looked, has_records = found
            if is_first and replica_id >= 0:
                broker.isr.heard_of(replica_id)
                for wanted, partition, _ in looked:
                    count_follower(broker, self._request, replica_id, partition, wanted)
        except (KafkaError, StorageError, OSError):
            return _None.THIS_WAY  # a `Fetch` meets the same error and answers it
        if not has_records:
            return _None.YET
        return self._answer(broker, session, correlation_id, looked, is_quick=is_quick)

    def _look_at_all(self, broker: SessionFetchBroker, session: FetchSession) -> tuple[Looked, bool] | None:
        """The data of the partitions that may have news, and whether there is any. None if the general way must answer, also if the data
        is not enough for an answer.
        """
        looked: Looked = []
        request, open_files = self._request, broker.logs.open_files
        most = room = min(request.max_bytes, broker.config.fetch_max_bytes)
        for wanted in session.in_order():
            if open_files is not None and open_files.is_crowded:
                return None
            partition = _partition_of(broker, wanted)
            if partition is None or not partition.is_leader or wanted.leader_epoch not in (NO_EPOCH, partition.leader_epoch):
                return None
            wanted.follow(partition)
            given = self._find(broker, partition, wanted, max(room, 0), most - room)
            if given is _None.THIS_WAY:
                return None
            if given is _None.YET:
                looked.append((wanted, partition, None))
            else:
                room -= given[0].size
                looked.append((wanted, partition, given))
        taken = most - room
        return (looked, taken > 0) if not taken or taken >= min(request.min_bytes, most) else None

    def _find(
        self, broker: SessionFetchBroker, partition: LeaderPartition, wanted: FetchedPartition, room: int, taken: int
    ) -> Given | Literal[_None.YET, _None.THIS_WAY]:
        """The records of one partition, if the log of its fetcher does not diverge.

        Args:
            room: bytes that the answer may still take.
            taken: bytes that the answer already has.
        """
        log, offset, isolation_level = partition.log, wanted.fetch_offset, self._request.isolation_level
        if wanted.last_fetched_epoch >= 0 and (
            wanted.last_fetched_epoch != log.reader.latest_epoch or offset > log.log_end_offset
        ):
            return _None.THIS_WAY
        size = min(room, wanted.max_bytes)
        if size < 0:
            return _None.THIS_WAY
        region: FileRegion | None
        if self._replica_id < 0:
            found = self._ahead.take(broker, partition, offset, size) if self._ahead.found else None
            if found is not None:
                return *found, size
            region = partition.read(offset, size, minimum_one=not taken, isolation_level=isolation_level, is_verified_later=True)
            if region is not None and isolation_level == READ_COMMITTED and partition.aborted_in(region, offset):
                return _None.THIS_WAY
        elif broker.throttles.room_to_send(partition, self._replica_id) is None:
            region = partition.read_as_follower(offset, size, minimum_one=not taken, is_verified_later=True)
        else:
            return _None.THIS_WAY
        if region is None:
            return _None.YET
        records = at_hand(broker.files, region, may_copy=taken < MOST_COPIED_BYTES)
        return _None.THIS_WAY if records is None else (region, records, size)

    def _answer(
        self,
        broker: SessionFetchBroker,
        session: FetchSession,
        correlation_id: int,
        looked: Looked,
        *,
        is_quick: bool,
    ) -> Parts[Records]:
        is_committed = self._request.isolation_level == READ_COMMITTED
        told: list[FetchedPartition] = []
        marks: list[tuple[int, int, int, Records | None]] = []
        for wanted, partition, given in looked:
            records = None if given is None else given[1]
            high_watermark, log_start = partition.high_watermark, partition.log.log_start_offset
            if wanted.tell(
                error_code=0, high_watermark=high_watermark, log_start_offset=log_start, has_records=records is not None
            ):
                told.append(wanted)
                marks.append((high_watermark, partition.last_stable_offset, log_start, records))
            if given is None:
                wanted.maybe_rest()
                continue
            region, _, size = given
            session.move_to_end(wanted)
            if self._replica_id >= 0:
                broker.throttles.sent(partition, region.size)
            elif is_quick and region.size > COPIED_BYTES:
                self._ahead.gave(partition, region, size)
        key = tuple(told)
        shape = self._shapes.get(key) or self._learn_shape(session, key, is_committed=is_committed)
        parts, payload = shape.write(correlation_id, marks)
        broker.metrics.bytes_out += payload
        return parts

    def _learn_shape(
        self, session: FetchSession, told: tuple[FetchedPartition, ...], *, is_committed: bool
    ) -> FetchAnswerShape[Records]:
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
        topics = [(topic, [each.index for each in group]) for topic, group in groupby(told, key=attrgetter("topic"))]
        shape: FetchAnswerShape[Records] = FetchAnswerShape(
            self._version, topics, is_committed=is_committed, session_id=session.session_id
        )
        self._shapes[told] = shape
        return shape


def _partition_of(broker: SessionFetchBroker, wanted: FetchedPartition) -> OnlinePartition | None:
    """The partition that `wanted` follows already, or the one of that name or id; None if it is not here."""
    topic = wanted.topic
    partition: Partition | None = wanted.partition
    if partition is None or partition.closed:
        partitions = broker.partitions
        partition = partitions.get(topic, wanted.index) if isinstance(topic, str) else partitions.by_id(topic, wanted.index)
    return None if partition is None or partition.closed else partition
