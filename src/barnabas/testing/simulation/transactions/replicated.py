"""One run of a cluster with transactional clients: the faults are those of any cluster in the simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from barnabas.testing.simulation.auditor import AUDITOR
from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.cluster_scenario import ClusterScenario, draw_cluster
from barnabas.testing.simulation.scenario import Topic
from barnabas.testing.simulation.transactions.auditor import TransactionAuditor, count
from barnabas.testing.simulation.transactions.client_processes import ClientProcesses
from barnabas.testing.simulation.transactions.scenario import Clients, draw

AUDITOR_LIMIT_S = 300.0
KINDS = ("faults",) * 9 + ("flushed",)
ADMINS = ("reassign", "elect")
COORDINATORS = [("__transaction_state", 0), ("__consumer_offsets", 0)]


class ReplicatedTransactions(ClusterSimulation):
    """One run.

    Args:
        seed: determines every choice.
        echo: print the events.
        adapt: changes the drawn scenario of the cluster and its clients, for canaries.
    """

    def __init__(
        self, seed: int, *, echo: bool = False, adapt: Callable[[ClusterScenario, Clients], None] = lambda *_: None
    ) -> None:
        random = Random(seed ^ 0x7A25AC8)
        clients = draw(random, patient=True)
        scenario = _scenario(random, clients)
        adapt(scenario, clients)
        super().__init__(seed, echo=echo, scenario=scenario)
        self.name = f"transactions in a cluster, {scenario.kind}"
        self.lasting += COORDINATORS
        self.client_processes = ClientProcesses(self.world, self.addresses, clients, random, self._report)

    def is_over(self) -> bool:
        return self.client_processes.is_over()

    def _clients(self) -> list[asyncio.Task[None]]:
        return self.client_processes.start()

    def _examine(self) -> None:
        auditor = TransactionAuditor(self.world, self.addresses, self.client_processes)
        self._finish(self._loop(AUDITOR).create_task(auditor.decide()), AUDITOR_LIMIT_S)
        count(self.client_processes, self.counts)

    async def _read_all(self, *, may_lose_tail: bool) -> None:
        auditor = TransactionAuditor(self.world, self.addresses, self.client_processes)
        await auditor.look()
        await auditor.close()


def _scenario(random: Random, clients: Clients) -> ClusterScenario:
    scenario = draw_cluster(random, random.choice(KINDS))
    scenario.properties |= {
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "log.roll.ms": random.choice(("1000", "100000")),
    }
    scenario.topics = [Topic(topic, number, clients.configs[topic]) for topic, number in clients.partitions.items()]
    scenario.producers.clear()
    scenario.members.clear()
    scenario.churned = None
    scenario.admins = {name: pause_s for name, pause_s in scenario.admins.items() if name in ADMINS}
    if not all(how.second for client in clients.clients for how in client.instances):
        for incident in scenario.incidents:
            if incident.kind == "linger":
                incident.kind = "disconnect"  # the older flow does not tolerate a delayed request to end a transaction
    return scenario
