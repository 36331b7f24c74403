"""Produce requests that arrived together and have batches for several partitions, handled partition by partition.

Most producers send the data for all partitions of a broker in one request, or one request for each partition in turn. One by one, each
batch costs a write, a check and an answer. Here machine code divides the requests in the receive buffer (`records.multi_partition_scan`).
The batches of a partition are then appended like a run: with one write.

Rules
  1. This path knows only partitions to which `handle_produce` has appended without an error. It takes a request if its bytes up to the
     timeout equal those of a learnt one and it belongs to no transaction.
  2. It takes a request whole or not at all. The first request with a batch that cannot be part of a run ends the selection, before any
     append, and takes the general way. So nothing is appended out of order.
  3. If a write fails after that, the answers of the requests with batches in it have the error, as in the general way.
  4. If the batches of a partition could not be part of a run `PATIENCE` times in a row, this path does not try the partition again.
  5. A connection knows a limited number of partitions and of repeated requests, and forgets both at the same events. If the audit log
     samples appended data, nothing is learnt, because the audit log counts requests by topic.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.protocol.produce import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_TOPIC_ID_VERSION,
    PartitionAnswer,
    ProduceHead,
)
from barnabas.protocol.records.batch_header import is_transactional
from barnabas.protocol.records.rows import NUMBER, REQUEST, ROW, Run
from barnabas.protocol.records.scan import multi_partition_walker
from barnabas.protocol.request_headers import BEHIND_CORRELATION_ID
from barnabas.security.acls import Operation, ResourceType
from barnabas.server.producing.delayed import ACKS_ALL, ACKS_NONE, WaitingBroker, must_wait, refusals, refused
from barnabas.server.producing.recognisable import may_spread
from barnabas.server.quotas.charging import ChargingBroker, charge_produce
from barnabas.server.request_order import Effect
from barnabas.tuples import new_tuple

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.quota.budget import Budget
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.connection import Connection
    from barnabas.server.metrics import Metrics
    from barnabas.server.receiver import Receiver
    from barnabas.server.services import FaultReports

PATIENCE = 4  # times in a row that the first batch of a partition could not be part of a run
_INDEX = Struct(">i")
_LENGTH = Struct(">h")
_HEADER_OF_CLIENT = BEHIND_CORRELATION_ID + _LENGTH.size
_ACKS_AND_TIMEOUT = 6


class MultiPartitionBroker(ChargingBroker, WaitingBroker, Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    clock: Clock
    metrics: Metrics
    partitions: HostedPartitions
    receiver: Receiver

    @property
    def faults(self) -> FaultReports: ...


def find_partition(broker: MultiPartitionBroker, version: int, key: bytes, index: int) -> LeaderPartition | None:
    """The partition of a Produce request of `version`, by a topic's name or id and an index; None if this broker does not lead it."""
    by_id = version >= FIRST_TOPIC_ID_VERSION
    found = broker.partitions.by_id_bytes(key) if by_id else broker.partitions.by_name_bytes(key)
    partition = (found or {}).get(index)
    return partition if partition is not None and partition.is_leader else None


def budget_of(connection: Connection) -> Budget | None:
    """The budget that pays for the produce requests of the current client; None if they are free."""
    budget = connection.budget
    return None if budget is None or budget.is_free_to_produce else budget


def beyond_share(count: int) -> int:
    """The part of a connection's `count` learnt entries that uses the shared room of all connections."""
    return max(count - limits.MAX_REPEATED_REQUESTS, 0)


def paid(
    broker: MultiPartitionBroker, connection: Connection, budget: Budget, size: int, answers: bytes | bytearray, version: int
) -> bytes | bytearray:
    """Answers without refusals, after requests of `size` bytes were paid. The last answer gets the throttle time in ms."""
    wait_ms = charge_produce(broker, connection, budget, size)
    if not wait_ms or not answers:
        return answers
    told = bytearray(answers)
    tags = 1 if version >= FIRST_FLEXIBLE_VERSION else 0
    _INDEX.pack_into(told, len(told) - _INDEX.size - tags, wait_ms)
    return told


