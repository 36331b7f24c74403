"""Produce requests that differ from an earlier one of their connection only in correlation id and records.

A producer sends such requests for hours (librdkafka: always; others: when one partition has data). To read one, the fast path only
compares the bytes before the records with known ones. The answer is known too, except for offsets. docs/internals/hot-path.md has the time
that this saves.

Requests that arrived together are a run, if machine code can check them (`records.walk`) and their batches belong to no transaction. A run
is appended with one write and answered with one buffer. A run may also have one request.

Rules
  1. A request is learnt only if `handle_produce` appended it without an error, and if it had one partition. The learnt bytes run from the
     API key to the length of the records, without the correlation id. Only empty tagged fields may follow the records. Requests of a
     transaction need more rights, so they are learnt only from such a request. If the partition must wait to join the transaction, the
     request takes the general way.
  2. A request that differs in any other way, and every error, takes the general way: `take` then declines and has changed nothing.
  3. The batches of a run are appended all or none, in order. The request that ends the run is handled as if it came alone.
  4. A connection remembers a limited number of requests (`limits`), then it learns no more. It has a share of its own, and beyond it room
     that all connections of the broker share (`TemplateBudget`). It gives this room back when it closes or forgets. Before it takes more
     room, it forgets requests for closed partitions.
  5. When the rights of any principal change, all connections forget the learnt requests, and the general way checks the rights again. The
     audit log learns of requests that it samples (`_Known.noted`).

`recognisable.py` decides which requests may be learnt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from struct import Struct
from struct import error as StructError  # `error` alone would not say whose error it is
from typing import TYPE_CHECKING, Protocol

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.codec import read_varint
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.produce import (
    FIRST_FLEXIBLE_VERSION,
    PartitionAnswer,
    ProduceHead,
    write_produce_answer,
)
from barnabas.protocol.records.batch_header import NO_TIMESTAMP, is_transactional
from barnabas.protocol.records.rows import ROW, Run
from barnabas.protocol.records.scan import compiled, walker
from barnabas.protocol.request_headers import BEHIND_CORRELATION_ID
from barnabas.security.acls import Operation, ResourceType
from barnabas.server.fastpath.recogniser import find, use
from barnabas.server.producing.delayed import ACKS_ALL, ACKS_NONE, must_wait, refusals, refused
from barnabas.server.producing.multi_partition import (
    PATIENCE,
    MultiPartitionBroker,
    MultiPartitionProduce,
    SharedBudget,
    beyond_share,
    budget_of,
    find_partition,
    paid,
)
from barnabas.server.producing.recognisable import may_repeat
from barnabas.server.producing.transactional import TransactionalBroker, is_joined_at_once
from barnabas.server.request_order import Effect
from barnabas.tuples import new_tuple

if TYPE_CHECKING:
    from barnabas.quota.budget import Budget
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.connection import Connection

_START = Struct(">Ii")  # api key and version as one number, correlation id
_I32 = Struct(">i")
_EMPTY_TAGS = b"\0\0\0"  # the tagged fields of partition, topic and request
_OFFSETS_MARK = 0x0102_0304_0506_0708  # marks the offset: no later bytes of an answer look like this


class ProduceTemplateBroker(MultiPartitionBroker, TransactionalBroker, Protocol):
    """The parts of the broker that this fast path needs."""

    @property
    def template_budget(self) -> TemplateBudget: ...


class _Known:
    """A learnt request: the partition for its records and the form of its answer."""

    __slots__ = (
        "acks",
        "api",
        "budget",
        "key",
        "layout",
        "middle",
        "noted",
        "partition",
        "patience",
        "size",
        "start",
        "tail",
        "timeout_ms",
        "transactional",
        "transactional_id",
        "version",
    )

    def __init__(
        self,
        partition: LeaderPartition,
        head: ProduceHead,
        api: int,
        version: int,
        start: bytes,
        budget: Budget | None,
        *,
        transactional: bool,
    ) -> None:
        self.budget = budget  # pays for such requests
        # set if the audit log samples: called with the number of appended requests
        self.noted: Callable[[int], None] | None = None
        self.start = start  # the bytes of such a request up to the length of the records
        self.transactional = transactional  # the learnt request was allowed for a transaction
        self.transactional_id = head.transactional_id
        self.patience = PATIENCE if compiled is not None and not transactional else 0
        self.partition = partition
        self.api = api
        self.version = version
        self.key = head.topics[0][0]
        self.acks = head.acks
        self.timeout_ms = head.timeout_ms
        mark = PartitionAnswer(partition.index, 0, _OFFSETS_MARK, -1, 0)
        answer = bytes(write_produce_answer(version, 0, [(self.key, [mark])]))
        at = answer.rindex(Struct(">q").pack(_OFFSETS_MARK))
        after = at + (16 if version < 5 else 24)  # from version 5 on, the answer has the log start offset
        self.size = len(answer) - 4
        self.middle, self.tail = answer[BEHIND_CORRELATION_ID:at], answer[after:]
        offsets = "qq" if version < 5 else "qqq"
        self.layout = Struct(f">ii{len(self.middle)}s{offsets}{len(self.tail)}s").pack

    def answer(self, correlation_id: int, first_offset: int, log_append_time_ms: int, log_start_offset: int) -> bytes:
        if self.version < 5:
            return self.layout(self.size, correlation_id, self.middle, first_offset, log_append_time_ms, self.tail)
        return self.layout(self.size, correlation_id, self.middle, first_offset, log_append_time_ms, log_start_offset, self.tail)

    def answers(self, run: Run, first_offset: int, log_start_offset: int) -> bytes:
        """The answers to the requests of `run`, one after the other."""
        shape = self.answer(0, 0, NO_TIMESTAMP, log_start_offset)
        return walker.answer_requests(run.rows, shape, BEHIND_CORRELATION_ID + len(self.middle), first_offset)


class TemplateBudget(SharedBudget):
    """The shared room for learnt requests; `multi_partition` is the shared room for partitions."""

    __slots__ = ("multi_partition",)

    def __init__(self) -> None:
        super().__init__()
        self.multi_partition = SharedBudget()


class ProduceTemplate:
    """The learnt requests of one connection.

    Args:
        broker: its `template_budget` has the room for requests beyond the connection's own share.
        connection: learnt requests have the rights of its principal.
    """

    __slots__ = (
        "_broker",
        "_closed_count",
        "_ends",
        "_groups",
        "_known",
        "_principal",
        "_rights_version",
        "_room",
        "multi_partition",
    )
    api_key = ApiKey.PRODUCE

    def __init__(self, broker: ProduceTemplateBroker, connection: Connection) -> None:
        self._broker = broker
        room = broker.template_budget
        self._ends: list[int] = []  # where the learnt bytes end; few values, because they depend only on the lengths of names
        self._known: dict[bytes, _Known] = {}
        self.multi_partition = MultiPartitionProduce(room.multi_partition)
        self._room = room
        self._closed_count = 0  # `closed_count` of the broker when closed partitions were last forgotten
        # The version of the authorizer, and the principal, when these requests were allowed
        self._rights_version = 0 if broker.authorizer is None else broker.authorizer.version
        self._principal, self._groups = connection.principal, connection.groups

    def forget(self) -> None:
        """Forget all requests: new ones go to the dispatcher one by one until they are learnt again."""
        self._ends.clear()
        self._keep({})
        self.multi_partition.forget()

    def knows(self, key: bytes, partition: LeaderPartition, *, transactional: bool) -> bool:
        """Whether a request for `partition` is learnt already; `key` is its bytes from the client's name on."""
        known = self._known.get(key)
        return known is not None and known.partition is partition and known.transactional >= transactional

    def learn(self, key: bytes, end: int, known: _Known, closed_count: int) -> None:
        """Remember a request, if there is room.

        Args:
            closed_count: number of partitions that the broker has closed so far.
        """
        # set if another object has replaced the partition of a known request
        before = self._known.get(key)
        if end > limits.MAX_REPEATED_BYTES or (end not in self._ends and len(self._ends) >= limits.MAX_REPEATED_LAYOUTS):
            return
        if before is None and len(self._known) >= limits.MAX_REPEATED_REQUESTS and not self._has_room(closed_count):
            return
        if end not in self._ends:
            self._ends.append(end)
        self._known[key] = known

    def _has_room(self, closed_count: int) -> bool:
        """Whether there is room for one more request, after those for closed partitions were forgotten; takes shared room if needed."""
        if closed_count != self._closed_count:
            self._closed_count = closed_count
            self._keep({key: known for key, known in self._known.items() if not known.partition.closed})
        count = len(self._known)
        return count < limits.MAX_REPEATED_REQUESTS or (count < limits.MAX_REPEATED_REQUESTS_OF_ONE and self._room.take())

    def _keep(self, kept: dict[bytes, _Known]) -> None:
        """Keep these requests and no others."""
        self._room.left += beyond_share(len(self._known)) - beyond_share(len(kept))
        self._known = kept

    def take(self, connection: Connection, data: memoryview, position: int, stop: int) -> tuple[int, int]:
        """Append and answer the request at `position`, or a run from there on, if it is known."""
        broker = self._broker
        if broker.authorizer is not None:
            self._forget_if_outdated(broker.authorizer.version, connection)
        if self.multi_partition.count > 1:
            taken, behind = self.multi_partition.take(broker, connection, data, position)
            if taken:
                return taken, behind
        for end in self._ends:
            known = self._known.get(bytes(data[position + 4 + BEHIND_CORRELATION_ID : position + 4 + end]))
            if known is not None:
                if known.patience and stop - position <= limits.MAX_RUN_BYTES:
                    taken, behind = _append_run(broker, connection, data, position, known)
                    if taken:
                        known.patience = PATIENCE
                        return taken, behind
                    known.patience -= 1
                if known.partition.closed or not _append(broker, connection, data[position + 4 : stop], end, known):
                    break
                return 1, stop
        return 0, position

    def _forget_if_outdated(self, rights_version: int, connection: Connection) -> None:
        """Forget requests that were allowed to another principal, or before rights changed."""
        if (
            rights_version != self._rights_version
            or connection.principal is not self._principal
            or connection.groups is not self._groups
        ):
            self._rights_version, self._principal, self._groups = rights_version, connection.principal, connection.groups
            self.forget()


