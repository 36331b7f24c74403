"""The clients of a run as processes that are started, killed and paused; and the readers that run all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from msgspec import Struct

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.testing.simulation.clients import client_config
from barnabas.testing.simulation.loop import VirtualLoop, World, new_loop
from barnabas.testing.simulation.transactions.late_requests import LateRequests
from barnabas.testing.simulation.transactions.ledger import Ledger
from barnabas.testing.simulation.transactions.producer import OLDER, SECOND, TransactionalProducer
from barnabas.testing.simulation.transactions.reader import Reader
from barnabas.testing.simulation.transactions.scenario import KEYED, Client, Clients, Instance
from barnabas.testing.simulation.transactions.workers import Copier, Worker, WorkerContext, Writer

LOOKS_S = 0.25


def reading_config(address: str, client_id: str, *, patience_ms: int = 3_000) -> ClientConfig:
    """The settings of a client that reads committed records."""
    return replace(client_config(address, client_id, patience_ms=patience_ms), read_committed=True)


class Process(Struct):
    """One client's process."""

    loop: VirtualLoop
    task: asyncio.Task[None]

    @property
    def is_over(self) -> bool:
        return self.loop.dead or self.task.done()


class ClientProcesses:
    """All clients of a run.

    Args:
        addresses: the addresses of the brokers.
        report: called with errors that must not happen.
    """

    def __init__(self, world: World, addresses: str, clients: Clients, random: Random, report: Callable[[str], None]) -> None:
        self.clients = clients
        self.ledger = Ledger(clients.places, [KEYED])
        self.late_requests = LateRequests(world, clients.late_requests, report)
        self.readers: list[Reader] = []
        self._world = world
        self._addresses = addresses
        self._random = random
        self._report = report
        self._processes: list[Process] = []
        self._working = len(clients.clients)
        self._writing = sum(client.source is None for client in clients.clients)
        self._around = WorkerContext(world, self.ledger, clients, lambda: not self._writing)

    def is_over(self) -> bool:
        """Whether all clients except the readers are done."""
        return not self._working

    def start(self) -> list[asyncio.Task[None]]:
        """Start the clients; returns their tasks."""
        loop = self._loop("crew")
        tasks = [loop.create_task(self._live(client)) for client in self.clients.clients]
        tasks.append(loop.create_task(self._harm()))
        for config in (
            reading_config(self._addresses, "committed-reader"),
            client_config(self._addresses, "reader", patience_ms=3_000),
        ):
            loop = self._loop(config.client_id)
            client = AsyncClient(config)
            readers = [Reader(client, self.ledger, place) for place in self.clients.places]
            if config.read_committed:
                self.readers = readers
            random = Random(self._random.getrandbits(64))
            tasks += [loop.create_task(reader.follow(self.is_over, random)) for reader in readers]
        return tasks

    # --- lives of the processes

    async def _live(self, client: Client) -> None:
        began_s = self._world.now_s
        mine = []
        for number, how in enumerate(client.instances):
            await asyncio.sleep(max(0.0, began_s + how.after_s - self._world.now_s))
            mine.append(self._begin(client, number, how))
        while not all(process.is_over for process in mine):  # noqa: ASYNC110 - polling is cheap in virtual time
            await asyncio.sleep(LOOKS_S)
        self._working -= 1
        self._writing -= client.source is None
        for process in mine:
            if not process.loop.dead:
                process.task.result()

    def _begin(self, client: Client, number: int, how: Instance) -> Process:
        name = f"{client.transactional_id}.{number}"
        loop = self._loop(name)
        producer = TransactionalProducer(
            self._world,
            AsyncClient(client_config(self._addresses, name)),
            self.late_requests,
            client.transactional_id,
            SECOND if how.second else OLDER,
            timeout_ms=how.timeout_ms,
            patience_s=how.patience_s,
        )
        reading = AsyncClient(reading_config(self._addresses, f"{name}-reading"))
        kind: type[Worker] = Writer if client.source is None else Copier
        worker = kind(self._around, name, client, how, producer, reading, Random(self._random.getrandbits(64)))
        process = Process(loop, loop.create_task(worker.run()))
        self._processes.append(process)
        return process

    async def _harm(self) -> None:
        for harm in self.clients.harms:
            await asyncio.sleep(harm.after_s)
            alive = [process for process in self._processes if not process.is_over]
            if not alive:
                continue
            loop = self._random.choice(alive).loop
            self._world.note(f"{loop.name} {'dies' if harm.kills else 'stands still'}")
            if harm.kills:
                loop.die()
                self._world.network.process_died(loop, silently=False)
            else:
                loop.frozen_until_s = self._world.now_s + harm.while_s

    def _loop(self, name: str) -> VirtualLoop:
        return new_loop(self._world, name, name, self._report)