class SharedBudget:
    """The shared room for entries that connections learn beyond their own shares."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = limits.MAX_REPEATED_REQUESTS_OF_ALL

    def take(self) -> bool:
        """Take the room for one entry. Returns whether there was any."""
        if self.left <= 0:
            return False
        self.left -= 1
        return True


class _Target:
    """A partition to which a connection writes."""

    __slots__ = ("key", "partition", "patience")

    def __init__(self, key: bytes, partition: LeaderPartition) -> None:
        self.key = key  # the topic's name or id, and the partition index, as in a request
        self.partition = partition
        self.patience = PATIENCE


class _Kind:
    """Requests that begin with the same bytes."""

    __slots__ = ("acks", "budget", "known", "numbers", "start", "targets", "timeout_ms", "version")

    def __init__(self, start: bytes, version: int, head: ProduceHead, budget: Budget | None) -> None:
        self.start = start  # the bytes of such a request up to the timeout
        self.version = version
        self.acks, self.timeout_ms = head.acks, head.timeout_ms
        self.budget = budget
        self.targets: list[_Target] = []
        self.known: dict[bytes, _Target] = {}
        self.numbers: dict[bytes, int] = {}  # the positions in `targets` of the partitions that are tried

    def keep(self, targets: Iterable[_Target]) -> None:
        """Keep these targets and no others."""
        self.targets = list(targets)
        self.known = {target.key: target for target in self.targets}
        self.numbers = {target.key: number for number, target in enumerate(self.targets) if target.patience}

    def add(self, target: _Target) -> None:
        self.numbers[target.key] = len(self.targets)
        self.known[target.key] = target
        self.targets.append(target)

    def gives_up(self, target: _Target) -> bool:
        """Count a failure of `target`, whose batches could not be part of a run. Returns whether it is not tried any more."""
        target.patience -= 1
        if not target.patience:
            self.numbers.pop(target.key, None)
        return not target.patience


class _Group:
    """The batches for one partition from requests that arrived together."""

    __slots__ = ("error", "first_offset", "run", "target")

    def __init__(self, target: _Target, run: Run) -> None:
        self.target = target
        self.run = run
        self.first_offset = -1
        self.error: StorageError | None = None

    @property
    def last_offset(self) -> int:
        return self.first_offset + self.run.records - 1

    def cut(self, stop: int) -> None:
        """Remove the batches of request number `stop` and of later ones."""
        rows = [row for row in ROW.iter_unpack(self.run.rows) if row[0] < stop]
        kept = b"".join(ROW.pack(*row) for row in rows)
        records, size = sum(row[3] for row in rows), sum(row[2] - row[1] for row in rows)
        self.run = Run(kept, len(rows), records, size, 0, self.run.has_producer)


class MultiPartitionProduce:
    """The partitions to which one connection has written so far."""

    __slots__ = ("_closed_count", "_kinds", "_room", "count")

    def __init__(self, room: SharedBudget) -> None:
        self._room = room
        self._kinds: list[_Kind] = []
        self._closed_count = 0  # `closed_count` of the broker when closed partitions were last forgotten
        self.count = 0  # partitions that are tried; the fast path needs at least two

    def forget(self) -> None:
        for kind in self._kinds:
            self._keep(kind, ())
        self._kinds.clear()
        self.count = 0

    def learn(
        self, broker: MultiPartitionBroker, connection: Connection, frame: memoryview, version: int, head: ProduceHead
    ) -> None:
        """Remember the partitions of a request whose batches were all appended."""
        if not may_spread(head):
            return
        kind = self._kind_of(connection, frame, version, head)
        if kind is None:
            return
        for key, batches in head.topics:
            for index, records in batches:
                name = key + _INDEX.pack(index)
                before = kind.known.get(name)
                if (before is None or before.partition.closed) and records is not None and not is_transactional(records):
                    self._add(broker, connection, frame, kind, name, find_partition(broker, version, key, index))

    def _kind_of(self, connection: Connection, frame: memoryview, version: int, head: ProduceHead) -> _Kind | None:
        """The kind of requests that begin like `frame`; it is remembered from now on if there is room."""
        for kind in self._kinds:
            size = len(kind.start)
            if kind.start[:4] == frame[:4] and kind.start[8:] == frame[8:size]:
                return kind
        end = _end_of_start(frame, version)
        if end is None or end > limits.MAX_REPEATED_BYTES or len(self._kinds) >= limits.MAX_REPEATED_LAYOUTS:
            return None
        made = _Kind(bytes(frame[:end]), version, head, budget_of(connection))
        self._kinds.append(made)
        return made

    def _add(
        self,
        broker: MultiPartitionBroker,
        connection: Connection,
        frame: memoryview,
        kind: _Kind,
        name: bytes,
        found: LeaderPartition | None,
    ) -> None:
        authorizer = broker.authorizer
        if authorizer is not None and found is not None:
            access = authorizer.of_hot_request(connection, ApiKey.PRODUCE, authorizer.client_id(frame))
            if access.sampled(Operation.WRITE, ResourceType.TOPIC, found.topic) is not None:
                return
        if name in kind.known:  # its earlier partition object is closed, because the topic was made again or the leader changed
            self._keep(kind, [target for target in kind.targets if target.key != name])
        if found is None or not self._has_room(broker.partitions.closed_count):
            return
        kind.add(_Target(name, found))
        self.count += 1

    def _all(self) -> int:
        return sum(len(kind.targets) for kind in self._kinds)

    def _has_room(self, closed_count: int) -> bool:
        """Whether there is room for one more partition, after closed ones were forgotten; takes the room."""
        count = self._all()
        if count < limits.MAX_REPEATED_REQUESTS:
            return True
        if closed_count != self._closed_count:
            self._closed_count = closed_count
            for kind in self._kinds:
                self._keep(kind, [target for target in kind.targets if not target.partition.closed])
            count = self._all()
        return count < limits.MAX_REPEATED_REQUESTS or (count < limits.MAX_REPEATED_REQUESTS_OF_ONE and self._room.take())

    def _keep(self, kind: _Kind, targets: Iterable[_Target]) -> None:
        before = self._all()
        kind.keep(targets)
        self._room.left += beyond_share(before) - beyond_share(self._all())
        self.count = sum(len(each.numbers) for each in self._kinds)

    def take(self, broker: MultiPartitionBroker, connection: Connection, data: memoryview, position: int) -> tuple[int, int]:
        """Append and answer the similar requests from `position` of `data` on. Returns their number and the start of the next request."""
        for kind in self._kinds:
            requests, order, numbers, tables, behind = multi_partition_walker.read_requests(
                data,
                position,
                kind.start,
                kind.version,
                broker.receiver.max_frame_bytes,
                limits.MAX_RUN_BYTES,
                limits.MAX_RUN_REQUESTS,
                kind.numbers,
                len(kind.targets),
            )
            if numbers:
                return self._take(broker, connection, kind, data, position, (requests, order, numbers, tables, behind))
        return 0, position

    def _take(
        self,
        broker: MultiPartitionBroker,
        connection: Connection,
        kind: _Kind,
        data: memoryview,
        position: int,
        found: tuple[bytes, bytes, tuple[int, ...], tuple[bytes, ...], int],
    ) -> tuple[int, int]:
        requests, order, numbers, tables, behind = found
        if kind.budget is not None:
            connection.started_ns = time.perf_counter_ns()
        now_ms, stop, groups = broker.clock.now_ms(), len(requests) // REQUEST.size, []
        count = stop
        for number, rows in zip(numbers, tables, strict=True):
            target = kind.targets[number]
            run = _run_of(target.partition, data, rows, now_ms, acks_all=kind.acks == ACKS_ALL)
            left = len(run.rows)
            if left:
                target.patience = PATIENCE
            elif kind.gives_up(target):
                self.count -= 1
            if left < len(rows):
                stop = min(stop, ROW.unpack_from(rows, left)[0])
            groups.append(_Group(target, run))
        if not stop:
            return 0, position
        if stop < count:
            batches = sum(row[3] for row in REQUEST.iter_unpack(requests[: stop * REQUEST.size]))
            behind = REQUEST.unpack_from(requests, (stop - 1) * REQUEST.size)[2]
            requests, order = requests[: stop * REQUEST.size], order[: batches * NUMBER.size]
            for group in groups:
                group.cut(stop)
        _append_all(broker, connection, kind, data, groups, requests, order, behind - position)
        return stop, behind


def _end_of_start(frame: memoryview, version: int) -> int | None:
    """The end of the timeout in a valid request without a transaction; None if its header has tagged fields."""
    flexible = version >= FIRST_FLEXIBLE_VERSION
    length: int = _LENGTH.unpack_from(frame, BEHIND_CORRELATION_ID)[0]
    at = _HEADER_OF_CLIENT + max(length, 0)
    if not flexible:
        return at + _LENGTH.size + _ACKS_AND_TIMEOUT
    return at + 2 + _ACKS_AND_TIMEOUT if frame[at] == 0 else None


def _run_of(partition: LeaderPartition, data: memoryview, rows: bytes, now_ms: int, *, acks_all: bool) -> Run:
    """The batches in `rows` that can be appended to `partition` together: all, or as many of the first ones as possible."""
    nothing = Run(b"", 0, 0, 0, 0, False)
    bounds = None if partition.closed else partition.log.appender.bounds_of_run(now_ms, 0, 0)
    if bounds is None:
        return nothing
    run = new_tuple(Run, multi_partition_walker.check_batches(data, rows, bounds))
    try:
        return run if run.records and partition.admits_run(run, data, acks_all=acks_all) else nothing
    except KafkaError:
        return nothing  # the general way meets the same error and answers it


def _append_all(
    broker: MultiPartitionBroker,
    connection: Connection,
    kind: _Kind,
    data: memoryview,
    groups: list[_Group],
    requests: bytes,
    order: bytes,
    size: int,
) -> None:
    """Append the batches of `groups`, and answer the requests, which have `size` bytes together."""
    told = []
    for group in groups:
        run, log = group.run, group.target.partition.log
        if run.requests:
            try:
                group.first_offset = group.target.partition.append_run(run, data)
                broker.metrics.bytes_in += run.size
            except StorageError as error:
                group.error = error
        told.append((run.rows, group.first_offset, log.log_start_offset))
    answers: bytes | bytearray = b""
    if kind.acks != ACKS_NONE:
        answers = multi_partition_walker.answer_spread(data, requests, order, tuple(told), len(kind.start), kind.version)
    if kind.budget is not None:
        answers = paid(broker, connection, kind.budget, size, answers, kind.version)
    failures = {group.target.key: group.error for group in groups if group.error is not None}
    if failures:
        for failure in failures.values():
            broker.faults.report(failure)
        if kind.acks == ACKS_NONE:
            raise ProtocolError(f"produce requests with acks=0 failed with {ErrorCode.KAFKA_STORAGE_ERROR.name}")
        refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        answers = _with_errors(broker, connection, kind.version, answers, dict.fromkeys(failures, refusal))
    _answer(broker, connection, kind, [group for group in groups if group.error is None], answers)


def _answer(
    broker: MultiPartitionBroker, connection: Connection, kind: _Kind, groups: list[_Group], answers: bytes | bytearray
) -> None:
    """Answer now, or when the batches are as safe as the client wants."""
    if kind.acks == ACKS_NONE:
        return
    waiting = []
    for group in groups:
        partition, last_offset = group.target.partition, group.last_offset
        if last_offset >= partition.high_watermark and group.run.requests and must_wait(partition, last_offset, kind.acks):
            waiting.append(group)
    if waiting:
        _Waiting(broker, connection, kind, waiting, answers)
    else:
        connection.send([answers])


class _Waiting:
    """Requests that wait until all their batches are committed; their answers are ready."""

    __slots__ = ("_answers", "_broker", "_connection", "_errors", "_groups", "_place", "_timer", "_version")

    def __init__(
        self, broker: MultiPartitionBroker, connection: Connection, kind: _Kind, groups: list[_Group], answers: bytes | bytearray
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._version = kind.version
        self._answers = answers
        self._errors: dict[bytes, KafkaError] = {}
        self._groups = {group.target.key for group in groups}
        self._place = connection.expect_answer(Effect.APPENDS)
        self._timer = broker.loop.call_later(max(kind.timeout_ms, 0) / 1000, self._time_out)
        for group in groups:
            settle = partial(self._settle, group.target.key)
            group.target.partition.wait_acknowledged(group.last_offset, settle, acks_all=kind.acks == ACKS_ALL)

    def _settle(self, key: bytes, error: KafkaError | None) -> None:
        if key not in self._groups:
            return  # answered already
        if error is not None:
            self._errors[key] = error
        self._groups.discard(key)
        if not self._groups:
            self._answer()

    def _time_out(self) -> None:
        """Answer. Only partitions that still wait get REQUEST_TIMED_OUT."""
        self._errors.update(dict.fromkeys(self._groups, KafkaError(ErrorCode.REQUEST_TIMED_OUT)))
        self._groups.clear()
        self._answer()

    def _answer(self) -> None:
        self._timer.cancel()
        answers = self._answers
        if self._errors:
            answers = _with_errors(self._broker, self._connection, self._version, answers, self._errors)
        self._connection.complete(self._place, [answers], among_many=True)


def _with_errors(
    broker: MultiPartitionBroker,
    connection: Connection,
    version: int,
    answers: bytes | bytearray,
    errors: dict[bytes, KafkaError],
) -> bytes:
    """The same answers, with `errors` for these partitions."""
    made, view, position = [], memoryview(answers), 0
    head = BEHIND_CORRELATION_ID + (1 if version >= FIRST_FLEXIBLE_VERSION else 0)  # size, correlation id, tagged fields
    while position < len(view):
        size, correlation_id = _INDEX.unpack_from(view, position)[0], _INDEX.unpack_from(view, position + 4)[0]
        answer = decode(ProduceResponse, version, view[position + head : position + 4 + size])
        topics = []
        for topic in answer.responses:
            key = topic.topic_id.bytes if version >= FIRST_TOPIC_ID_VERSION else topic.name.encode()
            told = []
            for each in topic.partition_responses:
                error = errors.get(key + _INDEX.pack(each.index))
                if error is None:
                    told.append(PartitionAnswer(each.index, 0, each.base_offset, -1, each.log_start_offset))
                else:
                    told.append(refused(each.index, error))
            topics.append((key, told))
        made.append(refusals(broker, connection, version, correlation_id, topics))
        position += 4 + size
    return b"".join(made)