def _append_run(
    broker: ProduceTemplateBroker, connection: Connection, data: memoryview, position: int, known: _Known
) -> tuple[int, int]:
    partition = known.partition
    if partition.closed:
        return 0, position
    if known.budget is not None:
        connection.started_ns = time.perf_counter_ns()
    largest = min(limits.MAX_RUN_BYTES, broker.receiver.max_frame_bytes)
    bounds = partition.log.appender.bounds_of_run(broker.clock.now_ms(), largest, limits.MAX_RUN_REQUESTS)
    if bounds is None:
        return 0, position
    flexible = known.version >= FIRST_FLEXIBLE_VERSION
    run = new_tuple(Run, walker.walk_requests(data, position, known.start, flexible, bounds))
    if not run.records:
        return 0, position
    try:
        if not partition.admits_run(run, data, acks_all=known.acks == ACKS_ALL):
            return 0, position
        first_offset = partition.append_run(run, data)
    except (KafkaError, StorageError):
        return 0, position  # nothing has changed; handled one by one, the requests meet the same error
    broker.metrics.bytes_in += run.size
    if known.noted is not None:
        known.noted(run.requests)
    answers: bytes | bytearray = known.answers(run, first_offset, partition.log.log_start_offset)
    if known.budget is not None:
        answers = paid(broker, connection, known.budget, run.behind - position, answers, known.version)
    _answer(broker, connection, known, run.rows, answers, first_offset + run.records - 1)
    return run.requests, run.behind


