"""The store in a compacted topic of a cluster.

Rules
  1. Batches have the producer id of a transactional id, although they are not in transactions. A registry that takes over the
     id raises its epoch. Its first batch, a NOOP, makes the partition's leader refuse all batches of older epochs. So all
     records of older writers are before the NOOP.
  2. Batches have sequence numbers, so a retry after a lost response is not appended twice.
  3. There are two clients: on one connection, a long poll would delay the writes after it.
  4. A copy of a mirror link is read, and not written to until it is promoted.
  5. If the topic was created again, or has lost records in an unclean election, the state does not match it. Then the registry
     writes nothing until it is restarted; it answers reads from the state.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from barnabas import limits
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.batches import next_offset
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError, ResourceError
from barnabas.client.results import EARLIEST, LATEST, NewTopic
from barnabas.client.transactions import Owner, init_producer_id
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, KafkaError
from barnabas.protocol.base_message import Buffer
from barnabas.protocol.records.batch import build_batch, iterate_records, split_batches
from barnabas.registry.core import records
from barnabas.registry.core.records import Record
from barnabas.registry.store.interface import Fenced, ReadOnly, Replay, StoreFailed, TooLarge

logger = logging.getLogger(__name__)
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
REPLICAS = 3  # the same default as in Confluent's registry; fewer if there are fewer brokers
PAUSE_S = 0.5  # before the next read after an error


class TopicStore:
    """Reads the topic from its beginning, and writes to it.

    Args:
        config: the client settings for the cluster.
        topic: the name of the topic; it is created if it does not exist.
        writer_id: the transactional id that all registries of this topic share.
        replicas: the number of replicas of a topic that it creates, at most the number of brokers.
    """

    def __init__(self, config: ClientConfig, topic: str, writer_id: str, replicas: int = REPLICAS) -> None:
        self.topic = topic
        self._replicas = replicas
        self._writer_id = writer_id
        self._reader = AsyncClient(config)
        self._writer = AsyncClient(replace(config, default_api_timeout_ms=min(config.default_api_timeout_ms, 30_000)))
        self._replay: Replay | None = None
        self._position = 0  # the offset of the next record to read
        self._arrived = asyncio.Condition()
        self._following: asyncio.Task[None] | None = None
        self._heard_s = 0.0  # time of the last successful read of the topic
        self._owner: Owner | None = None
        self._sequence = 0
        self._lost = False

    async def start(self, replay: Replay) -> None:
        self._replay = replay
        try:
            await self._ensure_topic()
            place = self.topic, 0
            first = await self._reader.list_offsets({place: EARLIEST})
            self._position = first[place].offset
            end = (await self._reader.list_offsets({place: LATEST}))[place].offset
            await self._load(end)
            self._heard_s = time.monotonic()
        except BarnabasError as error:
            raise StoreFailed(f"the topic {self.topic} cannot be used: {error}") from error
        self._following = asyncio.create_task(self._follow())

    async def _load(self, end: int) -> None:
        """Read up to `end`. The garbage collector is off: there is no garbage here, and its scans would take half of the time."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            while self._position < end:
                await self._read()
        finally:
            if collecting:
                gc.enable()

    async def _ensure_topic(self) -> None:
        found = (await self._reader.topics_by_name([self.topic])).get(self.topic)
        if found is None:
            replicas = min(self._replicas, len(self._reader.cluster.brokers))
            wanted = NewTopic(self.topic, 1, replicas, {"cleanup.policy": "compact"})
            try:
                await self._reader.create_topics([wanted])
            except ResourceError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            return
        if len(found.partitions) != 1:
            raise StoreFailed(f"the topic {self.topic} has {len(found.partitions)} partitions; the registry needs one with 1")
        policy = (await self._reader.describe_topic_config(self.topic)).get("cleanup.policy")
        if policy != "compact":
            raise StoreFailed(f"the topic {self.topic} has cleanup.policy={policy}; set it to compact, or schemas are lost")

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except (KafkaError, ClientError) as error:
                if isinstance(error, PartitionError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._lose()
                logger.warning("event=schemas-topic-unreadable topic=%s reason=%r", self.topic, str(error))
                await asyncio.sleep(PAUSE_S)

    async def _read(self) -> None:
        fetched = await self._reader.fetch(self.topic, 0, self._position)
        self._heard_s = time.monotonic()
        if not fetched.records:
            return
        self._take(fetched.records)
        end = next_offset(fetched.records, self._position)
        async with self._arrived:
            self._position = max(end, self._position)
            self._arrived.notify_all()

    def _take(self, data: Buffer) -> None:
        assert self._replay is not None
        for position, header in split_batches(data, allow_partial=True):
            if header.is_control:
                continue
            for record in iterate_records(memoryview(data)[position : position + header.size]):
                if record.offset < self._position or record.key is None:
                    continue
                try:
                    self._replay(record.key, record.value, record.timestamp)
                except (msgspec.MsgspecError, ValueError, TypeError) as error:
                    logger.warning(
                        "event=schemas-record-unreadable topic=%s offset=%d reason=%r", self.topic, record.offset, error
                    )

    async def _lose(self) -> None:
        """The topic does not match the records that were read: stop writing."""
        if not self._lost:
            logger.error("event=schemas-topic-replaced topic=%s hint='start the registry again'", self.topic)
        async with self._arrived:
            self._lost = True
            self._arrived.notify_all()

    async def become_writer(self) -> None:
        await self._check_writable()
        try:
            initialised = await self._writer.run(init_producer_id(self._writer.config, self._writer.cluster, self._writer_id))
        except BarnabasError as error:
            raise StoreFailed(f"transactional id {self._writer_id}: {error}") from error
        self._owner, self._sequence = initialised.owner, 0
        await self.append([records.noop_record()])

    async def _check_writable(self) -> None:
        """Ask before a producer id is taken, because the registry tries again and again while the topic is a copy."""
        try:
            link = (await self._writer.describe_topic_config(self.topic)).get("mirror.link")
        except BarnabasError as error:
            raise StoreFailed(f"the topic {self.topic}: {error}") from error
        if link:
            raise ReadOnly(f"the topic {self.topic} is a copy of the mirror link {link} until it is promoted")

    async def append(self, written: Sequence[Record]) -> None:
        owner = self._owner
        if owner is None:
            raise Fenced("another registry writes")
        batch = build_batch(
            [records.encode(each) for each in written],
            timestamp_ms=int(time.time() * 1000),
            producer_id=owner.producer_id,
            producer_epoch=owner.epoch,
            base_sequence=self._sequence,
        )
        # the position before the write, because the reader may get these records before the response arrives
        read = self._position
        try:
            produced = await self._writer.produce(self.topic, 0, batch)
        except PartitionError as error:
            if error.code in TOO_LARGE:
                raise TooLarge from error
            self._owner = None
            if error.code is ErrorCode.POLICY_VIOLATION:
                raise ReadOnly(f"the topic {self.topic} is read-only: {error}") from error
            raise (Fenced if error.code in FENCED else StoreFailed)(str(error)) from error
        except BarnabasError as error:
            self._owner = None
            raise StoreFailed(str(error)) from error
        self._sequence += len(written)
        last = produced.base_offset + len(written) - 1
        if produced.base_offset < read:
            await self._lose()
        async with self._arrived:
            await self._arrived.wait_for(lambda: self._position > last or self._lost)
        if self._lost:
            self._owner = None
            raise StoreFailed(f"the topic {self.topic} was made again or has lost records; start the registry again")

    async def close(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
        await self._reader.close()
        await self._writer.close()

    def is_following(self) -> bool:
        is_reading = self._following is not None and not self._following.done()
        return is_reading and not self._lost and time.monotonic() - self._heard_s < limits.SCHEMAS_STALE_S
