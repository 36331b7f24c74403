"""The clients: they talk to the broker over the real protocol, and report their requests and the answers to the history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError
from barnabas.client.plans import Plan, call
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches
from barnabas.protocol.records.batch_header import CRC_START
from barnabas.protocol.records.crc import crc32c
from barnabas.testing.simulation.history import MOST_RECORDS_OF_A_BATCH, Found, PartitionHistory, Register, Sent, Violation

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.client.results import Fetched
    from barnabas.testing.simulation.loop import World

EARLIEST, LATEST = -2, -1
ACKS_ALL = -1
LOST_ITS_PLACE = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)
NOT_KNOWN_EVERYWHERE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)  # brokers learn of a topic at different times


def client_config(address: str, client_id: str, *, patience_ms: int = 60_000) -> ClientConfig:
    """The settings of a client at `address` ("host:port"): short timeouts, so that a run has many retries; a whole call may
    take `patience_ms`."""
    options = {
        "bootstrap.servers": address,
        "client.id": client_id,
        "request.timeout.ms": "2000",
        "default.api.timeout.ms": str(patience_ms),
        "socket.connection.setup.timeout.ms": "1000",
        "max.partition.fetch.bytes": "20000",
        "retry.backoff.ms": "50",
        "retry.backoff.max.ms": "500",
        "fetch.max.wait.ms": "100",
    }
    return ClientConfig.from_options(options)


def records_of(fetched: Fetched, offset: int) -> tuple[list[Found], int]:
    """The records from `offset` on, and the next offset to read.

    A batch with a wrong checksum must not have been served. A compacted topic may have batches without records.
    """
    data = memoryview(fetched.records)
    found = []
    following = offset
    for position, header in split_batches(data, allow_partial=True):
        if crc32c(data[position + CRC_START : position + header.size]) != header.crc:
            raise Violation(f"the batch at offset {header.base_offset} was served with a wrong checksum")
        for record in iterate_records(data, position):
            if record.offset >= offset:
                identity = record.value if record.value is not None else record.headers[0][1]
                found.append(Found(record.offset, bytes(identity or b""), bytes(record.key) if record.key is not None else None))
        following = max(following, header.next_offset)
    return found, following


class Producing(Struct):
    """The settings of one producer."""

    idempotent: bool
    acks: int
    batches: int
    pause_s: float
    value_bytes: int
    keys: int = 0  # number of different keys; 0: records without keys
    tombstones: float = 0.0  # share of tombstones
    codec: int = 0  # compression codec


class Producer:
    """Sends batches to one partition, one after the other, and repeats each until it knows the outcome.

    Args:
        topic_id: the id of the topic of `history`, if other topics have the same name before or after it. For a while, a broker
            that does not know of a topic's deletion accepts records for it; they are deleted with it.
    """

    def __init__(
        self,
        world: World,
        client: AsyncClient,
        name: str,
        topic: str,
        partition: int,
        history: PartitionHistory,
        how: Producing,
        *,
        topic_id: UUID | None = None,
    ) -> None:
        self._world = world
        self._client = client
        self._random = Random(world.random.getrandbits(64))
        self.name = name
        self._topic, self._partition = topic, partition
        self._history = history
        self._how = how
        self._topic_id = topic_id
        self._life = 0  # number of the current producer id; record numbers start again with it, like sequences
        self._number = 0

    async def run(self) -> None:
        how = self._how
        producer_id, epoch = (await self._new_producer_id()) if how.idempotent else (-1, -1)
        for _ in range(how.batches):
            identities, batch = self._make(producer_id, epoch)
            cuts = self._history.power_cuts
            try:
                produced = await self._client.produce(self._topic, self._partition, batch, acks=how.acks)
            except KafkaError as error:
                if self._history.replicated and error.code in NOT_KNOWN_EVERYWHERE:
                    producer_id, epoch = (await self._new_producer_id()) if how.idempotent else (-1, -1)
                    continue
                if error.code not in LOST_ITS_PLACE or not how.idempotent:
                    raise Violation(f"{self.name}: a batch was refused with {error.code.name}") from error
                producer_id, epoch = await self._new_producer_id()  # it is unknown whether the batch was appended
            except ClientError:
                if how.idempotent:
                    producer_id, epoch = await self._new_producer_id()
            else:
                if self._topic_id not in (None, self._client.cluster.topics[self._topic].topic_id):
                    producer_id, epoch = (await self._new_producer_id()) if how.idempotent else (-1, -1)
                    continue
                # A power cut after the request, or a leader that did not wait for its followers, may lose the records.
                if cuts == self._history.power_cuts and (how.acks == ACKS_ALL or not self._history.replicated):
                    self._history.acknowledged(produced.base_offset, identities)
            await asyncio.sleep(how.pause_s * self._random.random())

    def _make(self, producer_id: int, epoch: int) -> tuple[list[bytes], bytes]:
        how, random = self._how, self._random
        first, now_ms = self._number, self._world.now_ms()
        identities, records = [], []
        writer = f"{self.name}.{self._life}"
        for _ in range(random.randint(1, MOST_RECORDS_OF_A_BATCH)):
            identity = f"{self._history.name}/{writer}/{self._number}/".encode() + b"." * random.randrange(how.value_bytes)
            key = f"k{random.randrange(how.keys)}".encode() if how.keys else None
            is_tombstone = how.tombstones > 0 and random.random() < how.tombstones
            sent = Sent(writer, self._number, how.idempotent, now_ms, tries=1_000, key=key, is_tombstone=is_tombstone)
            self._history.sending(identity, sent)
            identities.append(identity)
            if is_tombstone:
                records.append(Record(0, now_ms, key, None, (("id", identity),)))
            else:
                records.append(Record(0, now_ms, key, identity, ()))
            self._number += 1
        batch = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=first if how.idempotent else -1,
            compression=how.codec,
        )
        return identities, batch

    async def _new_producer_id(self) -> tuple[int, int]:
        self._life += 1
        self._number = 0

        def ask() -> Plan[tuple[int, int]]:
            answer = yield from call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code))
            return answer.producer_id, answer.producer_epoch

        return await patiently(lambda: self._client.run(ask()))


class Consumer:
    """Reads a partition from its start on, and commits its position."""

    def __init__(
        self,
        world: World,
        client: AsyncClient,
        topic: str,
        partition: int,
        history: PartitionHistory,
        group: Register,
        is_over: Callable[[], bool],
    ) -> None:
        self._random = Random(world.random.getrandbits(64))
        self._world = world
        self._client = client
        self._topic, self._partition = topic, partition
        self._history = history
        self._group = group
        self._is_over = is_over

    async def run(self) -> None:
        key = self._topic, self._partition
        position, cuts = 0, self._history.power_cuts
        while not self._is_over():
            life = self._world.epoch
            try:
                fetched = await self._client.fetch(self._topic, self._partition, position)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    offset = EARLIEST if position < self._history.high_watermark else LATEST
                    with suppress(ClientError):
                        position = (await self._client.list_offsets({key: offset}))[key].offset
                    continue
                if self._history.replicated and error.code in NOT_KNOWN_EVERYWHERE:
                    await asyncio.sleep(0.2)
                    continue
                raise Violation(f"{self._history.name}: a fetch at {position} was refused with {error.code.name}") from error
            except ClientError:
                # the broker refuses a damaged batch on every attempt, so the reader skips it
                position += self._history.rotten > 0
                continue
            if life != self._world.epoch:
                continue  # a broker was restarted in the meantime, and the response may be older
            if cuts != self._history.power_cuts:
                position, cuts = min(position, self._history.high_watermark), self._history.power_cuts
                continue
            records, following = records_of(fetched, position)
            self._history.started_at(fetched.log_start_offset, self._world.now_ms())
            self._history.read(position, records, high_watermark=fetched.high_watermark, log_start=fetched.log_start_offset)
            position = following
            if self._random.random() < 0.3:
                await self._commit(position)
            await asyncio.sleep(0.2 * self._random.random())

    async def _commit(self, position: int) -> None:
        number = self._group.asking(str(position))
        try:
            await self._client.commit_offsets(self._group.name, {(self._topic, self._partition): position})
        except BarnabasError:
            return
        self._group.told(number)


async def patiently(ask: Callable[[], Awaitable[tuple[int, int]]]) -> tuple[int, int]:
    """Repeat `ask` until there is an answer."""
    while True:
        try:
            return await ask()
        except BarnabasError:
            await asyncio.sleep(0.1)
