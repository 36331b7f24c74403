"""The work of clients in their transactions: writers write to several partitions and read from others, copiers copy a partition
exactly once.

Each works as an application does: it begins a transaction, then requests the commit or aborts. After an error it aborts; after
fencing it ends or takes its transactional id again. It reports each request to the ledger before it sends it, and each answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.errors import ClientError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import Record
from barnabas.testing.simulation.history import TopicPartition
from barnabas.testing.simulation.transactions.group_offsets import committed_offset
from barnabas.testing.simulation.transactions.ledger import Ledger, Outcome, Seen, Transaction
from barnabas.testing.simulation.transactions.producer import Fenced, GivenUp, Refused, TransactionalProducer
from barnabas.testing.simulation.transactions.reader import Reader
from barnabas.testing.simulation.transactions.scenario import CODECS, INPUT, KEYED, OUTPUT, Client, Clients, Instance

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.testing.simulation.loop import World

GROUP = "copiers"
KEYS = 4
MOST_RECORDS = 3
WANDERS_OFF = 0.04  # share of transactions whose client is idle until they time out
EMPTY_POLLS = 10  # after so many empty polls, with all writers done, a copier is at the end of its partition


class WorkerContext(Struct):
    """The common base of all workers.

    Args:
        is_fed: whether the input is complete.
    """

    world: World
    ledger: Ledger
    clients: Clients
    is_fed: Callable[[], bool]


class Worker:
    """One process that uses a transactional id.

    Args:
        name: the name of this process in the ledger.
        client, reading: connections for the producer, and for reading committed records.
    """

    def __init__(
        self,
        around: WorkerContext,
        name: str,
        client: Client,
        how: Instance,
        producer: TransactionalProducer,
        reading: AsyncClient,
        random: Random,
    ) -> None:
        self._around = around
        self._world = around.world
        self._ledger = around.ledger
        self._name = name
        self._client = client
        self._how = how
        self._producer = producer
        self._reading = reading
        self._random = random
        self._sent = 0

    async def run(self) -> None:
        """Work until all its transactions are done, or until it was fenced and does not take the id again."""
        lives = 1 + self._how.comes_back
        left = self._how.transactions
        while lives and left:
            lives -= 1
            await self._init()
            await self._begin_life()
            try:
                while left and await self._transact():
                    left -= 1
                    self._own()
                    await self._pause()
                return
            except (Fenced, GivenUp):
                await self._pause()

    async def _begin_life(self) -> None:
        """The first actions of a new owner of the id."""

    async def _fill(self, transaction: Transaction) -> None:
        """Do the work of the transaction."""
        raise NotImplementedError

    async def _transact(self) -> bool:
        """Run one transaction; returns whether there may be another one."""
        transaction = self._ledger.began(self._client.transactional_id, self._producer.owner, self._world.now_s)
        try:
            await self._fill(transaction)
            if self._random.random() < WANDERS_OFF:
                await asyncio.sleep(self._how.timeout_ms / 1000 + 1.0)
            commits = self._random.random() >= self._client.abort_share
        except (Refused, GivenUp):
            commits = False
        except Fenced:
            self._end(transaction, Outcome.ABORTED)  # the client has not requested the commit
            raise
        if not transaction.sent:
            self._end(transaction, Outcome.ABORTED)
            return True
        if commits:
            await self._commit(transaction)
        else:
            await self._abort(transaction)
        return True

    async def _commit(self, transaction: Transaction) -> None:
        self._ledger.asking_commit(transaction, self._world.now_s)
        try:
            await self._producer.end(commit=True)
        except (Fenced, Refused) as error:
            self._end(transaction, Outcome.ABORTED if self._producer.is_end_sure else Outcome.UNKNOWN)
            raise Fenced from error
        except GivenUp:
            self._end(transaction, Outcome.UNKNOWN)
            raise
        self._end(transaction, Outcome.COMMITTED)

    async def _abort(self, transaction: Transaction) -> None:
        self._end(transaction, Outcome.ABORTED)
        await self._producer.abort()
        await self._begin_life()

    def _end(self, transaction: Transaction, outcome: Outcome) -> None:
        self._world.note(f"{self._name}: {transaction} {outcome.value}")
        self._ledger.ended(transaction, outcome, self._world.now_s)

    async def _init(self) -> None:
        while True:
            with suppress(GivenUp):
                await self._producer.init()
                break
        self._own()

    def _own(self) -> None:
        self._ledger.owns(self._client.transactional_id, self._name, self._producer.owner, self._world.now_s)

    async def _send(self, transaction: Transaction, place: TopicPartition, sources: list[bytes | None]) -> None:
        """Send a batch, with a record for each of `sources`."""
        values, records = [], []
        now_ms = self._world.now_ms()
        for source in sources:
            value = f"{self._name}/{transaction.number}/{self._sent}/".encode() + b"." * self._random.choice((5, 60, 400))
            key = f"k{self._random.randrange(KEYS)}".encode() if place[0] == KEYED else None
            self._sent += 1
            self._ledger.sending(transaction, place, value, key=key, source=source)
            values.append(value)
            records.append(Record(0, now_ms, key, value, ()))
        sent_s = self._world.now_s
        offset = await self._producer.send(place, records, self._random.choice(CODECS))
        self._ledger.acknowledged(transaction, place, offset, values, sent_s)

    async def _pause(self) -> None:
        await asyncio.sleep(self._how.pause_s * self._random.random())


class Writer(Worker):
    """Writes to random partitions, and sometimes reads from others."""

    async def _fill(self, transaction: Transaction) -> None:
        places = [place for place in self._around.clients.places if place[0] in (INPUT, KEYED)]
        for _ in range(self._random.randint(1, 4)):
            if self._random.random() < 0.25:
                await self._poll(transaction)
            else:
                count = self._random.randint(1, MOST_RECORDS)
                await self._send(transaction, self._random.choice(places), [None] * count)
            await self._pause()

    async def _poll(self, transaction: Transaction) -> None:
        place = self._random.choice(self._around.clients.places)
        reader = Reader(self._reading, self._ledger, place)
        reader.position = max(0, self._ledger.partitions[place].high_watermark - 3)
        with suppress(ClientError):
            await reader.poll(by=transaction)


class Copier(Worker):
    """Copies the committed records of its partition to the output, and commits its position in the same transaction."""

    _reader: Reader

    async def _begin_life(self) -> None:
        """Go back to the committed offset."""
        assert self._client.source is not None, "it is a copier"
        self._reader = Reader(self._reading, self._ledger, self._client.source)
        self._reader.position = max(0, await self._committed(self._client.source))

    async def _committed(self, place: TopicPartition) -> int:
        while True:
            try:
                return await committed_offset(self._reading, GROUP, place, stable=True)
            except KafkaError as error:
                if not error.code.retriable and error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    raise
            except ClientError:
                pass
            await asyncio.sleep(0.1)

    async def _fill(self, transaction: Transaction) -> None:
        records = await self._wait_records(transaction)
        if not records:
            return
        assert self._client.source is not None, "it is a copier"
        outputs = [place for place in self._around.clients.places if place[0] == OUTPUT]
        left = list(records)
        while left:
            count = self._random.randint(1, len(left))
            batch, left = left[:count], left[count:]
            await self._send(transaction, self._random.choice(outputs), [record.value for record in batch])
        sent_s = self._world.now_s
        offsets = {self._client.source: self._reader.position}
        transaction.offsets.update(offsets)
        await self._producer.commit_offsets(GROUP, offsets)
        self._ledger.offsets_acknowledged(transaction, sent_s)

    async def _wait_records(self, transaction: Transaction) -> list[Seen]:
        for _ in range(EMPTY_POLLS):
            with suppress(ClientError):
                found = await self._reader.poll(by=transaction)
                if found:
                    return found
            if self._around.is_fed():
                return []
            await self._pause()
        return []
