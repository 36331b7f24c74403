"""One simulated run of a cluster: several brokers on one ZooKeeper, their clients, and an unreliable network.

How it works: as with a single broker (`simulation.py`), but the clients do not stop after a fault: they continue all the time.
`cluster_invariants.py` checks the cluster after every event. At the end the simulation removes all faults and starts
everything. Then the cluster must converge: all replicas in sync and equal (`convergence.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

from barnabas.client.results import NewTopic
from barnabas.errors import ErrorCode
from barnabas.testing.simulation import admins, cluster_admins
from barnabas.testing.simulation.auditor import AUDITOR, Auditor
from barnabas.testing.simulation.cluster_faults import LOOKS_S, REST_LIMIT_S, ClusterFaultInjector
from barnabas.testing.simulation.cluster_invariants import InvariantChecker
from barnabas.testing.simulation.cluster_scenario import (
    BROKER_SETTINGS,
    MIN_IN_SYNC,
    REPLICAS,
    TUNED,
    ClusterScenario,
    draw_cluster,
)
from barnabas.testing.simulation.convergence import compare_replicas, is_at_rest, stray_folders, unrest
from barnabas.testing.simulation.ensemble import Ensemble
from barnabas.testing.simulation.group_history import GroupHistory
from barnabas.testing.simulation.history import Register, TopicPartition, Violation
from barnabas.testing.simulation.loop import Stuck, VirtualLoop
from barnabas.testing.simulation.members import GROUP, Member
from barnabas.testing.simulation.node import Node
from barnabas.testing.simulation.scenario import Topic
from barnabas.testing.simulation.workload import READERS_PATIENCE_MS, Workload

RUN_LIMIT_S = 900.0


class ClusterSimulation(Workload):
    """One run of a cluster.

    Args:
        scenario: drawn from the seed if None.
    """

    def __init__(self, seed: int, *, echo: bool = False, scenario: ClusterScenario | None = None) -> None:
        scenario = scenario or draw_cluster(Random(seed ^ 0xC1057E2))
        super().__init__(seed, echo=echo, flushed=scenario.flushed)
        self.scenario = scenario
        self.name = f"cluster, {scenario.kind}"
        self.ensemble = Ensemble(self.world, scenario.session_timeout_s)
        self.nodes = [
            Node(self.world, number, scenario.properties, self._report, ensemble=self.ensemble, directories=scenario.directories)
            for number in range(1, scenario.brokers + 1)
        ]
        for topic in scenario.topics:
            self.keep_books(topic, replicated=True, defaults={"min.insync.replicas": str(MIN_IN_SYNC)})
        self.places: dict[TopicPartition, Register] = {}
        self.book = GroupHistory(GROUP)
        self.bystanders: tuple[str, ...] = ()
        self._invariant_checker = InvariantChecker(self)
        self.fault_injector = ClusterFaultInjector(self, Random(self.random.getrandbits(64)))

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def is_at_rest(self) -> bool:
        return is_at_rest(self.nodes)

    def report_violation(self, violation: Violation) -> None:
        """End the run with this violation."""
        self._failed = self._failed or violation

    # --- the course of the run

    def _main(self) -> None:
        for node in self.nodes:
            self._finish(node.start())
        self._finish(self._loop("admin").create_task(self._create_topics()))
        works = [*self._clients(), *self._admins()]
        works.append(self._loop("fate").create_task(self._befall()))
        self._work(works, RUN_LIMIT_S)
        self._rest()
        self._examine()
        self._rest()  # leaders may have moved to the preferred replicas in the meantime
        compare_replicas(self.nodes)
        self._check_places()
        for node in self.nodes:
            self._finish(node.stop())
            self.gone(node)

    def _clients(self) -> list[asyncio.Task[None]]:
        """Start the producers and consumers; returns their tasks."""
        return [
            *(self.produce(number, key, how) for number, (key, how) in enumerate(self.scenario.producers)),
            *(self.consume(number, key) for number, key in enumerate(self.lasting)),
            *(self._share(number, instance_id) for number, instance_id in enumerate(self.scenario.members)),
        ]

    def _share(self, number: int, instance_id: str | None) -> asyncio.Task[None]:
        """A member of the group that shares all partitions."""
        loop, client = self.client(f"member-{number}", READERS_PATIENCE_MS)
        member = Member(self.world, client, self.book, self.histories, self.lasting, self.is_over, instance_id)
        return loop.create_task(member.run())

    def _examine(self) -> None:
        """Read all partitions, now that the cluster is at rest."""
        self._finish(self._loop(AUDITOR).create_task(self._read_all(may_lose_tail=False)))
        self.counts["records"] = sum(len(history.values) for history in self.histories.values())
        self.counts["generations"], self.counts["fenced_commits"] = len(self.book.owners), self.book.refused
        self.counts["lost_tail"] = sum(history.tail_losses for history in self.histories.values())

    def _rest(self) -> None:
        try:
            self._finish(self._loop("healer").create_task(self._come_to_rest()), REST_LIMIT_S)
        except Stuck as stuck:
            strays = "" if any(node.process is None for node in self.nodes) else stray_folders(self.nodes)
            raise Stuck(f"{stuck}, for {unrest(self.nodes) or strays}") from stuck

    def _after(self, loop: VirtualLoop | None) -> None:
        if loop is not None:
            self._invariant_checker.look(loop)

    def _end(self) -> None:
        for node in self.nodes:
            node.kill()

    async def _befall(self) -> None:
        await self.fault_injector.run(self.scenario.incidents)

    async def _create_topics(self) -> None:
        _, client = self.client("admin")
        for topic in self.scenario.topics:
            wanted = NewTopic(topic.name, topic.partitions, REPLICAS, topic.configs)
            await admins.until_done(partial(client.create_topics, [wanted]), ErrorCode.TOPIC_ALREADY_EXISTS)
        await client.close()

    # --- admins

    def _admins(self) -> list[asyncio.Task[None]]:
        tasks = []
        for name, pause_s in self.scenario.admins.items():
            loop, admin = self.admin(name, pause_s)
            tasks.append(loop.create_task(self._administrate(name, admin)))
        if self.scenario.churned is not None:
            topic, how = self.scenario.churned
            loop, admin = self.admin("churn", how.pause_s)

            def make(name: str, topic: Topic = topic) -> Any:
                return self.history(topic, name, replicated=True)

            tasks.append(loop.create_task(admins.churn(admin, topic.name, topic.configs, how, make, replicas=REPLICAS)))
        return tasks

    async def _administrate(self, name: str, admin: admins.Admin) -> None:
        brokers = [node.number for node in self.nodes]
        match name:
            case "reassign":
                await cluster_admins.reassign(admin, brokers, self.places)
            case "elect":
                await cluster_admins.elect(admin)
            case "delete-records":
                await admins.delete_records(admin)
            case "tune":
                await admins.tune(admin, self.settings, TUNED)
            case "tune-brokers":
                await cluster_admins.tune_brokers(admin, brokers, BROKER_SETTINGS, self.settings)
            case "enlarge":
                topic = self.scenario.topics[0]
                await cluster_admins.enlarge(admin, topic.name, topic.partitions, lambda index: self._use(topic, index))

    def _use(self, topic: Topic, index: int) -> None:
        """A partition was added: start a producer and a consumer for it."""
        self.keep_book(topic, index, replicated=True)
        key, number = (topic.name, index), 100 + index
        first, added = self.histories[topic.name, 0], self.histories[key]
        # an admin may have changed the retention
        added.retention_ms, added.retention_bytes = first.retention_ms, first.retention_bytes
        self._join_work(self.produce(number, key, self.scenario.producers[0][1]))
        self._join_work(self.consume(number, key))

    # --- the end of the run, and methods for the fault injector

    def start_elsewhere(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start `work` in a process of its own; if it fails, the run fails."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._note_failure)
        return task

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failed = self._failed or task.exception()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - polling is cheap in virtual time
            await asyncio.sleep(LOOKS_S)

    async def _come_to_rest(self) -> None:
        self.world.note("all is healed")
        self.fault_injector.heal()
        for node in self.nodes:
            await self.fault_injector.bring_back(node)
        await self.until(lambda: self.is_at_rest() and not stray_folders(self.nodes))

    async def audit(self, *, may_lose_tail: bool) -> None:
        """Audit in the middle of a run, while no client may connect."""
        self._audits += 1
        loop = self._loop(f"{AUDITOR}-{self._audits}", AUDITOR)
        await self.elsewhere(loop.create_task(self._read_all(may_lose_tail=may_lose_tail)))

    async def _read_all(self, *, may_lose_tail: bool) -> None:
        auditor = Auditor(self.world, self.addresses, crashed=True, may_lose_tail=may_lose_tail)
        await auditor.read_partitions(self.histories)
        await auditor.read_groups(self.groups, flushed=self.flushed)
        await auditor.read_members(self.book, self.histories)
        if "tune" in self.scenario.admins:
            await auditor.read_settings(self.settings)
        await auditor.close()

    def _check_places(self) -> None:
        """Check that the last confirmed change is the current state."""
        process = self.nodes[0].process
        assert process is not None, "at rest"
        for (topic, index), place in self.places.items():
            state = process.broker.metadata.partition(topic, index)
            assert state is not None, "topics that are moved stay"
            if place.acknowledged:
                place.read(cluster_admins.text_of(state.replicas))
