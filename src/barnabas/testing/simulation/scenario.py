"""What a run is made of, drawn from its seed: the broker's settings, topics, producers, and the blows of fate.

The profiles:

    kill    processes are killed, between events and in the middle of changes to the disk; nothing acknowledged may be lost
    power   the power is cut too; topics do not flush, so that a tail may be lost, and nothing else
    flush   the power is cut, and every topic has flush.messages=1: nothing acknowledged may be lost
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from barnabas.testing.simulation.clients import Producing
from barnabas.testing.simulation.history import TopicPartition

PROFILES = ("kill", "power", "flush")


@dataclass(slots=True)
class Topic:
    name: str
    partitions: int
    configs: dict[str, str]
    retention_ms: int = -1


@dataclass(slots=True)
class Blow:
    """One thing that befalls the broker.

    Args:
        kind: disconnect, restart, kill or power-cut.
        after_s: since the one before.
        changes: the process dies in the middle of this one of its next changes to the disk; 0: between two events.
        again: and once more while it starts again, in the middle of this change; 0: not.
    """

    kind: str
    after_s: float
    down_s: float = 0.1
    changes: int = 0
    again: int = 0


@dataclass(slots=True)
class Scenario:
    name: str
    flushed: bool
    properties: dict[str, str]
    topics: list[Topic] = field(default_factory=list)
    producers: list[tuple[TopicPartition, Producing]] = field(default_factory=list)
    blows: list[Blow] = field(default_factory=list)


def draw(random: Random, profile: str | None = None) -> Scenario:
    """The scenario of a seed."""
    name = profile or random.choice(PROFILES)
    flushed = name == "flush"
    properties = {
        "offsets.topic.num.partitions": str(random.randint(1, 2)),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((200, 1_000, 60_000))),
        "log.flush.start.offset.checkpoint.interval.ms": str(random.choice((200, 1_000, 60_000))),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice((200, 1_000))),
        "log.retention.check.interval.ms": str(random.choice((300, 1_000))),
        "log.segment.delete.delay.ms": str(random.choice((0, 100, 1_000))),
        "auto.create.topics.enable": "false",
    }
    if flushed:
        properties["log.flush.interval.messages"] = "1"
    scenario = Scenario(name, flushed, properties)
    for number in range(random.randint(1, 2)):
        scenario.topics.append(_topic(random, f"t{number}"))
    for topic in scenario.topics:
        for index in range(topic.partitions):
            for _ in range(random.choice((1, 1, 2))):
                scenario.producers.append(((topic.name, index), _producing(random)))
    crashes = ("kill", "kill", "restart") if name == "kill" else ("power-cut", "power-cut", "kill", "restart")
    for _ in range(random.randint(2, 6)):
        scenario.blows.append(_blow(random, crashes))
    return scenario


def _topic(random: Random, name: str) -> Topic:
    configs = {
        "index.interval.bytes": str(random.choice((0, 500, 4096))),
        "segment.index.bytes": str(random.choice((60, 120, 600))),
        "segment.ms": str(random.choice((300, 2_000, 100_000))),
    }
    retention_ms = -1
    if random.random() < 0.3:
        retention_ms = random.choice((1_000, 4_000))
    configs["retention.ms"] = str(retention_ms)
    return Topic(name, random.choice((1, 1, 2)), configs, retention_ms)


def _producing(random: Random) -> Producing:
    return Producing(
        idempotent=random.random() < 0.6,
        acks=random.choice((-1, -1, 1)),
        batches=random.randint(15, 45),
        pause_s=random.choice((0.02, 0.1, 0.4)),
        value_bytes=random.choice((20, 300, 2_000)),
    )


def _blow(random: Random, crashes: tuple[str, ...]) -> Blow:
    kind = random.choice((*crashes, "disconnect"))
    return Blow(
        kind,
        after_s=random.choice((0.05, 0.5, 2.0)) * (0.5 + random.random()),
        down_s=random.choice((0.01, 0.2, 3.0)),
        changes=random.choice((0, random.randint(1, 30))),
        again=random.choice((0, 0, 0, random.randint(1, 40))) if kind in ("kill", "power-cut") else 0,
    )
