"""One incremental fetch session (KIP-227): the partitions of a fetcher, the last values in its answers, and the partitions that may have
news.

Rules
  1. A fetch does not look at partitions without news: a poll of 10,000 idle partitions costs as much as a poll of none. So a partition is
     `pending` from the first request that names it until an answer has told everything, and again after its next event.
  2. A partition tells its waiters three events: added records, a moved log start offset, its end. Each followed partition of a session is
     a waiter. If another value may change an answer (a leader epoch, a last stable offset), the code that sets it must tell the waiters.
  3. A partition with an error, or one that is not here, stays pending: each answer looks it up and names it.
  4. Pending partitions are not followed while no fetch of the session waits, because the fetcher may be gone.
  5. A fetch looks at partitions in the order of `place`. A partition that gave records moves to the end, so that a busy partition does not
     starve the others.
  6. When rights change, every partition becomes pending, and the next fetch checks its rights again.
  7. A follower learns of all appended records, a consumer only of committed ones.
  8. When a request has other `FetchParams` than the previous one, every partition becomes pending: with another isolation level, for
     example, the fetcher may read more.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from msgspec import Struct, field

from barnabas.error_codes import ErrorCode
from barnabas.protocol.fetch_request import MAX_EPOCH, Named
from barnabas.replication.partition import READ_COMMITTED

if TYPE_CHECKING:
    from barnabas.replication.online_replica import FetchWaiter
    from barnabas.replication.partition import OnlinePartition, Partition

    class WaitingFetch(FetchWaiter, Protocol):
        """A waiting fetch of a session."""

        def superseded(self) -> None:
            """The fetcher has asked again, and does not wait for this answer."""
            ...


TopicKey = str | UUID  # the name below version 13, the id from version 13 on
PartitionKey = tuple[TopicKey, int]
_by_place = attrgetter("place")


class FetchParams(NamedTuple):
    """The fields of a request that decide which news there is, for all its partitions."""

    version: int
    replica_id: int
    replica_epoch: int
    isolation_level: int
    rack_id: str


class FetchedPartition(Struct, eq=False):
    """One partition of a fetch, and the last values that its fetcher got. In a session it is a `FetchWaiter` of its partition."""

    topic: TopicKey
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int = -1  # of the fetcher's own log, if it is a follower
    told_high_watermark: int = -1
    told_log_start_offset: int = -1
    named: int = 0  # how often a request has named the partition again
    place: int = 0
    session: FetchSession | None = None
    partition: OnlinePartition | None = None  # the partition that this waits for

    def update(self, named: Named) -> None:
        """Take the fields of a request that names the partition again, and forget what a follower was told.

        The follower may not have the last values: its log has changed in the meantime, or it asked again before the answer came.
        """
        self.named += 1
        if self.session is not None and self.session.is_of_follower:
            self.told_high_watermark = self.told_log_start_offset = -1
        _, self.leader_epoch, self.fetch_offset, self.last_fetched_epoch, self.log_start_offset, self.max_bytes = named

    def tell(self, *, error_code: int, high_watermark: int, log_start_offset: int, has_records: bool) -> bool:
        """Note the values of an answer. Returns whether an incremental answer must contain them."""
        if error_code:
            self.told_high_watermark = -1  # so that the next good answer names the partition, even if nothing changed
            return True
        changed = has_records or high_watermark != self.told_high_watermark or log_start_offset != self.told_log_start_offset
        self.told_high_watermark = high_watermark
        self.told_log_start_offset = log_start_offset
        return changed

    def follow(self, partition: Partition) -> None:
        """Wait for the events of `partition`, if this belongs to an open session."""
        if self.session is not None and not self.session.closed and self.partition is not partition:
            self.unfollow()
            if not partition.is_offline:
                partition.add_fetch_waiter(self, as_follower=self.session.is_of_follower)
                self.partition = partition

    def unfollow(self) -> None:
        if self.partition is not None:
            self.partition.remove_fetch_waiter(self)
            self.partition = None

    def maybe_rest(self) -> None:
        """Remove the partition from the pending ones, if its fetcher has all data and all values."""
        partition, session = self.partition, self.session
        if session is None or partition is None:
            return
        if session.is_of_follower:
            readable = partition.log.log_end_offset
        else:
            is_committed = session.params.isolation_level == READ_COMMITTED
            readable = partition.last_stable_offset if is_committed else partition.high_watermark
        if (
            self.fetch_offset == readable
            and self.told_high_watermark == partition.high_watermark
            and self.told_log_start_offset == partition.log.log_start_offset
        ):
            session.pending.pop(self, None)

    # --- FetchWaiter

    def records_added(self, size: int) -> None:
        session = self.session
        if session is not None:
            session.pending[self] = None
            for waiter in session.waiters:
                waiter.records_added(size)
            if not session.waiters:
                self.unfollow()

    def high_watermark_moved(self) -> None:
        session = self.session
        if session is not None:
            session.pending[self] = None
            for waiter in session.waiters:
                waiter.high_watermark_moved()

    def log_start_moved(self) -> None:
        session = self.session
        if session is not None:
            session.pending[self] = None
            for waiter in session.waiters:
                waiter.log_start_moved()

    def partition_closed(self) -> None:
        self.partition = None
        if self.session is not None:
            self.session.pending[self] = None
            self.session.wake()


class FetchSession(Struct, eq=False):
    session_id: int
    uses_topic_ids: bool
    created_ms: int
    used_ms: int
    params: FetchParams  # of the last request
    is_of_follower: bool = False
    fetcher: str | None = None  # the client id of a follower that sends one
    epoch: int = 1  # the next request must have this one
    partitions: dict[PartitionKey, FetchedPartition] = field(default_factory=dict)
    pending: dict[FetchedPartition, None] = field(default_factory=dict)  # partitions that may have news
    waiters: set[WaitingFetch] = field(default_factory=set)  # waiting fetches of this session
    closed: bool = False
    _rights_version: int = 0  # of the authorizer, when all partitions were last checked
    _places: int = 0

    def add(self, partition: FetchedPartition) -> None:
        partition.session = self
        self.move_to_end(partition)
        self.partitions[partition.topic, partition.index] = partition
        self.pending[partition] = None

    def forget(self, key: PartitionKey) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.pending.pop(partition, None)
            partition.unfollow()
            partition.session = None

    def update(self, partition: FetchedPartition, named: Named) -> None:
        partition.update(named)
        self.pending[partition] = None

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def move_to_end(self, partition: FetchedPartition) -> None:
        self._places += 1
        partition.place = self._places

    def in_order(self) -> list[FetchedPartition]:
        """The partitions to look at."""
        return sorted(self.pending, key=_by_place) if len(self.pending) > 1 else list(self.pending)

    def check_rights(self, version: int) -> None:
        """Make every partition pending, if rights have changed since the last check."""
        if self._rights_version != version:
            self._rights_version = version
            self.pending.update(dict.fromkeys(self.partitions.values()))

    def take_params(self, params: FetchParams) -> None:
        """Make every partition pending, if the next request has other parameters."""
        if params != self.params:
            self.is_of_follower = params.replica_id >= 0
            for partition in self.partitions.values():
                partition.unfollow()  # consumers and followers hear of different events
            self.pending.update(dict.fromkeys(self.partitions.values()))
        self.params = params

    def supersede(self) -> None:
        """Answer the earlier request of the session without records, because its fetcher has asked again."""
        for waiter in list(self.waiters):
            waiter.superseded()

    def wake(self) -> None:
        for waiter in list(self.waiters):
            waiter.partition_closed()

    def close(self) -> None:
        """Stop following, and let waiting fetches end, because no request of this session will come."""
        self.closed = True
        for partition in self.partitions.values():
            partition.unfollow()
        self.wake()


class FetchContext(Struct):
    """One fetch: its partitions and the way to make its answer."""

    named: list[FetchedPartition]  # the partitions of a fetch without session
    session: FetchSession | None = None
    is_incremental: bool = False
    error: ErrorCode = ErrorCode.NONE

    @property
    def partitions(self) -> list[FetchedPartition]:
        """The partitions to look at, in order. In a session their number falls after each answer and rises after each event."""
        return self.named if self.session is None else self.session.in_order()

    @property
    def covers_nothing(self) -> bool:
        return not self.named if self.session is None else not self.session.partitions

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.session_id
