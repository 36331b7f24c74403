"""One simulated run of a cluster: several brokers on one ZooKeeper, their clients, and a network that does not hold.

How it works: as with a single broker (`simulation.py`), but nobody is kept out after a blow: clients go on all the time. At the end
everything is healed and started, and the cluster has to come to rest: all replicas in sync, and byte for byte the same.

Rules of the blows, so that what was acknowledged by all in sync must stay (`min.insync.replicas` is 2 of 3)
  1. Processes are killed, frozen and cut off as it comes, several at a time.
  2. One machine loses what its disk had not synced, and no other before the cluster has come to rest since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.testing.simulation.audit import AUDITOR, Auditor
from barnabas.testing.simulation.clients import Consumer, Producer, Producing, client_config
from barnabas.testing.simulation.course import Course
from barnabas.testing.simulation.ensemble import Ensemble
from barnabas.testing.simulation.history import PartitionHistory, Register, TopicPartition, Violation
from barnabas.testing.simulation.node import Node

BROKERS = 3
TOPIC = "t"
RUN_LIMIT_S = 900.0
REST_LIMIT_S = 180.0
LOOKS_S = 0.05
BLOWS = ("kill", "kill", "restart", "power-cut", "freeze", "isolate", "one-way", "cut-off", "expire", "lose-reply", "disconnect")


class ClusterSimulation(Course):
    """One run of a cluster.

    Args:
        blows: what may befall it, some of BLOWS.
    """

    name = "cluster"

    def __init__(self, seed: int, *, echo: bool = False, blows: Sequence[str] = BLOWS) -> None:
        super().__init__(seed, echo=echo)
        self._blows = blows
        random = self._draw = Random(seed ^ 0xC1057E2)
        timeout_s = random.choice((3.0, 9.0))
        self.ensemble = Ensemble(self.world, timeout_s)
        properties = {
            "zookeeper.session.timeout.ms": str(int(timeout_s * 1000)),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": str(BROKERS),
            "default.replication.factor": str(BROKERS),
            "min.insync.replicas": "2",
            "replica.lag.time.max.ms": random.choice(("1000", "5000")),
            "replica.high.watermark.checkpoint.interval.ms": random.choice(("200", "2000")),
            "log.flush.offset.checkpoint.interval.ms": random.choice(("200", "60000")),
            "auto.create.topics.enable": "false",
        }
        self.nodes = [
            Node(self.world, number, properties, self._report, ensemble=self.ensemble) for number in range(1, BROKERS + 1)
        ]
        self.histories: dict[TopicPartition, PartitionHistory] = {
            (TOPIC, index): PartitionHistory(f"{TOPIC}-{index}", replicated=True) for index in range(random.randint(1, 3))
        }
        self.groups = {key: Register(f"the offset of group-{key[1]}", ["-1"]) for key in self.histories}
        self._leaders: dict[tuple[str, int, int], int] = {}
        self._producing = 0
        self._has_lost = False  # a machine has lost power, and the cluster was not at rest since

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def is_over(self) -> bool:
        return not self._producing

    # --- the course of it

    def _main(self) -> None:
        for node in self.nodes:
            self._finish(node.start())
        self._finish(self._loop("admin").create_task(self._create_topic()))
        works = [*self._producers(), *self._consumers(), self._loop("fate").create_task(self._fate())]
        works.append(self._loop("watchman").create_task(self._watch()))
        self._work(works, RUN_LIMIT_S)
        self._finish(self._loop("healer").create_task(self._come_to_rest()), REST_LIMIT_S)
        self._finish(self._loop(AUDITOR).create_task(self._audit()))
        self._compare_replicas()
        self.counts["records"] = sum(len(history.values) for history in self.histories.values())
        for node in self.nodes:
            self._finish(node.stop())
            left = node.gone()
            if left:
                raise Violation(f"{node.host} stopped and left {left} files open")

    def _end(self) -> None:
        for node in self.nodes:
            node.kill()

    async def _create_topic(self) -> None:
        client = AsyncClient(client_config(self.addresses, "admin"))
        topic = NewTopic(TOPIC, len(self.histories), BROKERS, {"segment.ms": "2000", "retention.ms": "-1"})
        while True:
            try:
                await client.create_topics([topic])
            except KafkaError as error:  # not all brokers are known everywhere yet
                if error.code is not ErrorCode.INVALID_REPLICATION_FACTOR:
                    raise
                await asyncio.sleep(LOOKS_S)
            else:
                break
        await client.close()

    def _producers(self) -> list[asyncio.Task[None]]:
        tasks = []
        for number, key in enumerate(sorted(self.histories) * self._draw.randint(1, 2)):
            loop = self._loop(f"producer-{number}")
            client = AsyncClient(client_config(self.addresses, loop.name))
            how = Producing(
                idempotent=self._draw.random() < 0.7,
                acks=-1,
                batches=self._draw.randint(15, 40),
                pause_s=self._draw.choice((0.2, 1.0)),
                value_bytes=self._draw.choice((20, 500)),
            )
            producer = Producer(self.world, client, f"p{number}", *key, self.histories[key], how)
            self._producing += 1
            tasks.append(loop.create_task(self._until_done(producer.run())))
        return tasks

    async def _until_done(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._producing -= 1

    def _consumers(self) -> list[asyncio.Task[None]]:
        tasks = []
        for number, (key, history) in enumerate(self.histories.items()):
            loop = self._loop(f"consumer-{number}")
            client = AsyncClient(client_config(self.addresses, loop.name, patience_ms=3_000))
            consumer = Consumer(self.world, client, *key, history, self.groups[key], self.is_over)
            tasks.append(loop.create_task(consumer.run()))
        return tasks

    # --- what befalls it

    async def _fate(self) -> None:
        random = self._draw
        for _ in range(random.randint(2, 6)):
            await asyncio.sleep(random.choice((0.3, 2.0, 8.0)) * (0.5 + random.random()))
            if self.is_over():
                return
            kind, node = random.choice(self._blows), random.choice(self.nodes)
            if kind == "power-cut" and self._has_lost:
                kind = "kill"
            self.world.note(f"fate: {kind} {node.host}")
            self.counts[kind] = self.counts.get(kind, 0) + 1
            await self._strike(kind, node, random.choice((0.1, 1.0, 12.0)) * (0.5 + random.random()))

    async def _strike(self, kind: str, node: Node, while_s: float) -> None:
        match kind:
            case "kill" | "power-cut":
                await self._kill(node, while_s, power=kind == "power-cut")
            case "restart":
                if node.process is not None and node.process.broker.ready:
                    await self.elsewhere(node.stop())
                    node.gone()
                    await self._bring_back(node)
            case "freeze":
                if node.process is not None:
                    node.process.loop.frozen_until_s = self.world.now_s + while_s
            case "isolate" | "one-way":
                await self._part(node, while_s, everywhere=kind == "isolate")
            case "cut-off":
                self.ensemble.cut_off(node.host)
                await self._later(while_s, partial(self._reconnect, node))
            case "expire":
                self.ensemble.expire(node.host)
            case "lose-reply":
                self.ensemble.lose_reply(node.host)
            case "disconnect":
                ends = self.world.network.connections(node.host)
                if ends:
                    self.world.network.cut(self._draw.choice(ends))

    async def _kill(self, node: Node, while_s: float, *, power: bool) -> None:
        self._has_lost = self._has_lost or power
        node.kill(power=power)
        await self._later(while_s, partial(self._bring_back, node))

    async def _part(self, node: Node, while_s: float, *, everywhere: bool) -> None:
        """Brokers do not reach each other; clients and ZooKeeper reach them all."""
        network = self.world.network
        others = [other.host for other in self.nodes if other is not node]
        if everywhere:
            for other in others:
                network.block(node.host, other)
                network.block(other, node.host)
        else:
            network.block(node.host, self._draw.choice(others))
        await self._later(while_s, self._heal_network)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - in virtual time looking costs little
            await asyncio.sleep(LOOKS_S)

    async def _later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have `work` done in a while, and go on with the next blow perhaps before."""

        async def wait_and_work() -> None:
            await asyncio.sleep(seconds)
            await work()

        task = asyncio.get_running_loop().create_task(wait_and_work())
        task.add_done_callback(self._failed_with)
        if self._draw.random() < 0.6:
            await task

    def _failed_with(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failed = self._failed or task.exception()

    async def _heal_network(self) -> None:
        self.world.network.heal()

    async def _reconnect(self, node: Node) -> None:
        self.ensemble.reconnect(node.host)

    async def _bring_back(self, node: Node) -> None:
        """Start the broker; while its former session lives, or without ZooKeeper, it ends again, and a supervisor tries once more."""
        while node.process is None:
            starting = node.start()
            try:
                await self.elsewhere(starting)
            except (BarnabasError, OSError) as error:
                self.world.note(f"{node.host} does not start: {error}")
                node.kill()
                await asyncio.sleep(1.0)

    # --- what must hold

    async def _watch(self) -> None:
        """At most one leader for each partition and epoch."""
        while not self.is_over():
            self._has_lost = self._has_lost and not self._is_at_rest()
            for node in self.nodes:
                if node.process is not None and not node.process.files.dead:
                    for partition in node.process.broker.partitions:
                        if partition.is_leader:
                            term = partition.topic, partition.index, partition.leader_epoch
                            leader = self._leaders.setdefault(term, node.number)
                            if leader != node.number:
                                raise Violation(f"brokers {leader} and {node.number} both lead {term}")
            await asyncio.sleep(LOOKS_S)

    def _is_at_rest(self) -> bool:
        """Whether all brokers are there, know the same leaders, and all replicas are in sync."""
        images = []
        for node in self.nodes:
            if node.process is None or not node.process.broker.ready:
                return False
            images.append(node.process.broker.metadata)
        for name, index in self.histories:
            states = [image.partition(name, index) for image in images]
            if any(state is None or state.leader < 0 or len(state.isr) < BROKERS for state in states):
                return False
            if len({(state.leader, state.leader_epoch) for state in states if state is not None}) > 1:
                return False
        return True

    async def _come_to_rest(self) -> None:
        self.world.note("all is healed")
        self.world.network.heal()
        for node in self.nodes:
            self.ensemble.reconnect(node.host)
            if node.process is not None:
                node.process.loop.frozen_until_s = 0.0
        for node in self.nodes:
            await self._bring_back(node)
        await self._until(lambda: self._is_at_rest() and len({tuple(self._ends(node)) for node in self.nodes}) == 1)

    def _ends(self, node: Node) -> list[tuple[int, int]]:
        found = []
        for key in self.histories:
            partition = None if node.process is None else node.process.broker.partitions.get(*key)
            if partition is not None and not partition.is_offline:
                found.append((partition.log.log_end_offset, partition.high_watermark))
        return found

    async def _audit(self) -> None:
        auditor = Auditor(self.world, self.addresses, crashed=True, may_lose_tail=False)
        await auditor.read_partitions(self.histories)
        await auditor.read_groups(self.groups, flushed=True)
        await auditor.close()

    def _compare_replicas(self) -> None:
        """Below the high watermark, which is the end by now, all replicas are the same bytes."""
        for name, index in self.histories:
            copies = {}
            for node in self.nodes:
                folder = f"{name}-{index}"
                data = [
                    bytes(f.data) for path, f in node.disk.files() if path.parent.name == folder and path.suffix == LOG_SUFFIX
                ]
                copies[node.host] = b"".join(data)
            if len(set(copies.values())) > 1:
                sizes = {host: len(data) for host, data in copies.items()}
                raise Violation(f"{name}-{index} is not the same everywhere: {sizes}")
