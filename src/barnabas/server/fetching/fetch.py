"""A fetch from its first look at the partitions to its answer, now or when there are enough bytes.

A consumer over a quota gets an answer at once, without records and with the time to wait. This answer does not begin a session.

`Fetch` inherits the look at its partitions (`PartitionLookup`) and does not contain one. A separate object for each waiting fetch would
take 4.2 % more opcodes of Python: 934 instead of 896 for the step "it begins to wait" of `bench.steps`, without a session. The part that
waits for the disk (`DiskLoading`) is a separate object, made only when needed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

from barnabas.protocol.fetch import FIRST_ENDPOINTS_VERSION, FetchedData, Parts, write_fetch_answer
from barnabas.replication.partition import READ_COMMITTED
from barnabas.security.acls import Operation
from barnabas.server.current_leader import TOLD_WITH, current_leader, endpoints_of
from barnabas.server.fetching.disk_loading import DiskLoading, not_at_hand
from barnabas.server.fetching.fetch_session import FetchedPartition, TopicKey
from barnabas.server.fetching.partition_lookup import NO_TOPICS, Found, PartitionLookup, Records
from barnabas.server.quotas.allowance import Allowance
from barnabas.server.request_order import Effect

if TYPE_CHECKING:
    from barnabas.protocol.produce import NodeEndpoint
    from barnabas.replication.partition import OnlinePartition
    from barnabas.server.answer_order import Answer

Known = Callable[[], Parts[Records] | None]
"""The answer of a fetch of a kind that is known, without a look at everything; None where it takes one."""

# a follower hears of a moved high watermark this much later, because records usually come in the meantime
NEWS_LINGER_MS = 5


class Fetch(PartitionLookup):
    """One fetch request from its first look at the partitions to its answer."""

    __slots__ = (
        "_allowance",
        "_answer_place",
        "_is_answer_due",
        "_is_over",
        "_is_sent_away",
        "_known",
        "_min_bytes",
        "_missing_bytes",
        "_timer",
        "_waking",
    )

    def start(self, known: Known | None = None) -> None:
        """Look at the partitions, and answer or wait.

        Args:
            known: the fetch asks this first after a wait.
        """
        request = self._request
        self._begin(known)
        budget = self._connection.budget if self.replica_id < 0 else None
        self._allowance = None if budget is None else Allowance(self._broker.quotas, self._broker.loop, self._connection, budget)
        if self._allowance is not None:
            self._max_bytes = min(self._max_bytes, self._allowance.max_bytes)
        if self._context.session is not None:
            self._context.session.supersede()
        if self.replica_id >= 0 and self.may_follow():
            self._broker.isr.heard_of(self.replica_id)
        found, size, must_answer = self._look(first=True)
        min_bytes = min(request.min_bytes, self._max_bytes)  # an answer cannot have more
        if must_answer or size >= min_bytes or request.max_wait_ms <= 0 or self._context.covers_nothing:
            self._finish(found)
            return
        self._wait(size, min_bytes)

    def wait(self, partitions: list[OnlinePartition], known: Known | None) -> None:
        """The same as `start`, for a fetcher without quotas, if all partitions are without errors and without data.

        Args:
            partitions: without a session all partitions; in a session those of the look.
        """
        self._begin(known)
        self._allowance = None
        self._partitions = partitions
        self._wait(0, min(self._request.min_bytes, self._max_bytes))

    def _begin(self, known: Known | None) -> None:
        self._known = known
        self._is_answer_due = self._is_over = self._is_sent_away = self._waking = False
        self._answer_place: Answer | None = None

    def _wait(self, size: int, min_bytes: int) -> None:
        effect = Effect.READS if self._context.session is None else Effect.FETCHES  # the session's next fetch ends this one
        self._answer_place = self._connection.expect_answer(effect)
        self._min_bytes = min_bytes
        if self._allowance is not None:
            self._allowance.park()
        self._missing_bytes = self._missing(size)
        if self._context.session is not None:
            # the session's partitions tell the fetch of events, also those that this look left out
            self._context.session.waiters.add(self)
        else:
            for partition in self._partitions:
                partition.add_fetch_waiter(self, as_follower=self.replica_id >= 0)
        self._timer = self._broker.loop.call_later(self._longest_wait_ms / 1000, self._wake)
        self._connection.on_close.append(self._stop_waiting)

    def may_follow(self) -> bool:
        """Whether a client that calls itself a broker may act as one."""
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
        """The next answer will have the new log start. Followers get it soon, because DeleteRecords waits for them."""
        if self.replica_id >= 0:
            self.high_watermark_moved()

    def partition_closed(self) -> None:
        """Answer soon, because the fetch cannot wait on the closed partition any more: the fetcher must ask again."""
        self._is_sent_away = True
        self._wake_soon()

    def superseded(self) -> None:
        """End the wait, because the fetcher has asked again: this answer is empty, and the next one has everything."""
        if self._end_wait():
            self._finish([])

    # --- waiting

    def _wake_soon(self) -> None:
        """Answer after the events of this turn of the loop, so that one answer has all their records.

        Followers get their answer one turn later, with the records that arrive until then: each answer costs them and this broker a round
        trip, and on an idle loop the turn takes no time.
        """
        if not self._waking:
            self._waking = True
            may_be_nothing = self._is_held_back or self._request.isolation_level == READ_COMMITTED
            wake, loop = self._wake_if_given if may_be_nothing else self._wake, self._broker.loop
            if self.replica_id >= 0:
                loop.call_soon(loop.call_soon, wake)
            else:
                loop.call_soon(wake)

    def _wake_if_given(self) -> None:
        """Answer, unless the added records belong to open transactions, or to replicas that a throttle holds back."""
        if self._is_over:
            return
        self._waking = False
        if self._is_answered_as_known():
            return
        found, size, must_answer = self._look()
        if size >= self._min_bytes or must_answer or self._is_sent_away:
            if self._end_wait():
                self._finish(found)
            return
        self._missing_bytes = self._missing(size)

    def _missing(self, size: int) -> int:
        """The number of bytes that must arrive before another look is worth it."""
        if self._request.isolation_level == READ_COMMITTED and any(
            partition.last_stable_offset < partition.high_watermark for partition in self._partitions
        ):
            return 1  # one marker, which is small, may make all hidden records readable
        return self._min_bytes - size

    def _wake(self) -> None:
        if self._is_over:
            return
        if self._end_wait() and not self._is_answered_as_known():
            self._finish(self._look()[0])

    def _is_answered_as_known(self) -> bool:
        """Answer from `known`, if it has an answer; it has one in nearly all cases."""
        if self._known is None or self._is_sent_away or self._allowance is not None or self._connection.closed:
            return False
        parts = self._known()
        if parts is None:
            return False
        if not self._is_over:
            self._end_wait()
        self._send(parts)
        return True

    def _end_wait(self) -> bool:
        """Stop waiting. Returns whether the connection is still open."""
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

    def _count_sent(self, wanted: FetchedPartition, size: int) -> None:
        partition = self.find(wanted)
        if partition is not None and not partition.is_offline:
            self._broker.throttles.sent(partition, size)

    # --- answering

    def _tell_leaders(self, kept: list[tuple[TopicKey, FetchedData[Records]]], wrong: list[int]) -> list[NodeEndpoint]:
        """Put the current leaders into the answers of these slots (KIP-951), and return their addresses."""
        broker, leaders = self._broker, []
        for slot in wrong:
            topic, data = kept[slot]
            name = topic if isinstance(topic, str) else broker.metadata.topic_name(topic)
            leader = current_leader(broker, name or "", data.partition)
            leaders.append(leader)
            kept[slot] = topic, data._replace(current_leader=leader)
        return endpoints_of(broker, leaders, self._connection.listener)

    def _finish(self, found: list[Found]) -> None:
        """Answer with the found data, or without data if a quota does not allow it now."""
        if self._allowance is not None:
            wait_ms = self._allowance.ask(sum(data.records.size for _, data in found if data.records is not None))
            if wait_ms:
                self._put_off(wait_ms)
                return
        self._load(found)

    def _load(self, found: list[Found]) -> None:
        """Answer when all found data is in memory."""
        doubtful = not_at_hand(self._broker.files, found)
        if not doubtful:
            self._answer(found)
        else:
            self._be_late()
            DiskLoading(self._broker, self._connection, self, self._answer, self._load).start(found, doubtful)

    def _put_off(self, wait_ms: int) -> None:
        context = self._context
        session_id = context.session_id
        if context.session is not None and not context.is_incremental:
            self._broker.fetch_sessions.remove(session_id)  # the first answer of a session must name all partitions
            session_id = 0
        self._send(
            write_fetch_answer(self._version, self._correlation_id, NO_TOPICS, session_id=session_id, throttle_time_ms=wait_ms)
        )

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
            if size and self.replica_id >= 0:
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

    def _be_late(self) -> None:
        """Reserve a place for an answer in a later turn of the loop."""
        if self._answer_place is None:
            self._answer_place = self._connection.expect_answer(Effect.FETCHES)

    def _send(self, parts: Parts[Records]) -> None:
        if self._answer_place is None:
            self._connection.send(parts)
        else:
            self._connection.complete(self._answer_place, parts)
