"""One link on one broker: its connections to the source, and the copies that this broker leads.

Each broker fetches what it leads. The broker that is the controller also makes the topics.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID
from zlib import crc32

from barnabas.client import operations
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.errors import ClientError, UnsupportedRequest
from barnabas.config.mirror_settings import MIRROR_LINK, MIRROR_STATE, OF_FAILBACK, PROMOTING
from barnabas.errors import ErrorCode, KafkaError
from barnabas.mirror.fetch_times import Counters, summed
from barnabas.mirror.partition_copy import PartitionCopy
from barnabas.mirror.rate_limit import RateLimit
from barnabas.mirror.status import LINK_STATUS, NO_ANSWER, PREFIX, LinkStatus, LinkTimes, PartitionStatus, encode, refusal
from barnabas.mirror.topics import ANOTHER_ID, DELETED, id_text
from barnabas.protocol.values import NO_LEADER
from barnabas.server.mirroring.declared_sync import sync_declared
from barnabas.server.mirroring.group_sync import GroupSync
from barnabas.server.mirroring.source_fetcher import SourceFetcher
from barnabas.server.mirroring.topic_sync import sync_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from barnabas.mirror.link import Link
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.mirroring.group_sync import Coordinators
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
LANES = 4  # fetchers for each broker of the source
LEAST_BETWEEN_LOOKS_S = 0.2  # at the metadata of the source, if a fetcher asks for it


class LinkRunner:
    """Runs until `close`."""

    def __init__(self, services: Services, coordinators: Coordinators, log_start_offsets: LogStartOffsets, link: Link) -> None:
        self.link = link
        self.limit = RateLimit(link.values["io.max.bytes.per.second"])
        self._log_start_offsets = log_start_offsets
        self._services = services
        config = link.client_config()
        self._client = AsyncClient(config)
        self._lanes = [AsyncClient(config) for _ in range(LANES)]
        for client in self._lanes:
            client.cluster = self._client.cluster  # one client reads the metadata for all
        self._copies: dict[LeaderPartition, PartitionCopy] = {}
        self._fetchers: dict[tuple[int, int], SourceFetcher] = {}
        # by lane and leader in the source; None after a change
        self._placed: dict[tuple[int, int], list[tuple[PartitionCopy, UUID, int]]] | None = None
        self._ended = Counters()  # of fetchers that were closed
        self._refused: dict[str, tuple[str, Mapping[str, str]]] = {}  # by topic: why, and the settings that it had here then
        self._not_followed: dict[str, str] = {}
        self._error = NO_ANSWER
        self._stale = asyncio.Event()
        self._groups = GroupSync(services, coordinators, link)
        self._group_rounds = 0 if link.values["sync.group.offsets.enabled"] else -1
        self._closing: set[asyncio.Task[None]] = set()  # fetchers that end
        self._tasks = [
            services.loop.create_task(self._look_for_ever(), name=f"mirror-{link.name}"),
            services.loop.create_task(self._sync_groups_for_ever(), name=f"mirror-groups-{link.name}"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._groups.close()
        await asyncio.gather(*(fetcher.close() for fetcher in self._fetchers.values()), *self._closing)
        for client in (self._client, *self._lanes):
            await client.close()

    # The copies

    def take(self, partitions: Iterable[LeaderPartition]) -> None:
        """The partitions that this broker leads for the link."""
        now_ms, before = self._services.clock.now_ms(), self._copies
        self._copies = {
            each: before.get(each) or PartitionCopy(each, now_ms, self.link.source_name(each.topic)) for each in partitions
        }
        self._placed = None
        if self._copies.keys() - before.keys():
            self.look_again()

    def end_transactions(self) -> None:
        """End the open transactions of copies that are promoted and drained; let the starts of the others follow.

        Raises:
            StorageError: the disk does not take a marker.
        """
        now_ms = self._services.clock.now_ms()
        for copy in self._copies.values():
            copy.follow_start()
            count = copy.end_transactions(now_ms)
            if count:
                partition = copy.partition
                logger.info("event=mirror-transactions-aborted topic=%s partition=%d count=%d",
                            partition.topic, partition.index, count)  # fmt: skip

    def status(self) -> dict[str, str]:
        """The status as read-only settings of the link: one of the link, and one of each copy that this broker leads."""
        error = "the link is paused" if self.link.is_paused else self._error
        not_followed = {**self._not_followed, **self._groups.not_followed}
        found = {LINK_STATUS: encode(LinkStatus(error, self._refused_now(), not_followed, self.times(), self._group_rounds))}
        for each in self.partition_statuses():
            found[f"{PREFIX}{each.topic}-{each.partition}"] = encode(each)
        return found

    def partition_statuses(self) -> Iterator[PartitionStatus]:
        """The status of each copy that this broker leads."""
        now_ms = self._services.clock.now_ms()
        return (copy.status(now_ms) for copy in self._copies.values())

    @property
    def is_up(self) -> bool:
        """Whether the source answers and the link is not paused."""
        return not self._error and not self.link.is_paused

    @property
    def refused_count(self) -> int:
        return len(self._refused_now())

    def counters(self) -> Counters:
        """The counters of all fetchers since the start of the link here."""
        found = Counters()
        for each in (self._ended, *(fetcher.times.counters for fetcher in self._fetchers.values())):
            found.add_all(each)
        return found

    def times(self) -> LinkTimes:
        """Where the time of the fetchers went that have copies."""
        now_s = self._services.clock.monotonic_ms() / 1000
        return summed((fetcher.times for fetcher in self._fetchers.values() if any(fetcher.copies)), now_s)

    def _refused_now(self) -> dict[str, str]:
        """The refused topics whose settings were not set again since."""
        config = self._services.metadata.topic_config
        return {topic: reason for topic, (reason, settings) in self._refused.items() if config(topic) is settings}

    # For the fetchers

    def copies_at(self, lane: int, leader: int) -> list[tuple[PartitionCopy, UUID, int]]:
        if self.link.is_paused:
            return []
        if self._placed is None:
            self._placed = self._place()
        return self._placed.get((lane, leader), [])

    def _place(self) -> dict[tuple[int, int], list[tuple[PartitionCopy, UUID, int]]]:
        """The copies by lane and leader in the source."""
        topics, found = self._client.cluster.topics, defaultdict(list)
        for partition, copy in self._copies.items():
            topic = topics.get(copy.source_topic)
            at = None if topic is None else topic.partitions.get(partition.index)
            if topic is None or at is None or id_text(topic.topic_id) != partition.log.config.mirror_source_topic_id:
                continue
            copy.source_leader_epoch = max(copy.source_leader_epoch, at.leader_epoch)
            lane = (crc32(partition.topic.encode()) + partition.index) % LANES
            found[lane, at.leader].append((copy, topic.topic_id, at.leader_epoch))
        return found

    def reached(self) -> None:
        self._error = ""

    def failed(self, error: ClientError) -> None:
        if str(error) != self._error:
            logger.warning("event=mirror-source-failed link=%s error=%r", self.link.name, str(error))
        self._error = str(error)

    def look_again(self) -> None:
        self._stale.set()

    # The metadata of the source

    async def _look_for_ever(self) -> None:
        while True:
            self._stale.clear()
            try:
                await self._look()
                self.reached()
            except ClientError as error:
                self.failed(error)
            except KafkaError as error:
                logger.info("event=mirror-topics-not-followed link=%s error=%r", self.link.name, str(error))
                self._error = str(error)
            except Exception:  # as in `SourceFetcher`
                logger.exception("event=mirror-look-failed link=%s", self.link.name)
            await asyncio.sleep(LEAST_BETWEEN_LOOKS_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.link.refresh_s):
                    await self._stale.wait()

    async def _sync_groups_for_ever(self) -> None:
        interval_s = self.link.values["sync.group.offsets.interval.seconds"]
        while self._group_rounds >= 0:
            await self._until_next_round(interval_s)
            if self.link.is_paused:
                continue
            try:
                self._group_rounds += await self._groups.sync(self._client)
            except UnsupportedRequest as error:  # before Kafka 3.0
                logger.warning("event=mirror-groups-not-copied link=%s error=%r", self.link.name, str(error))
                self._group_rounds = -1
            except (ClientError, KafkaError) as error:
                logger.info("event=mirror-groups-late link=%s error=%r", self.link.name, str(error))
            except Exception:  # as in `SourceFetcher`
                logger.exception("event=mirror-groups-failed link=%s", self.link.name)

    async def _until_next_round(self, interval_s: int) -> None:
        """Wait for the time of the next round of group offsets. It comes at once during a promotion, which waits for it."""
        loop, seen = self._services.loop, None
        due_s = loop.time() + interval_s
        while loop.time() < due_s:
            await asyncio.sleep(LEAST_BETWEEN_LOOKS_S)
            configs = self._services.metadata.configs
            if configs is not seen and any(map(self._is_promoting, configs.values())):
                return
            seen = configs

    def _is_promoting(self, settings: Mapping[str, str]) -> bool:
        return settings.get(MIRROR_STATE) == PROMOTING and settings.get(MIRROR_LINK) == self.link.name

    async def _look(self) -> None:
        services, client = self._services, self._client
        if client.cluster.cluster_id is None:
            await client.run(operations.refresh(client.config, client.cluster, []))
        if client.cluster.cluster_id == services.metadata.cluster_id:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "the source is this cluster itself; a link copies from another one")
        if services.controller.is_controller and not self.link.is_paused:
            image = services.metadata
            refused = await sync_topics(services, self.link, client)
            self._refused = {topic: (reason, image.topic_config(topic)) for topic, reason in refused.items()}
            self._not_followed = await sync_declared(services, self.link, client)
        else:
            self._refused, self._not_followed = {}, {}
            names = sorted({copy.source_topic for copy in self._copies.values()})
            await client.run(operations.refresh(client.config, client.cluster, names))
        absent = sorted({copy.source_topic for copy in self._copies.values()} - client.cluster.topics.keys())
        # A request without names leaves out topics that the user of the link may not describe
        answers = await client.run(operations.refresh(client.config, client.cluster, absent)) if absent else {}
        self._stop_replaced(answers)
        self._assign()

    def _stop_replaced(self, absent: Mapping[str, ErrorCode]) -> None:
        """Stop copies whose topic in the source is another one by now, or is gone.

        Args:
            absent: the answers of the source about topics that it does not show.
        """
        for partition, copy in self._copies.items():
            topic = self._client.cluster.topics.get(copy.source_topic)
            was_deleted, copy.is_source_deleted = copy.is_source_deleted, False
            if copy.state in OF_FAILBACK and not copy.divergence.is_known:
                copy.reason = ""  # the controller looks whether it is a copy of the topic here
            elif topic is None:
                error = absent.get(copy.source_topic, ErrorCode.NONE)
                if error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or copy.state in OF_FAILBACK:
                    is_absent = error in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
                    copy.reason = "the source has no such topic" if is_absent else refusal(error)
                    continue
                copy.reason, copy.is_source_deleted = DELETED, True
                if not was_deleted:
                    logger.error("event=mirror-source-topic-deleted topic=%s partition=%d", partition.topic, partition.index)
            elif id_text(topic.topic_id) != partition.log.config.mirror_source_topic_id and not copy.is_stopped:
                copy.stop(ANOTHER_ID)
                logger.error(
                    "event=mirror-stopped topic=%s partition=%d reason=%r", partition.topic, partition.index, copy.reason
                )

    def _assign(self) -> None:
        """Have a fetcher in each lane for each broker that leads partitions in the source."""
        self._placed = None
        topics = self._client.cluster.topics
        leaders = set()
        for partition, copy in self._copies.items():
            topic = topics.get(copy.source_topic)
            at = None if topic is None else topic.partitions.get(partition.index)
            if at is not None and at.leader != NO_LEADER:
                leaders.add(at.leader)
        for leader in leaders:
            for lane, client in enumerate(self._lanes):
                if (lane, leader) not in self._fetchers:
                    self._fetchers[lane, leader] = SourceFetcher(
                        self._services, self._log_start_offsets, self, client, lane, leader
                    )
        for slot in [slot for slot in self._fetchers if slot[1] not in leaders]:
            fetcher = self._fetchers.pop(slot)
            self._ended.add_all(fetcher.times.counters)
            closing = self._services.loop.create_task(fetcher.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        for fetcher in self._fetchers.values():
            fetcher.wake()