def _answer(
    broker: ProduceTemplateBroker,
    connection: Connection,
    known: _Known,
    requests: int | bytes,
    answer: bytes | bytearray,
    last_offset: int,
) -> None:
    """Answer a request or a run, whose last record is at `last_offset`, now or when the record is as safe as the client wants.

    Args:
        requests: the correlation id, or the rows of the run.
    """
    if known.acks == ACKS_NONE:
        return
    partition = known.partition
    if last_offset >= partition.high_watermark and must_wait(partition, last_offset, known.acks):
        waiting = _Waiting(broker, connection, known, requests, answer)
        partition.wait_acknowledged(last_offset, waiting.settle, acks_all=known.acks == ACKS_ALL)
    else:
        connection.send([answer])


def _append(broker: ProduceTemplateBroker, connection: Connection, frame: memoryview, end: int, known: _Known) -> bool:
    api, correlation_id = _START.unpack_from(frame)
    records = _records(frame, end, known.version)
    if api != known.api or records is None:
        return False
    partition = known.partition
    if is_transactional(records) and not (
        known.transactional and is_joined_at_once(broker, partition, records, known.transactional_id, known.version)
    ):
        return False
    if known.budget is not None:
        connection.started_ns = time.perf_counter_ns()
    try:
        result = partition.append_as_leader(records, broker.clock.now_ms(), acks_all=known.acks == ACKS_ALL)
    except (KafkaError, StorageError):
        # a failed append changes nothing; the general way meets the same error and answers it
        return False
    broker.metrics.bytes_in += len(records)
    if known.noted is not None:
        known.noted(1)
    answer: bytes | bytearray = known.answer(
        correlation_id, result.first_offset, result.log_append_time_ms, result.log_start_offset
    )
    if known.budget is not None:
        answer = paid(broker, connection, known.budget, len(frame), answer, known.version)
    _answer(broker, connection, known, correlation_id, answer, result.last_offset)
    return True


