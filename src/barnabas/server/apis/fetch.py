"""Fetch: file regions to the socket, now or when enough bytes are there.

Limits as Kafka has them: the whole answer takes at most `max_bytes`, a partition at most `partition_max_bytes`, but the first batch of
the first partition with data comes whole whatever its size, so that a consumer always gets on. Partitions that are not here are answered
after the others, as Kafka does.

A follower is answered with all of the log. By asking it tells what it has, which counts once for each request, at the first look. One
that a throttle holds back is passed over; the fetch waits as if there were nothing, and looks again when the rate allows more.

A consumer that is over a quota is answered at once, with nothing and the time to wait; a session that would begin so does not.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import groupby
from typing import TYPE_CHECKING, cast
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.codec import decode
from barnabas.protocol.fetch import FIRST_ENDPOINTS_VERSION, FetchedData, Parts, write_fetch_answer
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.replication.partition import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.security.acls import Operation
from barnabas.server import page_cache
from barnabas.server.authorization.hot import why_not_fetch
from barnabas.server.damage import refuse_read, tell_damage
from barnabas.server.fetch_session import FetchContext, FetchedPartition, TopicKey
from barnabas.server.fetch_sessions import replica_id_of
from barnabas.server.leaders import TOLD_WITH, current_leader, endpoints_of
from barnabas.server.outbox import HeldRegion
from barnabas.server.quotas.allowance import Allowance
from barnabas.server.replication.selector import preferred_replica
from barnabas.storage.reading import FileRegion
from barnabas.storage.verify import Verified

if TYPE_CHECKING:
    from barnabas.protocol.produce import NodeEndpoint
    from barnabas.replication.partition import Partition
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Answer, Connection

log = logging.getLogger(__name__)
FIRST_TOPIC_ID_VERSION = 13
FIRST_FOLLOWER_READ_VERSION = 11  # of consumers (KIP-392)
NEWS_LINGER_MS = 5  # for which a follower is not told that the high watermark moved, for most often records come as well
Found = tuple[FetchedPartition, FetchedData]


def handle_fetch(broker: Broker, connection: Connection, frame: memoryview, body: int, version: int, correlation_id: int) -> None:
    """Answer at once, or when `min_bytes` are there or `max_wait_ms` have passed."""
    request = decode(FetchRequest, version, frame, body, exact=False)
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        _refuse(connection, request, version, correlation_id)
        return
    context = broker.fetch_sessions.open(request, version, broker.clock.now_ms())
    fetch = _Fetch(broker, connection, request, context, version, correlation_id)
    if context.error:
        parts = write_fetch_answer(version, correlation_id, [], error_code=context.error)
        connection.send(parts)  # type: ignore[arg-type]  # record data of an answer are file regions
        return
    fetch.start()


def _refuse(connection: Connection, request: FetchRequest, version: int, correlation_id: int) -> None:
    """Answer a request that makes no sense; only names of topics are given back, ids are not."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [(t.topic, [_failed(p.partition, code, ()) for p in t.partitions]) for t in request.topics]
    told = topics if version < FIRST_TOPIC_ID_VERSION else []
    parts = write_fetch_answer(version, correlation_id, told, error_code=code, session_id=request.session_id)
    connection.send(parts)  # type: ignore[arg-type]  # record data of an answer are file regions


def _failed(partition: int, code: ErrorCode, aborted: tuple[()] | None = None) -> FetchedData:
    return FetchedData(partition, code, -1, -1, -1, aborted=aborted)


