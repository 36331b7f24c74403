"""One run of a single broker with transactional clients: the broker is killed, loses power and starts again while they work."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.storage.files import Files
from barnabas.testing.simulation.auditor import AUDITOR
from barnabas.testing.simulation.clients import client_config
from barnabas.testing.simulation.faults import FaultInjector
from barnabas.testing.simulation.files import FaultyFiles
from barnabas.testing.simulation.history import Violation
from barnabas.testing.simulation.node import Node
from barnabas.testing.simulation.scenario import Incident
from barnabas.testing.simulation.simulated_run import SimulatedRun
from barnabas.testing.simulation.transactions.auditor import TransactionAuditor, count
from barnabas.testing.simulation.transactions.client_processes import ClientProcesses
from barnabas.testing.simulation.transactions.scenario import Clients, draw

RUN_LIMIT_S = 900.0
AUDITOR_LIMIT_S = 300.0
BLOWS = ("kill", "kill", "restart", "disconnect", "cleaner-dies")
FLUSHED_BLOWS = ("power-cut", "power-cut", "kill", "restart", "disconnect")


class TransactionSimulation(SimulatedRun):
    """One run.

    Args:
        seed: determines every choice.
        echo: print the events.
        wrap_files: wraps the broker's files, for canaries.
        adapt: changes the drawn scenario of the clients, for canaries.
    """

    name = "transactions"

    def __init__(
        self,
        seed: int,
        *,
        echo: bool = False,
        wrap_files: Callable[[FaultyFiles], Files] = lambda files: files,
        adapt: Callable[[Clients], None] = lambda _: None,
    ) -> None:
        super().__init__(seed, echo=echo)
        random = Random(seed ^ 0x7A25AC7)
        self._is_flushed = random.random() < 0.4
        self._incidents = [
            _incident(random, FLUSHED_BLOWS if self._is_flushed else BLOWS) for _ in range(random.choice((0, 1, 2, 4)))
        ]
        self.node = Node(self.world, 1, _properties(random, flushed=self._is_flushed), self._report, wrap_files=wrap_files)
        clients = draw(random)
        adapt(clients)
        self.client_processes = ClientProcesses(self.world, self.node.address, clients, random, self._report)
        self._audits = 0

    def is_over(self) -> bool:
        return self.client_processes.is_over()

    def _main(self) -> None:
        self._finish(self.node.start())
        self._finish(self._loop("admin").create_task(self._create_topics()))
        works = self.client_processes.start()
        fault_injector = FaultInjector(self, Random(self.random.getrandbits(64)))
        works.append(self._loop("fate").create_task(fault_injector.run(self._incidents)))
        self._work(works, RUN_LIMIT_S)
        if self.random.random() < 0.5:
            self._finish(self.node.stop())
            self.gone(self.node)
            self._finish(self.node.start())
        auditor = TransactionAuditor(self.world, self.node.address, self.client_processes)
        self._finish(self._loop(AUDITOR).create_task(auditor.decide()), AUDITOR_LIMIT_S)
        count(self.client_processes, self.counts)
        self._finish(self.node.stop())
        self.gone(self.node)

    def _end(self) -> None:
        self.node.kill()

    async def _create_topics(self) -> None:
        client = AsyncClient(client_config(self.node.address, "admin"))
        clients = self.client_processes.clients
        topics = [NewTopic(topic, count, 1, clients.configs[topic]) for topic, count in clients.partitions.items()]
        await client.create_topics(topics)
        await client.close()

    # --- for the fault injector

    async def audit(self, *, crashed: bool, may_lose_tail: bool) -> None:
        self._audits += 1
        loop = self._loop(f"{AUDITOR}-{self._audits}", AUDITOR)
        await self.elsewhere(loop.create_task(self._look()))

    async def _look(self) -> None:
        auditor = TransactionAuditor(self.world, self.node.address, self.client_processes)
        await auditor.look()
        await auditor.close()

    def rotten(self, folder: str) -> None:
        raise Violation(f"no bits rot in these runs, and {folder} has")

    def gone(self, node: Node) -> None:
        """The broker has stopped by itself."""
        left = node.gone()
        if left:
            raise Violation(f"the broker stopped and left {left} files open")


def _properties(random: Random, *, flushed: bool) -> dict[str, str]:
    properties = {
        "offsets.topic.num.partitions": str(random.randint(1, 2)),
        "transaction.state.log.num.partitions": str(random.randint(1, 2)),
        "log.flush.offset.checkpoint.interval.ms": random.choice(("200", "60000")),
        "replica.high.watermark.checkpoint.interval.ms": random.choice(("200", "1000")),
        "log.roll.ms": random.choice(("400", "3000", "100000")),
        "log.retention.check.interval.ms": random.choice(("300", "1000")),
        "log.segment.delete.delay.ms": random.choice(("0", "1000")),
        "log.cleaner.backoff.ms": random.choice(("50", "300", "2000")),
        "log.cleaner.min.cleanable.ratio": random.choice(("0.01", "0.5")),
        "auto.create.topics.enable": "false",
    }
    if flushed:
        properties["log.flush.interval.messages"] = "1"
    return properties


def _incident(random: Random, kinds: tuple[str, ...]) -> Incident:
    kind = random.choice(kinds)
    return Incident(
        kind,
        after_s=random.choice((0.1, 0.5, 2.0)) * (0.5 + random.random()),
        down_s=random.choice((0.01, 0.2, 3.0)),
        changes=random.choice((0, random.randint(1, 30))),
        again=random.choice((0, 0, 0, random.randint(1, 40))) if kind in ("kill", "power-cut") else 0,
    )
