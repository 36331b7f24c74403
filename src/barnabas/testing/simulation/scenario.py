"""The scenario of a run, drawn from its seed: the broker's settings, topics, producers, admins, and faults.

The profiles:

    kill    processes are killed, between events and during changes to the disk; nothing acknowledged may be lost
    power   the power is cut too; topics do not flush, so that a tail may be lost, and nothing else
    flush   the power is cut, and every topic has flush.messages=1: nothing acknowledged may be lost
    disk    log directories fail, are full, write only half, or cannot be read; some runs with flush.messages=1
    rot     bits of sealed segments flip while the broker is down: it refuses damaged batches and serves all others

All profiles have compacted topics, several log directories with moves between them, deletions, changes of settings, and topics
that are created and deleted.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct, field

from barnabas.testing.simulation.clients import Producing
from barnabas.testing.simulation.history import TopicPartition

PROFILES = ("kill", "power", "flush", "disk", "rot")
BLOWS = {
    "kill": ("kill", "kill", "restart", "disconnect", "cleaner-dies"),
    "power": ("power-cut", "power-cut", "kill", "restart", "disconnect", "cleaner-dies"),
    "flush": ("power-cut", "power-cut", "kill", "restart", "disconnect"),
    "disk": ("disk-fails", "disk-fails", "full", "short-writes", "reads-fail", "kill", "power-cut"),
    "rot": ("rot", "rot", "kill", "restart"),
}
CODECS = (0, 0, 0, 1, 3)
DAY_MS = 86_400_000


class Topic(Struct):
    """A topic of the run, as it is created."""

    name: str
    partitions: int
    configs: dict[str, str]

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.configs["cleanup.policy"]


class Incident(Struct):
    """One fault of the broker.

    Args:
        kind: one of BLOWS.
        after_s: seconds since the incident before.
        changes: the process dies in the middle of its next change to the disk with this number; 0: between two events.
        again: the process dies once more during its restart, in the middle of this change; 0: it does not.
    """

    kind: str
    after_s: float
    down_s: float = 0.1
    changes: int = 0
    again: int = 0


class Scenario(Struct):
    """One run.

    Args:
        admins: the admins of the run, each with its pause between changes.
        churned: the topic that is created and deleted repeatedly, if there is one.
        has_cold_reads: some files are never in the page cache.
    """

    name: str
    flushed: bool
    properties: dict[str, str]
    directories: int = 1
    topics: list[Topic] = field(default_factory=list)
    producers: list[tuple[TopicPartition, Producing]] = field(default_factory=list)
    admins: dict[str, float] = field(default_factory=dict)
    churned: tuple[Topic, Producing] | None = None
    incidents: list[Incident] = field(default_factory=list)
    has_cold_reads: bool = False


def draw(random: Random, profile: str | None = None) -> Scenario:
    """The scenario of a seed."""
    name = profile or random.choice(PROFILES)
    flushed = name == "flush" or (name == "disk" and random.random() < 0.5)
    properties = {
        "offsets.topic.num.partitions": str(random.randint(1, 2)),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((200, 1_000, 60_000))),
        "log.flush.start.offset.checkpoint.interval.ms": str(random.choice((200, 1_000, 60_000))),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice((200, 1_000))),
        "log.retention.check.interval.ms": str(random.choice((300, 1_000))),
        "log.segment.delete.delay.ms": str(random.choice((0, 100, 1_000))),
        "log.cleaner.backoff.ms": str(random.choice((50, 300, 2_000))),
        "auto.create.topics.enable": "false",
    }
    if flushed:
        properties["log.flush.interval.messages"] = "1"
    scenario = Scenario(name, flushed, properties, directories=random.choice((1, 1, 2, 3)))
    scenario.has_cold_reads = random.random() < 0.3
    scenario.topics = [_topic(random, f"t{number}") for number in range(random.randint(1, 2))]
    for topic in scenario.topics:
        for index in range(topic.partitions):
            for _ in range(random.choice((1, 1, 2))):
                scenario.producers.append(((topic.name, index), _producing(random, topic)))
    for admin in ("delete-records", "tune") + (("move",) if scenario.directories > 1 else ()):
        if random.random() < 0.4:
            scenario.admins[admin] = random.choice((0.1, 0.5, 2.0))
    if random.random() < 0.3:
        churned = _topic(random, "churned")
        producing = _producing(random, churned)
        producing.batches = 4
        scenario.churned = churned, producing
    scenario.incidents = [_incident(random, BLOWS[name]) for _ in range(random.randint(2, 6))]
    return scenario


def _topic(random: Random, name: str) -> Topic:
    configs = {
        "index.interval.bytes": str(random.choice((0, 500, 4096))),
        "segment.index.bytes": str(random.choice((60, 120, 600))),
        "segment.ms": str(random.choice((300, 2_000, 100_000))),
        "retention.ms": str(random.choice((1_000, 4_000)) if random.random() < 0.3 else -1),
        "cleanup.policy": random.choice(("delete", "delete", "compact", "compact", "compact,delete")),
        "min.cleanable.dirty.ratio": random.choice(("0.01", "0.3")),
        "min.compaction.lag.ms": random.choice(("0", "0", "1000")),
        "delete.retention.ms": random.choice(("3000", str(DAY_MS))),
    }
    return Topic(name, random.choice((1, 1, 2)), configs)


def _producing(random: Random, topic: Topic) -> Producing:
    return Producing(
        idempotent=random.random() < 0.6,
        acks=random.choice((-1, -1, 1)),
        batches=random.randint(12, 36),
        pause_s=random.choice((0.02, 0.1, 0.4)),
        value_bytes=random.choice((20, 300, 2_000)),
        keys=random.choice((2, 8, 40)) if topic.is_compacted else 0,
        tombstones=random.choice((0.0, 0.2)) if topic.is_compacted else 0.0,
        codec=random.choice(CODECS),
    )


def _incident(random: Random, kinds: tuple[str, ...]) -> Incident:
    kind = random.choice(kinds)
    return Incident(
        kind,
        after_s=random.choice((0.05, 0.5, 2.0)) * (0.5 + random.random()),
        down_s=random.choice((0.01, 0.2, 3.0)),
        changes=random.choice((0, random.randint(1, 30))),
        again=random.choice((0, 0, 0, random.randint(1, 40))) if kind in ("kill", "power-cut") else 0,
    )