class _Fetch:
    """One fetch request from its first look at the partitions to its answer."""

    __slots__ = (
        "_answer_place",
        "_allowance",
        "_broker",
        "_connection",
        "_context",
        "_correlation_id",
        "_is_answer_due",
        "_is_held_back",
        "_is_over",
        "_max_bytes",
        "_min_bytes",
        "_missing_bytes",
        "_partitions",
        "_replica_id",
        "_request",
        "_timer",
        "_version",
        "_waking",
    )

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        request: FetchRequest,
        context: FetchContext,
        version: int,
        correlation_id: int,
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._request = request
        self._context = context
        self._version = version
        self._correlation_id = correlation_id
        self._replica_id = replica_id_of(request)
        budget = connection.budget if self._replica_id < 0 else None
        self._allowance = None if budget is None else Allowance(broker, connection, budget)
        self._max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
        if self._allowance is not None:
            self._max_bytes = min(self._max_bytes, self._allowance.max_bytes)
        self._is_answer_due = False
        self._is_held_back = False  # a throttle kept something from a follower at the last look
        self._is_over = False
        self._answer_place: Answer | None = None
        self._partitions: list[Partition] = []
        self._waking = False

    def start(self) -> None:
        request = self._request
        if self._context.session is not None:
            self._context.session.supersede()
        if self._replica_id >= 0 and self._may_follow():
            self._broker.isr.heard_of(self._replica_id)
        found, size, must_answer = self._look(first=True)
        min_bytes = min(request.min_bytes, self._max_bytes)  # more can never come
        if must_answer or size >= min_bytes or request.max_wait_ms <= 0 or self._context.covers_nothing:
            self._finish(found)
            return
        self._answer_place = self._connection.expect_answer()
        self._min_bytes = min_bytes
        if self._allowance is not None:
            self._allowance.park()
        self._missing_bytes = self._missing(size)
        if self._context.session is not None:
            self._context.session.waiters.add(self)  # whose partitions tell it what happens to them, also those not looked at now
        else:
            for partition in self._partitions:
                partition.add_fetch_waiter(self, as_follower=self._replica_id >= 0)
        self._timer = self._broker.loop.call_later(self._longest_wait_ms / 1000, self._wake)
        self._connection.on_close.append(self._stop_waiting)

    def _may_follow(self) -> bool:
        """Whether who calls itself a broker may act as one."""
        authorizer = self._broker.authorizer
        return authorizer is None or authorizer.of_connection(self._connection).allows_cluster(Operation.CLUSTER_ACTION)

    @property
    def _longest_wait_ms(self) -> float:
        longest = self._request.max_wait_ms
        return min(longest, self._broker.throttles.sending_wait_ms()) if self._is_held_back else longest

    # --- FetchWaiter

    def records_added(self, size: int) -> None:
        self._missing_bytes -= size
        if self._missing_bytes <= 0:
            self._wake_soon()

    def high_watermark_moved(self) -> None:
        if not self._is_answer_due:
            self._is_answer_due = True
            self._timer.cancel()
            self._timer = self._broker.loop.call_later(NEWS_LINGER_MS / 1000, self._wake)

    def log_start_moved(self) -> None:
        """The next answer will say so; followers are told soon, for DeleteRecords waits for them."""
        if self._replica_id >= 0:
            self.high_watermark_moved()

    def partition_closed(self) -> None:
        self._wake_soon()

    def superseded(self) -> None:
        """The fetcher has asked again: nothing is told here, everything there."""
        if self._end_wait():
            self._finish([])

    # --- waiting

    def _wake_soon(self) -> None:
        """Answer after the events of this turn of the loop, so that one answer carries all their records."""
        if not self._waking:
            self._waking = True
            may_be_nothing = self._is_held_back or self._request.isolation_level == READ_COMMITTED
            self._broker.loop.call_soon(self._wake_if_given if may_be_nothing else self._wake)

    def _wake_if_given(self) -> None:
        """Answer, unless what has come belongs to transactions that are open, or to replicas that are held back."""
        if self._is_over:
            return
        self._waking = False
        found, size, must_answer = self._look()
        if size >= self._min_bytes or must_answer:
            if self._end_wait():
                self._finish(found)
            return
        self._missing_bytes = self._missing(size)

    def _missing(self, size: int) -> int:
        """How many bytes are to come before it is worth to look again."""
        if self._request.isolation_level == READ_COMMITTED and any(
            partition.last_stable_offset < partition.high_watermark for partition in self._partitions
        ):
            return 1  # a marker, which is small, may show all that is hidden
        return self._min_bytes - size

    def _wake(self) -> None:
        if self._is_over:
            return
        if self._end_wait():
            self._finish(self._look()[0])

    def _end_wait(self) -> bool:
        """Wait no more; whether there still is somebody to answer to."""
        self._is_over = True
        if self._allowance is not None:
            self._allowance.go_on()
        self._stop_waiting()
        if self._stop_waiting in self._connection.on_close:
            self._connection.on_close.remove(self._stop_waiting)
        return not self._connection.closed

    def _stop_waiting(self) -> None:
        self._timer.cancel()
        if self._context.session is not None:
            self._context.session.waiters.discard(self)
        else:
            for partition in self._partitions:
                partition.remove_fetch_waiter(self)

    # --- reading

    def _look(self, *, first: bool = False) -> tuple[list[Found], int, bool]:
        """What every partition has to give, the bytes of it all, and whether something must be told at once."""
        found: list[Found] = []
        absent: list[Found] = []
        left = self._max_bytes
        size = 0
        must_answer = False
        open_files = self._broker.logs.open_files
        self._partitions.clear()
        self._is_held_back = False
        authorizer = self._broker.authorizer
        access = None if authorizer is None else authorizer.of_hot_request(self._connection, 1)
        if access is not None and self._context.session is not None:
            self._context.session.check_rights(access.version)
        for wanted in self._context.partitions:
            if access is not None:
                denied = why_not_fetch(self._broker, access, self._replica_id, wanted)
                if denied is not None:
                    absent.append((wanted, _failed(wanted.index, denied, ())))
                    continue
            partition = self._find(wanted)
            if partition is None:
                absent.append((wanted, _failed(wanted.index, self._absence(wanted), ())))
                continue
            if open_files is not None and open_files.is_crowded:
                left = 0  # the rest has its turn in the next answer
            wanted.follow(partition)
            data = self._look_at(partition, wanted, left, minimum_one=size == 0, first=first)
            if data.records is not None:
                size += data.records.size
                left -= data.records.size
            left = max(left, 0)
            must_answer = must_answer or data.error_code != 0 or data.diverging is not None or data.preferred_read_replica >= 0
            found.append((wanted, data))
        return found + absent, size, must_answer or bool(absent)

    def _look_at(
        self,
        partition: Partition,
        wanted: FetchedPartition,
        left: int,
        *,
        minimum_one: bool,
        first: bool = False,
        is_verified_later: bool = True,
    ) -> FetchedData:
        try:
            if not partition.is_leader and (self._replica_id >= 0 or self._version < FIRST_FOLLOWER_READ_VERSION):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            partition.check_leader_epoch(wanted.leader_epoch)
            diverging = partition.diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset)
            committed = self._request.isolation_level == READ_COMMITTED
            region = None
            if diverging is None:
                size = min(left, wanted.max_bytes)
                if self._replica_id >= 0:
                    if first:
                        self._count_follower(partition, wanted)
                    region = self._read_as_follower(
                        partition, wanted.fetch_offset, max(size, 0), minimum_one=minimum_one, is_verified_later=is_verified_later
                    )
                else:
                    if self._request.rack_id and partition.is_leader:
                        elsewhere = preferred_replica(self._broker, partition, self._request.rack_id, wanted.fetch_offset)
                        if elsewhere is not None:
                            return self._sent_elsewhere(partition, wanted, elsewhere)
                    region = partition.read(
                        wanted.fetch_offset,
                        max(size, 0),
                        minimum_one=minimum_one,
                        isolation_level=self._request.isolation_level,
                        is_verified_later=is_verified_later,
                    )
                if size < 0 and region is not None:
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # what Kafka gives for a negative limit
        except KafkaError as error:
            return _failed(wanted.index, error.code)
        except (StorageError, OSError) as error:
            return self._unreadable(wanted, error)
        self._partitions.append(partition)
        aborted = partition.aborted_in(region, wanted.fetch_offset) if committed else None
        return FetchedData(
            wanted.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log.log_start_offset,
            region,
            aborted,
            diverging=diverging,
        )

    def _read_as_follower(
        self, partition: Partition, offset: int, size: int, *, minimum_one: bool, is_verified_later: bool
    ) -> FileRegion | None:
        room = self._broker.throttles.room_to_send(partition, self._replica_id)
        if room is not None and offset < partition.log.log_end_offset:
            if not room:
                self._is_held_back = True
                return None
            size = min(size, room)
        return partition.read_as_follower(offset, size, minimum_one=minimum_one, is_verified_later=is_verified_later)

    def _sent_elsewhere(self, partition: Partition, wanted: FetchedPartition, replica_id: int) -> FetchedData:
        return FetchedData(
            wanted.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log.log_start_offset,
            None,
            () if self._request.isolation_level == READ_COMMITTED else None,
            preferred_read_replica=replica_id,
        )

    def _count_follower(self, partition: Partition, wanted: FetchedPartition) -> None:
        partition.fetched_by(
            self._replica_id,
            wanted.fetch_offset,
            start_offset=wanted.log_start_offset,
            broker_epoch=self._request.replica_state.replica_epoch,
            now_ms=self._broker.isr.now_ms(),
        )

    def _count_sent(self, wanted: FetchedPartition, size: int) -> None:
        partition = self._find(wanted)
        if partition is not None:
            self._broker.throttles.sent(partition, size)

    def _find(self, wanted: FetchedPartition) -> Partition | None:
        topic = wanted.topic
        partitions = self._broker.partitions
        return partitions.get(topic, wanted.index) if isinstance(topic, str) else partitions.by_id(topic, wanted.index)

    def _absence(self, wanted: FetchedPartition) -> ErrorCode:
        name: str | None
        if isinstance(wanted.topic, UUID):
            name = self._broker.metadata.topic_name(wanted.topic)
            if name is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        else:
            name = wanted.topic
        return self._broker.partitions.absence(name, wanted.index)

    # --- answering

    def _tell_leaders(self, kept: list[tuple[TopicKey, FetchedData]], wrong: list[int]) -> list[NodeEndpoint]:
        """Put into the answers of these slots who leads instead (KIP-951), and say where those are."""
        broker, leaders = self._broker, []
        for slot in wrong:
            topic, data = kept[slot]
            name = topic if isinstance(topic, str) else broker.metadata.topic_name(topic)
            leader = current_leader(broker, name or "", data.partition)
            leaders.append(leader)
            kept[slot] = topic, data._replace(current_leader=leader)
        return endpoints_of(broker, leaders, self._connection.listener)

    def _finish(self, found: list[Found]) -> None:
        """Answer with what was found, or with nothing where a quota does not allow it now."""
        if self._allowance is not None:
            wait_ms = self._allowance.ask(sum(data.records.size for _, data in found if data.records is not None))
            if wait_ms:
                self._put_off(wait_ms)
                return
        self._load(found)

    def _put_off(self, wait_ms: int) -> None:
        context = self._context
        session_id = context.session_id
        if context.session is not None and not context.is_incremental:
            self._broker.fetch_sessions.remove(session_id)  # its first answer has to tell of all partitions
            session_id = 0
        self._send(write_fetch_answer(self._version, self._correlation_id, [], session_id=session_id, throttle_time_ms=wait_ms))

    def _load(self, found: list[Found]) -> None:
        files = self._broker.files
        doubtful = [
            slot
            for slot, (_, data) in enumerate(found)
            if data.records is not None
            and not (isinstance(data.records, HeldRegion) or page_cache.is_servable(files, cast(FileRegion, data.records)))
        ]
        if not doubtful:
            self._answer(found)
            return
        if self._answer_place is None:
            self._answer_place = self._connection.expect_answer()
        regions: dict[int, FileRegion] = {}
        for slot, (wanted, data) in enumerate(found):
            if isinstance(data.records, FileRegion):  # the loop runs before it is sent
                regions[slot] = data.records
                found[slot] = wanted, data._replace(records=HeldRegion(data.records, files))
        pairs = [(regions[slot], cast(HeldRegion, found[slot][1].records)) for slot in doubtful]
        future = self._broker.loop.run_in_executor(self._broker.reading_threads, page_cache.load, files, pairs)
        asked = [(slot, region, region.trust.cuts) for slot, (region, _) in zip(doubtful, pairs, strict=True)]
        future.add_done_callback(lambda done: self._after_load(found, asked, done))

    def _after_load(
        self, found: list[Found], asked: list[tuple[int, FileRegion, int]], done: asyncio.Future[list[Verified | OSError]]
    ) -> None:
        """Args: asked: slots in `found`, their regions, and how often their segments had been cut."""
        if done.cancelled() or done.exception() is not None:
            log.error("reading cold data failed peer=%s error=%r", self._connection.peer, done.cancelled() or done.exception())
            self._connection.close()
            return
        for (slot, region, cuts), verified in zip(asked, done.result(), strict=True):
            if region.trust.cuts == cuts:
                found[slot] = self._verified(found[slot], region, verified)
            else:  # the log was truncated while a thread looked at it
                found[slot] = self._again(found[slot], region)
        if not self._connection.closed:
            self._load(found)

    def _verified(self, found: Found, region: FileRegion, verified: Verified | OSError) -> Found:
        """What a partition gives now that its region was looked at: all of it, what lies before damage, or an error."""
        wanted, data = found
        if isinstance(verified, OSError):
            return wanted, self._unreadable(wanted, verified)
        trust = region.trust
        trust.add(region.position, verified.end)
        trust.forget_behind(verified.end, verified.size, region.position + region.size)
        partition = self._find(wanted)
        if partition is None:  # deleted meanwhile
            return wanted, _failed(wanted.index, self._absence(wanted))
        if verified.damage is None:
            return self._sound(found, region, verified)
        damage = partition.log.bounded(verified.damage)
        if trust.note(damage):
            self._broker.metrics.corrupt_stretches += 1
            tell_damage(partition.topic, partition.index, damage)
        if verified.end > region.position:
            cast(HeldRegion, data.records).size = verified.end - region.position
            return found
        if wanted.fetch_offset >= damage.next_offset:  # a header that lied about its offsets led here
            data = self._look_at(partition, wanted, region.size, minimum_one=True, is_verified_later=False)
            again = cast("FileRegion | None", data.records)
            if again is None or again.position != region.position:
                return wanted, data
        return wanted, _failed(wanted.index, ErrorCode.CORRUPT_MESSAGE)

    def _sound(self, found: Found, region: FileRegion, verified: Verified) -> Found:
        """What a partition gives of a region that was verified: its whole batches."""
        _, data = found
        end = region.position + region.size
        if region.reach and not verified.has_records:  # nothing, or what compaction emptied: not what the reader asks for
            return self._again(found, region, minimum_one=region.reach > end)
        if verified.end != end:
            cast(HeldRegion, data.records).size = verified.end - region.position
        region.trust.note_end(verified.next_offset, verified.end)
        return found

    def _again(self, found: Found, region: FileRegion, *, minimum_one: bool = True) -> Found:
        """What a partition gives by another look, which finds the end of the region itself."""
        wanted, _ = found
        partition = self._find(wanted)
        if partition is None:
            return wanted, _failed(wanted.index, self._absence(wanted))
        return wanted, self._look_at(partition, wanted, region.size, minimum_one=minimum_one, is_verified_later=False)

    def _unreadable(self, wanted: FetchedPartition, error: StorageError | OSError) -> FetchedData:
        partition = self._find(wanted)
        place = str(wanted.topic) if partition is None else str(partition.log.directory)
        return _failed(wanted.index, refuse_read(self._broker, place, wanted.fetch_offset, error))

    def _answer(self, found: list[Found]) -> None:
        session = self._context.session
        kept, sent = [], 0
        for wanted, data in found:
            size = 0 if data.records is None else data.records.size
            changed = wanted.tell(
                error_code=data.error_code,
                high_watermark=data.high_watermark,
                log_start_offset=data.log_start_offset,
                has_records=size > 0,
            )
            self._broker.metrics.bytes_out += size
            sent += size
            if size and self._replica_id >= 0:
                self._count_sent(wanted, size)
            is_sent_away = data.diverging is not None or data.preferred_read_replica >= 0
            if changed or not self._context.is_incremental or is_sent_away:
                kept.append((wanted.topic, data))
            if size and session is not None and self._context.is_incremental:
                session.move_to_end(wanted)
            elif not data.error_code and not is_sent_away:
                wanted.maybe_rest()
        endpoints: list[NodeEndpoint] = []
        if self._version >= FIRST_ENDPOINTS_VERSION:
            wrong = [slot for slot, (_, data) in enumerate(kept) if data.error_code in TOLD_WITH]
            if wrong:
                endpoints = self._tell_leaders(kept, wrong)
        topics = [(topic, [data for _, data in group]) for topic, group in groupby(kept, key=lambda pair: pair[0])]
        throttle_ms = 0 if self._allowance is None else self._allowance.settle(sent)
        self._send(
            write_fetch_answer(
                self._version,
                self._correlation_id,
                topics,
                session_id=self._context.session_id,
                throttle_time_ms=throttle_ms,
                endpoints=endpoints,
            )
        )

    def _send(self, parts: Parts) -> None:
        if self._answer_place is None:
            self._connection.send(parts)  # type: ignore[arg-type]  # record data of an answer are file regions
        else:
            self._connection.complete(self._answer_place, parts)  # type: ignore[arg-type]
