"""One simulated run of two clusters with a mirror link.

How it works
  1. The source is a cluster as in `cluster.py`, with its clients, admins and faults. The target copies all of it, has faults of its own,
     and at times the clusters do not reach each other. A client tries to write to copies, another watches the offsets of groups.
  2. All is healed. Then each copy must have everything that its source has, and the groups their offsets. After a loss of power of the
     whole source, a copy may have stopped instead, because it has records that the source has lost.
  3. All topics are promoted while the target has faults again. Each partition gets a producer then.
  4. All is healed once more, and the auditor reads the target: it must have all records of the source, and those of the producers.

`oracle.py` looks at every batch that is committed in both clusters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from barnabas.client.asynchronous import AsyncClient
from barnabas.mirror.status import PREFIX, PartitionStatus, decode_partition
from barnabas.protocol.values import ResourceType
from barnabas.testing.simulation.auditor import AUDITOR, Auditor
from barnabas.testing.simulation.clients import ACKS_ALL, Producer, Producing, client_config
from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.cluster_faults import REST_LIMIT_S, ClusterFaultInjector
from barnabas.testing.simulation.cluster_invariants import InvariantChecker
from barnabas.testing.simulation.cluster_scenario import ClusterIncident
from barnabas.testing.simulation.convergence import compare_replicas, unrest
from barnabas.testing.simulation.history import Register, TopicPartition, Violation
from barnabas.testing.simulation.loop import Stuck, VirtualLoop
from barnabas.testing.simulation.mirroring import clients
from barnabas.testing.simulation.mirroring.oracle import Oracle
from barnabas.testing.simulation.mirroring.scenario import TARGET_BROKERS, Cut, MirrorScenario, draw_mirror
from barnabas.testing.simulation.mirroring.side import TargetSide

if TYPE_CHECKING:
    from barnabas.replication.partition import OnlinePartition
    from barnabas.testing.simulation.node import Node

COPYING_LIMIT_S, PROMOTION_LIMIT_S = 900.0, 600.0
CUT_BEFORE_PROMOTION_S = 3.0
STOPPED = "stopped"


class MirrorSimulation(ClusterSimulation):
    """One run.

    Args:
        seed: determines every choice.
        echo: print the events.
        adapt: changes the drawn scenario, for canaries.
    """

    def __init__(self, seed: int, *, echo: bool = False, adapt: Callable[[MirrorScenario], None] = lambda _: None) -> None:
        drawn = draw_mirror(Random(seed ^ 0x3A1770))
        adapt(drawn)
        super().__init__(seed, echo=echo, scenario=drawn.source)
        self.name = f"mirror, {drawn.source.kind}"
        self.drawn = drawn
        self.target = TargetSide(self, drawn.target, TARGET_BROKERS, self._report)
        self.bystanders = tuple(node.host for node in self.target.nodes)
        self.oracle = Oracle({key: self.histories[key].compacted for key in self.lasting})
        self.early = drawn.source.topics[0].name if drawn.early_s >= 0 else ""
        self.stopped: dict[TopicPartition, str] = {}
        self._hosts = {node.host: (node, self.oracle.look_at_source) for node in self.nodes}
        self._hosts |= {node.host: (node, self.oracle.look_at_target) for node in self.target.nodes}
        self._target_checker = InvariantChecker(self.target)
        self._target_faults = ClusterFaultInjector(self.target, Random(self.random.getrandbits(64)))
        if drawn.source.kind == "blackout":
            self.logged_errors.excuse("mirror")

    # --- the course of the run

    def _main(self) -> None:
        for node in (*self.nodes, *self.target.nodes):
            self._finish(node.start())
        self._finish(self._loop("admin").create_task(self._create_topics()))
        self._finish(self._loop("linker").create_task(self._link()))
        works = [*self._clients(), *self._admins(), *self._watchers()]
        works.append(self._loop("fate").create_task(self._befall()))
        works.append(self._loop("target-fate").create_task(self._target_faults.run(self.drawn.target.incidents)))
        works.append(self._loop("between").create_task(self._cut(self.drawn.cuts)))
        self._work(works, COPYING_LIMIT_S)
        self._rest()
        self._examine()
        self._rest()
        self._rest_target()
        self._finish(self._loop("waiter").create_task(self._wait_for_copies()), REST_LIMIT_S)
        self._promote_all()
        self._rest_target()
        self._examine_target()
        self._rest()
        self._rest_target()  # leaders may have moved to the preferred replicas in the meantime
        for nodes in (self.nodes, self.target.nodes):
            compare_replicas(nodes)
        for node in (*self.nodes, *self.target.nodes):
            self._finish(node.stop())
            self.gone(node)
        self.counts["copied"], self.counts["stopped"] = self.oracle.copied, len(self.stopped)

    async def _befall(self) -> None:
        if self.scenario.kind == "blackout":
            self.oracle.power_lost()
        await super()._befall()

    def _after(self, loop: VirtualLoop | None) -> None:
        super()._after(loop)
        if loop is None:
            return
        self._target_checker.look(loop)
        found = self._hosts.get(loop.host)
        if found is not None and found[0].process is not None and found[0].process.loop is loop:
            found[1](found[0])

    def _end(self) -> None:
        super()._end()
        for node in self.target.nodes:
            node.kill()

    def _rest_target(self) -> None:
        try:
            self._finish(self._loop("target-healer").create_task(self._heal_target()), REST_LIMIT_S)
        except Stuck as stuck:
            raise Stuck(f"{stuck}, for {unrest(self.target.nodes)}") from stuck

    async def _heal_target(self) -> None:
        self._target_faults.heal()
        for node in self.target.nodes:
            await self._target_faults.bring_back(node)
        await self.until(self.target.is_at_rest)

    # --- the copies

    def _target_client(self, name: str) -> tuple[VirtualLoop, AsyncClient]:
        return self._loop(name), AsyncClient(client_config(self.target.addresses, name))

    async def _link(self) -> None:
        client = AsyncClient(client_config(self.target.addresses, "linker"))
        settings = {
            "bootstrap.servers": self.addresses,
            "topics": "t.*",
            "refresh.topics.interval.seconds": "1",
            "sync.group.offsets.interval.seconds": "1",
        }
        await clients.alter(client, ResourceType.LINK, clients.LINK, settings)
        await client.close()

    def _watchers(self) -> list[asyncio.Task[None]]:
        random = Random(self.random.getrandbits(64))
        loop, client = self._target_client("intruder")
        places = [key for key in self.lasting if key[0] != self.early]
        works = (
            [loop.create_task(clients.intrude(self.world, client, places or self.lasting, self.is_over, random))]
            if places
            else []
        )
        loop, client = self._target_client("watcher")
        works.append(loop.create_task(clients.watch_groups(client, self._copied_groups(), self.oracle, self.is_over)))
        if self.early:
            loop, client = self._target_client("early-promoter")
            works.append(loop.create_task(self._promote_early(client)))
        return works

    def _copied_groups(self) -> dict[TopicPartition, Register]:
        return {key: group for key, group in self.groups.items() if key[0] != self.early}

    async def _cut(self, cuts: list[Cut]) -> None:
        for cut in cuts:
            await self._go_on_for(cut.after_s)
            if self.is_over():
                return
            self._block(cut.ways)
            await self._go_on_for(cut.while_s)
            self.world.network.heal()

    async def _go_on_for(self, seconds: float) -> None:
        """Let everything go on for a span of the plan, or until the clients are done."""
        end_s = self.world.now_s + seconds
        await self.until(lambda: self.world.now_s >= end_s or self.is_over())

    def _block(self, ways: str) -> None:
        for one in self.nodes:
            for other in self.target.nodes:
                if ways != "answers":
                    self.world.network.block(other.host, one.host)
                if ways != "requests":
                    self.world.network.block(one.host, other.host)

    async def _wait_for_copies(self) -> None:
        """Until each copy has everything, or has stopped with a right to do so; then until the groups have their offsets."""
        missing = ["nothing was looked at"]

        def is_complete() -> bool:
            missing[:] = [text for key in self.lasting if key[0] != self.early and (text := self._missing(key))]
            return not missing

        try:
            async with asyncio.timeout(REST_LIMIT_S / 2):
                await self.until(is_complete)
        except TimeoutError:
            raise Violation(f"a copy is not complete: {missing[0]}") from None
        source = AsyncClient(client_config(self.addresses, "comparer"))
        target = AsyncClient(client_config(self.target.addresses, "comparer"))
        groups = {key: group for key, group in self.groups.items() if key[0] != self.early and key not in self.stopped}
        await clients.wait_for_groups(source, target, groups, self.oracle)
        await source.close()
        await target.close()

    def _missing(self, key: TopicPartition) -> str:
        """The reason why a copy is not complete; "" if it is, or has stopped."""
        theirs = next((p for node in self.nodes if (p := self._led_by(node, key)) is not None), None)
        if theirs is None:
            return f"{key} has no leader in the source"
        for node in self.target.nodes:
            ours = self._led_by(node, key)
            if ours is None:
                continue
            status = self._status(node, key)
            if status is not None and status.state == STOPPED:
                if not self.oracle.is_torn(key):
                    raise Violation(f"the copy {key} stopped: {status.reason}")
                self.stopped[key] = status.reason
                return ""
            bounds = (ours.log.log_start_offset, ours.high_watermark), (theirs.log.log_start_offset, theirs.high_watermark)
            is_equal = bounds[0][1] == bounds[1][1] and bounds[0][0] >= bounds[1][0]
            return "" if is_equal else f"{key} is {bounds[0]}, and {bounds[1]} in the source; its status is {status}"
        return f"{key} has no leader in the target"

    @staticmethod
    def _led_by(node: Node, key: TopicPartition) -> OnlinePartition | None:
        process = node.process
        found = None if process is None else process.broker.partitions.get(*key)
        return found if found is not None and not found.is_offline and found.is_leader else None

    @staticmethod
    def _status(node: Node, key: TopicPartition) -> PartitionStatus | None:
        process = node.process
        assert process is not None, "it leads"
        text = process.broker.mirrors.status(clients.LINK).get(f"{PREFIX}{key[0]}-{key[1]}")
        return None if text is None else decode_partition(text)

    # --- promotion

    async def _promote_early(self, client: AsyncClient) -> None:
        await self._go_on_for(self.drawn.early_s)
        await self._promote(client, self.early, now=True)

    async def _promote(self, client: AsyncClient, topic: str, *, now: bool) -> None:
        count = sum(key[0] == topic for key in self.lasting)
        await clients.promote(client, [node.number for node in self.target.nodes], topic, count, self._told, now=now)
        self.world.note(f"{topic} is promoted")

    def _told(self, key: TopicPartition, end: int) -> None:
        self.oracle.partitions[key].told = max(self.oracle.partitions[key].told, end)

    def _promote_all(self) -> None:
        stopped = {key[0] for key in self.stopped}
        topics = [topic.name for topic in self.scenario.topics if topic.name != self.early and topic.name not in stopped]
        works = self._write_behind_a_cut(topics) if self.drawn.is_hasty else []
        for number, topic in enumerate(topics):
            loop, client = self._target_client(f"promoter-{number}")
            works.append(loop.create_task(self._promote_and_write(client, topic)))
        self._producing = len(topics)
        incidents: list[ClusterIncident] = self.drawn.later.incidents if topics else []
        works.append(self._loop("later-fate").create_task(self._target_faults.run(incidents)))
        self._work(works, PROMOTION_LIMIT_S)

    def _write_behind_a_cut(self, topics: list[str]) -> list[asyncio.Task[None]]:
        """Write to the source while the clusters do not reach each other; returns the task that ends this during the promotion."""
        self._block("both")
        how = Producing(idempotent=True, acks=ACKS_ALL, batches=2, pause_s=0.1, value_bytes=20)
        keys = [key for key in self.lasting if key[0] in topics]
        self._work([self.produce(200 + number, key, self._suiting(how, key)) for number, key in enumerate(keys)], COPYING_LIMIT_S)

        async def heal() -> None:
            await self._go_on_for(CUT_BEFORE_PROMOTION_S)
            self.world.network.heal()

        return [self._loop("healer-between").create_task(heal())]

    def _suiting(self, how: Producing, key: TopicPartition) -> Producing:
        return replace(how, keys=2 if self.histories[key].compacted else 0)

    async def _promote_and_write(self, client: AsyncClient, topic: str) -> None:
        await self._promote(client, topic, now=False)
        writers = self.drawn.writers
        if writers is not None:
            for number, key in enumerate(key for key in self.lasting if key[0] == topic):
                self._join_work(self._write(f"writer-{topic}-{number}", key))
        self._producing -= 1

    def _write(self, name: str, key: TopicPartition) -> asyncio.Task[None]:
        loop, client = self._target_client(name)
        assert self.drawn.writers is not None
        self._producing += 1
        how = self._suiting(self.drawn.writers, key)
        producer = Producer(self.world, client, name, *key, self.histories[key], how)
        return loop.create_task(self._until_done(producer.run()))

    def _examine_target(self) -> None:
        for key in self.lasting:
            found = [p for node in self.target.nodes if (p := self._led_by(node, key)) is not None]
            for partition in found:
                self.oracle.check_told(key, partition.high_watermark)
        self._finish(self._loop(AUDITOR).create_task(self._read_target()))

    async def _read_target(self) -> None:
        auditor = Auditor(self.world, self.target.addresses, crashed=True, may_lose_tail=False)
        left = {topic for topic, _ in self.stopped} | {self.early}
        await auditor.read_partitions({key: history for key, history in self.histories.items() if key[0] not in left})
        await auditor.close()
