"""A run with clients: producers, consumers and admins, and the records of their answers.

The common part of runs with a single broker and with a cluster. Each client is a process of its own, with a loop and
connections of its own.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine
from random import Random
from typing import Any

from barnabas.client.asynchronous import AsyncClient
from barnabas.testing.simulation.admins import Admin
from barnabas.testing.simulation.clients import Consumer, Producer, Producing, client_config
from barnabas.testing.simulation.history import PartitionHistory, Register, TopicPartition, Violation
from barnabas.testing.simulation.loop import VirtualLoop
from barnabas.testing.simulation.node import Node
from barnabas.testing.simulation.scenario import Topic
from barnabas.testing.simulation.simulated_run import SimulatedRun

READERS_PATIENCE_MS = 3_000
DEFAULTS = {
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.ms": "604800000",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "index.interval.bytes": "4096",
    "min.insync.replicas": "1",
}  # defaults of the settings that `admins.tune` changes


class Workload(SimulatedRun):
    """A run with clients.

    Args:
        flushed: every topic has flush.messages=1.
    """

    def __init__(self, seed: int, *, echo: bool = False, flushed: bool = False) -> None:
        super().__init__(seed, echo=echo)
        self.flushed = flushed
        self.histories: dict[TopicPartition, PartitionHistory] = {}
        self.lasting: list[TopicPartition] = []  # partitions of topics that are never deleted
        self.groups: dict[TopicPartition, Register] = {}
        self.settings: dict[tuple[str, str], Register] = {}
        self._producing = 0
        self._audits = 0

    @property
    @abstractmethod
    def addresses(self) -> str:
        """`bootstrap.servers`."""

    def is_over(self) -> bool:
        """Whether all producers are done, and the others may end."""
        return not self._producing

    # --- histories

    def keep_books(self, topic: Topic, *, replicated: bool = False, defaults: dict[str, str] | None = None) -> None:
        """Start the histories of a topic that is never deleted."""
        for index in range(topic.partitions):
            self.keep_book(topic, index, replicated=replicated)
        first = {**DEFAULTS, **(defaults or {}), **topic.configs}
        for name in DEFAULTS:
            self.settings[topic.name, name] = Register(f"{name} of {topic.name}", [first[name]])

    def keep_book(self, topic: Topic, index: int, *, replicated: bool = False) -> None:
        key = topic.name, index
        self.histories[key] = self.history(topic, f"{topic.name}-{index}", replicated=replicated)
        self.groups[key] = Register(f"the offset of group-{topic.name}-{index}", ["-1"])
        self.lasting.append(key)

    def history(self, topic: Topic, name: str, *, replicated: bool = False) -> PartitionHistory:
        configs = topic.configs
        expires = "delete" in configs["cleanup.policy"]
        return PartitionHistory(
            name,
            flushed=self.flushed,
            compacted=topic.is_compacted,
            replicated=replicated,
            retention_ms=int(configs["retention.ms"]) if expires else -1,
            delete_retention_ms=int(configs["delete.retention.ms"]),
        )

    # --- the clients

    def produce(self, number: int, key: TopicPartition, how: Producing) -> asyncio.Task[None]:
        loop, client = self.client(f"producer-{number}")
        producer = Producer(self.world, client, f"p{number}", *key, self.histories[key], how)
        self._producing += 1
        return loop.create_task(self._until_done(producer.run()))

    async def _until_done(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._producing -= 1

    def consume(self, number: int, key: TopicPartition) -> asyncio.Task[None]:
        loop, client = self.client(f"consumer-{number}", READERS_PATIENCE_MS)
        consumer = Consumer(self.world, client, *key, self.histories[key], self.groups[key], self.is_over)
        return loop.create_task(consumer.run())

    def admin(self, name: str, pause_s: float) -> tuple[VirtualLoop, Admin]:
        loop, client = self.client(name)
        random = Random(self.random.getrandbits(64))
        return loop, Admin(self.world, client, self.histories, self.lasting, pause_s, self.is_over, random)

    def client(self, name: str, patience_ms: int = 60_000) -> tuple[VirtualLoop, AsyncClient]:
        return self._loop(name), AsyncClient(client_config(self.addresses, name, patience_ms=patience_ms))

    # --- the end of a broker

    def gone(self, node: Node) -> None:
        """A broker has stopped by itself."""
        left = node.gone()
        if left:
            raise Violation(f"{node.host} stopped and left {left} files open")
