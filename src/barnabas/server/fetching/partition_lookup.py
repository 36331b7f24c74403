"""The look of a fetch at its partitions: the data of each, or the reason why it has none.

The limits are Kafka's. The whole answer takes at most `max_bytes`, a partition at most `partition_max_bytes`. The first batch of the first
partition with data comes whole, whatever its size, so that a consumer always continues. In the answer, partitions that are not here come
after the others, as in Kafka.

A follower gets all of the log. Its request tells its log end offset. This counts once for each request, at the first look that finds the
partition: the follower may ask before the leader knows that it leads, and in a session it does not repeat unchanged values. If a throttle
holds a follower back, the look skips its partition. Then the fetch waits as if there were no data, and looks again when the rate allows
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.fetch import Copied, FetchedData
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.replication.partition import READ_COMMITTED
from barnabas.server.current_leader import LeaderServices
from barnabas.server.fetching.fetch_session import FetchContext, FetchedPartition, TopicKey
from barnabas.server.fetching.rights import why_not_fetch
from barnabas.server.fetching.session_cache import replica_id_of
from barnabas.server.logs.damaged_reads import ReadFaults, refuse_read
from barnabas.server.outbox import Region
from barnabas.server.replication.selector import SelectorBroker, preferred_replica
from barnabas.storage.file_region import FileRegion
from barnabas.tuples import new_tuple

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from barnabas.clock import Clock
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.replication.partition import OnlinePartition, Partition
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.connection import Connection
    from barnabas.server.fetching.session_cache import FetchSessionCache
    from barnabas.server.metrics import Metrics
    from barnabas.server.pinned_regions import PinnedFiles
    from barnabas.server.quotas.client_quotas import ClientQuotas
    from barnabas.server.replication.isr_changes import IsrChanges
    from barnabas.server.replication.throttles import Throttles
    from barnabas.storage.files import Files
    from barnabas.storage.manager import LogManager

FIRST_VERSION_WITH_STORAGE_ERROR = 6
FIRST_FOLLOWER_READ_VERSION = 11  # for consumers (KIP-392)
Records = Region | Copied
Found = tuple[FetchedPartition, FetchedData[Records]]
# with any other error, the partition is on another broker
NOWHERE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
NO_PARTITIONS: frozenset[FetchedPartition] = frozenset()
NO_TOPICS: Sequence[tuple[TopicKey, Sequence[FetchedData[Records]]]] = ()


class FetchBroker(LeaderServices, ReadFaults, SelectorBroker, Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    clock: Clock
    fetch_sessions: FetchSessionCache
    files: Files
    io_threads: Executor
    isr: IsrChanges
    logs: LogManager
    loop: asyncio.AbstractEventLoop
    metrics: Metrics
    partitions: HostedPartitions
    pinned_files: PinnedFiles
    quotas: ClientQuotas
    reading_threads: Executor
    throttles: Throttles


def failed(partition: int, code: ErrorCode, aborted: tuple[()] | None = None) -> FetchedData[Records]:
    return FetchedData(partition, code, -1, -1, -1, aborted=aborted)


def count_follower(
    broker: FetchBroker, request: FetchRequest, replica_id: int, partition: LeaderPartition, wanted: FetchedPartition
) -> None:
    """Note the state of a follower's log from its request."""
    partition.fetched_by(
        replica_id,
        wanted.fetch_offset,
        start_offset=wanted.log_start_offset,
        broker_epoch=request.replica_state.replica_epoch,
        now_ms=broker.isr.now_ms(),
    )