class _Waiting:
    """A request or a run that waits until its batches are committed; the answer is ready."""

    __slots__ = ("_answer", "_broker", "_connection", "_known", "_place", "_requests", "_timer")

    def __init__(
        self,
        broker: ProduceTemplateBroker,
        connection: Connection,
        known: _Known,
        requests: int | bytes,
        answer: bytes | bytearray,
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._known = known
        self._requests = requests
        self._answer: bytes | bytearray | None = answer
        self._place = connection.expect_answer(Effect.APPENDS)
        self._timer = broker.loop.call_later(max(known.timeout_ms, 0) / 1000, self._time_out)

    def _time_out(self) -> None:
        self.settle(KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def settle(self, error: KafkaError | None) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return  # answered already
        self._timer.cancel()
        if error is not None:
            known = self._known
            topics = [(known.key, [refused(known.partition.index, error)])]
            requests = self._requests
            each = [requests] if isinstance(requests, int) else [row[0] for row in ROW.iter_unpack(requests)]
            answer = b"".join(refusals(self._broker, self._connection, known.version, one, topics) for one in each)
        self._connection.complete(self._place, [answer], among_many=True)


def _records(frame: memoryview, end: int, version: int) -> memoryview | None:
    """The records whose length stands at `end`, if they and empty tagged fields fill the rest of the frame; None otherwise."""
    size = len(frame)
    try:
        if version < FIRST_FLEXIBLE_VERSION:
            (length,) = _I32.unpack_from(frame, end)
            return frame[end + 4 :] if length > 0 and end + 4 + length == size else None
        length, position = read_varint(frame, end)
    except (IndexError, StructError, ValueError):
        return None
    stop = position + length - 1
    if length < 2 or stop + len(_EMPTY_TAGS) != size or frame[stop:] != _EMPTY_TAGS:
        return None
    return frame[position:stop]


def prepare(broker: ProduceTemplateBroker, connection: Connection) -> None:
    """Give a connection its recogniser before its first request, so that learnt requests are valid under the current rights."""
    if find(connection.recognisers, ProduceTemplate) is None:
        use(connection.recognisers, ProduceTemplate(broker, connection))


def learn(broker: ProduceTemplateBroker, connection: Connection, frame: memoryview, version: int, head: ProduceHead) -> None:
    """Remember a request whose records were appended, and the partitions of these records."""
    if connection.closed:
        return
    template = find(connection.recognisers, ProduceTemplate)
    assert template is not None, "`prepare` made it"
    if compiled is not None:
        template.multi_partition.learn(broker, connection, frame, version, head)
    if not may_repeat(head):
        return
    key, (wanted,) = head.topics[0]
    flexible = version >= FIRST_FLEXIBLE_VERSION
    partition = find_partition(broker, version, key, wanted.partition)
    if partition is None or wanted.records is None:
        return
    size = len(wanted.records)
    length_bytes = ((size + 1).bit_length() + 6) // 7 if flexible else _I32.size
    end = len(frame) - size - length_bytes - (len(_EMPTY_TAGS) if flexible else 0)
    key_bytes, transactional = bytes(frame[BEHIND_CORRELATION_ID:end]), is_transactional(wanted.records)
    if template.knows(key_bytes, partition, transactional=transactional):
        return
    taken = _records(frame, end, version)
    if taken is not None and len(taken) == size:
        start, budget = bytes(frame[:end]), budget_of(connection)
        known = _Known(partition, head, _START.unpack_from(frame)[0], version, start, budget, transactional=transactional)
        authorizer = broker.authorizer
        if authorizer is not None:
            access = authorizer.of_hot_request(connection, ApiKey.PRODUCE, authorizer.client_id(frame))
            known.noted = access.sampled(Operation.WRITE, ResourceType.TOPIC, partition.topic)
        template.learn(key_bytes, end, known, broker.partitions.closed_count)
