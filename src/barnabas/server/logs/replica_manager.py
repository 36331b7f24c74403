"""The partitions of this broker, and their roles as leader or follower.

Requests find a partition only after its log exists (`log_creation`), and not any more before its log is removed (`log_removal`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.metadata.image import PartitionState, Topic
from barnabas.cluster.planning.instructions import ChangeReplica, CreateLog, DeleteLog
from barnabas.errors import LogDirFailed, StorageError
from barnabas.protocol.values import NO_LEADER
from barnabas.replication.follower_partition import FollowerPartition
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.offline_partition import OfflinePartition
from barnabas.replication.partition import OnlinePartition, Partition
from barnabas.replication.partition_followers import Cluster
from barnabas.server.gc_tuning import FrozenLogs
from barnabas.server.logs.batched_jobs import in_turns
from barnabas.server.logs.log_creation import make_logs
from barnabas.server.logs.log_removal import LogRemover
from barnabas.server.services import report_later
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.log import Log

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.config.topic import TopicConfig
    from barnabas.server.cleaning.cleaner import LogCleaner
    from barnabas.server.logs.group_commit import GroupCommit
    from barnabas.server.logs.log_dir_moves import LogDirMoves
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
RETRY_MS = 1_000  # between attempts to make a log for which there was no room


class Leaders(Cluster, Protocol):
    """The parts of the broker that its leaders use."""

    def now_ms(self) -> int: ...


class Fetchers(Protocol):
    """The fetchers of the partitions that follow."""

    def follow(self, partition: FollowerPartition) -> None: ...


class ReplicaManager:
    """Executes instructions for one broker.

    Args:
        fit: sets up the checks that the settings of a hosted log demand.
        load_late: makes coordinators read logs that were created late.
    """

    def __init__(
        self,
        services: Services,
        *,
        cleaner: LogCleaner,
        log_dir_moves: LogDirMoves,
        log_start_offsets: LogStartOffsets,
        group_commit: GroupCommit,
        isr: Leaders,
        fetchers: Fetchers,
        fit: Callable[[Log], None],
        load_late: Callable[[Sequence[CreateLog]], Awaitable[None]],
    ) -> None:
        self._services = services
        self._cleaner = cleaner
        self._log_start_offsets = log_start_offsets
        self._group_commit = group_commit
        self._isr = isr
        self._fetchers = fetchers
        self._fit = fit
        self._load_late = load_late
        self._kept_logs = FrozenLogs()
        self._unmade: list[CreateLog] = []  # there was no room for their logs
        # without the lock, a log that is made late could collide with that of another topic with the same name
        self._making = asyncio.Lock()
        self._removing = LogRemover(services, cleaner, log_dir_moves)
        self._high_watermarks: dict[TopicPartition, int] = {}  # from the checkpoint, of partitions that are not hosted yet

    def host_all(self) -> None:
        """At start: host the partitions of the metadata with their logs, and create logs that a crash left out."""
        services = self._services
        self._high_watermarks = services.logs.checkpoints.read_high_watermarks()
        offline = []
        for topic in services.metadata.topics.values():
            config = services.controller.topic_config(topic.name)
            for index, state in enumerate(topic.partitions):
                if services.config.broker_id in state.replicas and not self._find(topic, index, state, config):
                    offline.append((topic.topic_id, index))
        if services.member is not None and services.logs.failed_directories:
            services.member.tell_offline(offline)
        self._sort_out_strays()
        services.controller.forget_deleted_topics()

    def _find(self, topic: Topic, index: int, state: PartitionState, config: TopicConfig) -> bool:
        """Host the partition with its log; create the log if there is none. False if the log may lie in a failed directory.

        A second log elsewhere would hide the first.
        """
        logs = self._services.logs
        found = logs.get(topic.name, index)
        if found is not None and found.topic_id is None:
            found.adopt_topic_id(topic.topic_id)
        if found is not None and found.topic_id != topic.topic_id:
            self._put_away(found)
            found = None
        if found is None and logs.failed_directories:
            logger.error(
                "event=partition-offline topic=%s partition=%d reason='its log is in no directory that works'", topic.name, index
            )
            logs.hide(topic.name, index)
            self._host_offline(topic.name, topic.topic_id, index, state.leader_epoch)
            return False
        if found is None:
            found = self._make(topic.name, index, topic.topic_id, config)
        if found is None:
            self._host_offline(topic.name, topic.topic_id, index, state.leader_epoch)
            is_leader = state.leader == self._services.config.broker_id
            self._retry(CreateLog(topic.name, index, topic.topic_id, config, state.leader_epoch, is_leader))
        else:
            self._host(found, self._believed(state))
        return True

    def _put_away(self, stray: Log) -> None:
        """Remove or set aside the log of another topic that had the same name.

        The log is removed if the metadata says that its topic was deleted. Metadata that was restored from a copy may not know a topic
        that is still wanted.
        """
        logs = self._services.logs
        if stray.topic_id in self._services.controller.deleted_topics:
            logger.info("event=finishing-topic-deletion topic=%s partition=%d", stray.topic, stray.partition)
            logs.removal.delete(stray.topic, stray.partition).remove()
        else:
            logs.creation.set_aside(stray.topic, stray.partition)

    def _sort_out_strays(self) -> None:
        """Remove the logs of deleted topics and of partitions that have moved to other brokers."""
        services = self._services
        deleted = services.controller.deleted_topics
        for stray in [each for each in services.logs.logs() if services.partitions.get(each.topic, each.partition) is None]:
            if stray.topic_id in deleted:
                logger.info("event=finishing-topic-deletion topic=%s partition=%d", stray.topic, stray.partition)
                services.logs.removal.delete(stray.topic, stray.partition).remove()
            elif self._was_moved_away(stray):
                logger.info(
                    "event=removing-log topic=%s partition=%d reason='its partition has moved away'", stray.topic, stray.partition
                )
                services.logs.removal.delete(stray.topic, stray.partition).remove()
            else:
                logger.warning(
                    "event=unknown-log-left-alone directory=%s reason='the metadata does not know it'", stray.directory
                )

    def _was_moved_away(self, stray: Log) -> bool:
        """Whether the partition was moved from this broker to others while this broker was down."""
        topic = None if stray.topic_id is None else self._services.metadata.topic_by_id(stray.topic_id)
        if topic is None or topic.name != stray.topic or stray.partition >= len(topic.partitions):
            return False
        return self._services.config.broker_id not in topic.partitions[stray.partition].replicas

    # Instructions

    async def create(self, instructions: Sequence[CreateLog]) -> None:
        """Create logs, and host the partitions."""
        async with self._making:
            await self._create_all(instructions, again=False)

    async def remove(self, instructions: Sequence[DeleteLog]) -> None:
        """Stop hosting partitions; see `log_removal`."""
        await self._removing.remove(instructions)

    async def change(self, instruction: ChangeReplica) -> None:
        """Make the local replica the leader, or let it follow the leader."""
        await self._write_down(instruction)
        replica = self._services.partitions.get(instruction.topic, instruction.partition)
        if replica is not None and replica.topic_id == instruction.topic_id:
            self._assume(replica, instruction.state)

    def stand_down(self) -> None:
        """Stop leading and following, as if no partition had a leader."""
        for replica in list(self._services.partitions):
            self._assume(replica, self._nobody_leads(replica.leader_epoch))

    def update_config(self, topic: str, config: TopicConfig) -> None:
        """Apply changed settings of a topic."""
        for found in self._services.partitions.topic(topic).values():
            found.update_config(config)
            if not found.is_offline:
                self._fit(found.log)
        self._cleaner.update_config()

    async def _write_down(self, change: ChangeReplica) -> None:
        """Before a replica leads, write the checkpoints of its truncated log, because its appends will count as kept."""
        services = self._services
        if change.state.leader != services.config.broker_id:
            return
        replica = services.partitions.get(change.topic, change.partition)
        if replica is None or replica.is_offline or not replica.log.is_overstated:
            return
        try:
            await self._log_start_offsets.keep([replica.log])
        except StorageError as error:
            services.faults.report(error)

    async def close(self) -> None:
        """Leave the remaining files of deleted logs to the next start, and close them."""
        await self._removing.close()

    async def _create_all(self, instructions: Sequence[CreateLog], *, again: bool) -> None:
        """Create logs, and host the partitions.

        Args:
            again: the partitions are hosted already, without a log, and may be deleted in the meantime.
        """
        with self._kept_logs.making(len(self._services.partitions) + len(instructions)):
            outcomes = await make_logs(self._services, instructions)
            await self._host_all_made(instructions, outcomes, again=again)

    async def _host_all_made(
        self, instructions: Sequence[CreateLog], outcomes: Sequence[Log | StorageError], *, again: bool
    ) -> None:
        services = self._services
        async for made, wanted in in_turns(zip(outcomes, instructions, strict=True)):
            if again and not self._is_unmade(wanted):  # the topic was deleted in the meantime
                if not isinstance(made, StorageError):
                    services.logs.removal.delete(wanted.topic, wanted.partition).remove()
            elif isinstance(made, StorageError):
                services.faults.report(made)
                self._host_offline(wanted.topic, wanted.topic_id, wanted.partition, wanted.leader_epoch)
                if isinstance(made, LogDirFailed) and services.member is not None:
                    services.member.tell_offline([(wanted.topic_id, wanted.partition)])
                else:
                    self._retry(wanted)
            else:
                if again:  # without a log, no change of the topic's settings was applied
                    made.update_config(services.controller.topic_config(wanted.topic))
                if wanted.is_leader:
                    made.appender.begin_epoch(wanted.leader_epoch)
                self._host(made, self._state(wanted))

    def _retry(self, wanted: CreateLog) -> None:
        """Create a log later, for which there is no room now."""
        self._unmade.append(wanted)
        if len(self._unmade) == 1:
            self._services.loop.call_later(RETRY_MS / 1000, self._retry_all)

    def _retry_all(self) -> None:
        services = self._services
        if not services.is_ready and not services.is_stopping:
            services.loop.call_later(RETRY_MS / 1000, self._retry_all)
            return
        unmade, self._unmade = self._unmade, []
        if unmade and services.is_ready:
            report_later(services.faults, asyncio.ensure_future(self._create_again(unmade)))

    async def _create_again(self, unmade: Sequence[CreateLog]) -> None:
        async with self._making:
            wanted = [each for each in unmade if self._is_unmade(each)]
            await self._create_all(wanted, again=True)
        await self._load_late(wanted)

    def _is_unmade(self, wanted: CreateLog) -> bool:
        """Whether the partition is still here without its log."""
        found = self._services.partitions.get(wanted.topic, wanted.partition)
        return found is not None and found.is_offline and found.topic_id == wanted.topic_id

    def _state(self, wanted: CreateLog) -> PartitionState:
        """The leader and epoch of a replica that was just created, as far as this broker knows."""
        state = self._services.metadata.partition(wanted.topic, wanted.partition)
        # the topic was deleted in the meantime
        if state is None or self._services.metadata.topic_id(wanted.topic) != wanted.topic_id:
            return self._nobody_leads(wanted.leader_epoch)
        return self._believed(state)

    def _believed(self, state: PartitionState) -> PartitionState:
        """The state from the metadata; no leader while this broker is out of its cluster. It gets its role when it is back."""
        member = self._services.member
        return state if member is None or not member.is_down else self._nobody_leads(state.leader_epoch)

    def _nobody_leads(self, leader_epoch: int) -> PartitionState:
        """The state without a leader, with this broker as the only replica."""
        own = self._services.config.broker_id
        return PartitionState(NO_LEADER, leader_epoch, (own,), (own,))

    def _host(self, found: Log, state: PartitionState) -> None:
        """Host a log as a partition."""
        services = self._services
        own = services.config.broker_id
        mark = self._high_watermarks.pop((found.topic, found.partition), 0)
        if state.leader != own:
            followed = FollowerPartition(found, state, flushes=self._group_commit, high_watermark=mark)
            self._begin(followed)
            return
        known = None if state.replicas == (own,) else mark  # all records of a single replica are committed
        led = LeaderPartition(
            found, leader_id=own, leader_epoch=state.leader_epoch, flushes=self._group_commit, high_watermark=known
        )
        led.lead(state, self._isr, self._isr.now_ms())
        self._begin(led)

    def _begin(self, partition: OnlinePartition) -> None:
        services = self._services
        self._fit(partition.log)
        services.partitions.add(partition)
        partition.resume_flushing()
        if not partition.is_leader:
            self._fetchers.follow(partition)

    def _assume(self, replica: Partition, state: PartitionState) -> None:
        """Apply the controller's decision to a local replica: lead it, or follow its leader."""
        services = self._services
        own = services.config.broker_id
        if replica.is_offline or state.leader_epoch < replica.leader_epoch:
            return
        if not replica.is_leader:
            if state.leader != own:
                if replica.follow(state):
                    self._fetchers.follow(replica)
                return
            leading = LeaderPartition(
                replica.log,
                leader_id=own,
                leader_epoch=state.leader_epoch,
                flushes=self._group_commit,
                high_watermark=replica.high_watermark,
            )
            leading.lead(state, self._isr, self._isr.now_ms())
            after: OnlinePartition = leading
        elif state.leader == own:
            replica.lead(state, self._isr, self._isr.now_ms())
            return
        else:
            after = FollowerPartition(replica.log, state, flushes=self._group_commit, high_watermark=replica.high_watermark)
        logger.info(
            "event=partition-role role=%s topic=%s partition=%d leader=%d leader_epoch=%d end=%d high_watermark=%d",
            "leading" if after.is_leader else "following",
            after.topic, after.index, state.leader, state.leader_epoch, after.log.log_end_offset, after.high_watermark,
        )  # fmt: skip
        replica.close()
        self._begin(after)

    def _host_offline(self, topic: str, topic_id: UUID, index: int, leader_epoch: int) -> None:
        leader = self._services.config.broker_id
        self._services.partitions.add(OfflinePartition(topic, topic_id, index, leader_id=leader, leader_epoch=leader_epoch))

    def _make(self, topic: str, index: int, topic_id: UUID, config: TopicConfig) -> Log | None:
        """Create a log that the metadata knows and no directory has; None if there is no room for it."""
        try:
            return self._services.logs.creation.create(topic, index, topic_id, config)
        except StorageError as error:
            self._services.faults.report(error)
            return None