class PartitionLookup:
    """The partitions and limits of a fetch request."""

    __slots__ = (
        "_broker",
        "_client_id",
        "_connection",
        "_context",
        "_correlation_id",
        "_is_held_back",
        "_max_bytes",
        "_partitions",
        "_request",
        "_uncounted",
        "_version",
        "_waited_without",
        "replica_id",
    )

    def __init__(
        self,
        broker: FetchBroker,
        connection: Connection,
        request: FetchRequest,
        context: FetchContext,
        version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._request = request
        self._context = context
        self._version = version
        self._correlation_id = correlation_id
        self._client_id = client_id  # for the audit log; None without access control
        self.replica_id = replica_id_of(request)
        self._max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
        self._is_held_back = False  # at the last look, a throttle held records back from a follower
        # number of partitions that were missing or not allowed when the fetch began to wait for the others
        self._waited_without = 0
        self._partitions: list[OnlinePartition] = []
        # of a follower: partitions that were missing at the first look
        self._uncounted: frozenset[FetchedPartition] = NO_PARTITIONS

    def _look(self, *, first: bool = False) -> tuple[list[Found], int, bool]:
        """The data of every partition, its size in bytes, and whether the fetch must answer at once."""
        found: list[Found] = []
        absent: list[Found] = []
        left = self._max_bytes
        size = 0
        must_answer = False
        open_files = self._broker.logs.open_files
        self._partitions.clear()
        self._is_held_back = False
        authorizer = self._broker.authorizer
        access = None if authorizer is None else authorizer.of_hot_request(self._connection, ApiKey.FETCH, self._client_id)
        if access is not None and self._context.session is not None:
            self._context.session.check_rights(access.version)
        for wanted in self._context.partitions:
            if access is not None:
                denied = why_not_fetch(self._broker.metadata, access, self.replica_id, wanted)
                if denied is not None:
                    absent.append((wanted, failed(wanted.index, denied, ())))
                    continue
            partition = self.find(wanted)
            if partition is None:
                reason = self.absence(wanted)
                must_answer = must_answer or reason not in NOWHERE
                absent.append((wanted, self.failure(wanted, reason, ())))
                continue
            if open_files is not None and open_files.is_crowded:
                left = 0  # too many files are open: the next answer has the rest
            wanted.follow(partition)
            data = self.look_at(partition, wanted, left, minimum_one=size == 0, first=first)
            if data.records is not None:
                size += data.records.size
                left -= data.records.size
            left = max(left, 0)
            must_answer = must_answer or data.error_code != 0 or data.diverging is not None or data.preferred_read_replica >= 0
            found.append((wanted, data))
        if first and self._asks_for_more_than(len(absent)):
            self._waited_without = len(absent)
        if first and absent and self.replica_id >= 0:
            self._uncounted = frozenset(wanted for wanted, _ in absent)
        must_answer = must_answer or len(absent) > self._waited_without
        if size and not must_answer and size < self._request.min_bytes:
            must_answer = any(self._goes_on_behind(wanted, data) for wanted, data in found)
        return found + absent, size, must_answer

    def _goes_on_behind(self, wanted: FetchedPartition, data: FetchedData[Records]) -> bool:
        """Whether the found data ends with its segment, and the next fetch finds more; an answer never crosses the end of a segment."""
        partition = self.find(wanted)
        if data.records is None or partition is None or partition.is_offline or self._is_held_back:
            return False
        if self.replica_id >= 0:
            end = partition.log.log_end_offset
        else:
            end = data.last_stable_offset if self._request.isolation_level == READ_COMMITTED else data.high_watermark
        return partition.log.reader.has_segment_behind(wanted.fetch_offset, end)

    def _asks_for_more_than(self, count: int) -> bool:
        """Whether the fetch has other partitions too. Then it waits for them, as in Kafka: otherwise a consumer of a deleted topic would
        ask for the others without a pause.
        """
        session = self._context.session
        return len(self._context.partitions if session is None else session.partitions) > count

    def look_at(
        self,
        partition: Partition,
        wanted: FetchedPartition,
        left: int,
        *,
        minimum_one: bool,
        first: bool = False,
        is_verified_later: bool = True,
    ) -> FetchedData[Records]:
        try:
            if not partition.is_leader and (
                partition.is_offline or self.replica_id >= 0 or self._version < FIRST_FOLLOWER_READ_VERSION
            ):
                raise KafkaError(partition.refusal)
            leader = partition if partition.is_leader else None
            partition.check_leader_epoch(wanted.leader_epoch)
            diverging = partition.diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset)
            committed = self._request.isolation_level == READ_COMMITTED
            region = None
            if diverging is None:
                size = min(left, wanted.max_bytes)
                if leader is not None and self.replica_id >= 0:
                    if first or self._is_to_be_counted(wanted):
                        self._uncounted -= {wanted}
                        count_follower(self._broker, self._request, self.replica_id, leader, wanted)
                    region = self._read_as_follower(
                        leader, wanted.fetch_offset, max(size, 0), minimum_one=minimum_one, is_verified_later=is_verified_later
                    )
                else:
                    if self._request.rack_id and leader is not None:
                        elsewhere = preferred_replica(self._broker, leader, self._request.rack_id, wanted.fetch_offset)
                        if elsewhere is not None:
                            return self._sent_elsewhere(leader, wanted, elsewhere)
                    region = partition.read(
                        wanted.fetch_offset,
                        max(size, 0),
                        minimum_one=minimum_one,
                        isolation_level=self._request.isolation_level,
                        is_verified_later=is_verified_later,
                    )
                if size < 0 and region is not None:
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka's error for a negative limit
        except KafkaError as error:
            return self.failure(wanted, error.code)
        except (StorageError, OSError) as error:
            return self.unreadable(wanted, error)
        self._partitions.append(partition)
        aborted = partition.aborted_in(region, wanted.fetch_offset) if committed else None
        marks = partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset
        return new_tuple(FetchedData, (wanted.index, 0, *marks, region, aborted, -1, diverging, None))

    def _is_to_be_counted(self, wanted: FetchedPartition) -> bool:
        """Whether to count a partition of a waiting follower that was not here at the first look. Not if its session is dropped, because
        the follower may have asked again elsewhere, for more.
        """
        return wanted in self._uncounted and (wanted.session is None or not wanted.session.closed)

    def _read_as_follower(
        self, partition: LeaderPartition, offset: int, size: int, *, minimum_one: bool, is_verified_later: bool
    ) -> FileRegion | None:
        room = self._broker.throttles.room_to_send(partition, self.replica_id)
        if room is not None and offset < partition.log.log_end_offset:
            if not room:
                self._is_held_back = True
                return None
            size = min(size, room)
        return partition.read_as_follower(offset, size, minimum_one=minimum_one, is_verified_later=is_verified_later)

    def _sent_elsewhere(self, partition: LeaderPartition, wanted: FetchedPartition, replica_id: int) -> FetchedData[Records]:
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

    def find(self, wanted: FetchedPartition) -> Partition | None:
        followed = wanted.partition
        if followed is not None and not followed.closed:
            return followed
        topic = wanted.topic
        partitions = self._broker.partitions
        return partitions.get(topic, wanted.index) if isinstance(topic, str) else partitions.by_id(topic, wanted.index)

    def absence(self, wanted: FetchedPartition) -> ErrorCode:
        name: str | None
        if isinstance(wanted.topic, UUID):
            name = self._broker.metadata.topic_name(wanted.topic)
            if name is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        else:
            name = wanted.topic
        return self._broker.partitions.absence(name, wanted.index)

    def unreadable(self, wanted: FetchedPartition, error: StorageError | OSError) -> FetchedData[Records]:
        partition = self.find(wanted)
        place = str(wanted.topic) if partition is None or partition.is_offline else str(partition.log.directory)
        return self.failure(wanted, refuse_read(self._broker, place, wanted.fetch_offset, error))

    def failure(self, wanted: FetchedPartition, code: ErrorCode, aborted: tuple[()] | None = None) -> FetchedData[Records]:
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self._version < FIRST_VERSION_WITH_STORAGE_ERROR:
            # older clients do not know the other code; after this one they ask for metadata
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return failed(wanted.index, code, aborted)
