"""The scenario of a cluster run, drawn from its seed: brokers, topics, clients, admins, faults.

Kinds of runs
    faults      any fault except the loss of all machines: nothing acknowledged may be lost
    blackout    all machines lose power at once, among other things: topics without flush.messages may lose their unsynced ends,
                and the cluster comes back by itself
    flushed     the same with flush.messages=1, where one disk may be lost with it: nothing acknowledged may be lost
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import Struct, field

from barnabas.testing.simulation.clients import ACKS_ALL, Producing
from barnabas.testing.simulation.history import TopicPartition
from barnabas.testing.simulation.members import SETTINGS as GROUP_SETTINGS
from barnabas.testing.simulation.scenario import CODECS, DAY_MS, Topic

BROKERS = (3, 3, 3, 3, 3, 4, 4, 5, 5, 7)
REPLICAS = 3
MIN_IN_SYNC = 2  # the cluster tolerates the loss of one machine
KINDS = ("faults",) * 8 + ("blackout", "flushed")
PROCESSES = ("kill", "kill", "kill-leader", "kill-controller", "die-writing", "kill-all", "restart", "roll", "freeze")
NETWORK = ("isolate", "isolate", "one-way", "disconnect", "linger")
ZOOKEEPER = ("cut-off", "expire", "expire-controller", "late-watches", "lose-reply", "lose-reply-of-controller", "zookeeper-away")
MACHINES = ("power-cut", "power-cut", "wipe")
BLOWS = PROCESSES + NETWORK + ZOOKEEPER
DISKS = ("disk-fails",)
TUNED = {
    "retention.ms": ("-1", "2000", "6000"),
    "segment.ms": ("200", "1500", "100000"),
    "compression.type": ("producer", "uncompressed", "lz4", "zstd"),
    "min.cleanable.dirty.ratio": ("0.01", "0.5"),
    "index.interval.bytes": ("0", "1000", "4096"),
    "min.insync.replicas": ("2", "3"),
}
BROKER_SETTINGS = {
    "log.cleaner.backoff.ms": ("100", "2000"),
    "num.replica.fetchers": ("1", "2"),
    "message.max.bytes": ("1048588", "2097152"),
    "background.threads": ("5", "10"),
    "min.insync.replicas": ("2", "3"),  # a setting of all brokers
}
ADMINS = ("reassign", "elect", "delete-records", "tune", "tune-brokers", "enlarge")


class ClusterIncident(Struct):
    """One fault of the cluster.

    Args:
        after_s: seconds since the incident before.
        while_s: its duration in seconds.
        waits: the next incident comes only after its end.
        changes: a process dies in the middle of its next change to the disk with this number.
    """

    kind: str
    after_s: float
    while_s: float
    waits: bool
    changes: int


class ClusterScenario(Struct):
    """One run; see the module for `kind`."""

    kind: str
    brokers: int
    session_timeout_s: float
    properties: dict[str, str]
    topics: list[Topic] = field(default_factory=list)
    producers: list[tuple[TopicPartition, Producing]] = field(default_factory=list)
    admins: dict[str, float] = field(default_factory=dict)
    churned: tuple[Topic, Producing] | None = None
    incidents: list[ClusterIncident] = field(default_factory=list)
    directories: int = 1  # log directories of each broker
    # instance id of each member of the one group; None for a dynamic member
    members: list[str | None] = field(default_factory=list)

    @property
    def flushed(self) -> bool:
        return self.kind == "flushed"


def draw_cluster(random: Random, kind: str | None = None, incidents: Sequence[str] = ()) -> ClusterScenario:
    """The scenario of a seed.

    Args:
        kind: drawn if None.
        incidents: if given, no others are drawn.
    """
    kind = kind or random.choice(KINDS)
    timeout_s = random.choice((3.0, 9.0))
    scenario = ClusterScenario(kind, random.choice(BROKERS), timeout_s, _properties(random, timeout_s))
    if scenario.flushed:
        scenario.properties["log.flush.interval.messages"] = "1"
    scenario.topics = [_topic(random, f"t{number}") for number in range(random.choice((1, 1, 2)))]
    for topic in scenario.topics:
        for index in range(topic.partitions):
            scenario.producers += [((topic.name, index), _producing(random, topic)) for _ in range(random.choice((1, 1, 2)))]
    for admin in ADMINS:
        if random.random() < 0.35:
            scenario.admins[admin] = random.choice((0.5, 2.0, 6.0))
    if random.random() < 0.25:
        churned = _topic(random, "churned")
        how = _producing(random, churned)
        how.batches = 4
        scenario.churned = churned, how
    scenario.incidents = [_incident(random, incidents or _incidents_of(kind)) for _ in range(random.randint(2, 6))]
    if kind != "blackout" and random.random() < 0.4:  # in a blackout the group loses its unsynced state
        scenario.members = [random.choice((None, None, f"static-{number}")) for number in range(random.randint(2, 4))]
    if not incidents:
        scenario.directories = random.choice((1, 1, 2))
        if random.random() < 0.25:
            scenario.incidents.insert(random.randrange(len(scenario.incidents)), _incident(random, DISKS))
    return scenario


def _properties(random: Random, timeout_s: float) -> dict[str, str]:
    return {
        "zookeeper.session.timeout.ms": str(int(timeout_s * 1000)),
        "broker.heartbeat.interval.ms": "6000",  # longer than the default: otherwise heartbeats are half of all events
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": str(REPLICAS),
        "default.replication.factor": str(REPLICAS),
        "min.insync.replicas": str(MIN_IN_SYNC),
        "replica.lag.time.max.ms": random.choice(("1000", "5000")),
        "replica.high.watermark.checkpoint.interval.ms": random.choice(("200", "2000")),
        "log.flush.offset.checkpoint.interval.ms": random.choice(("200", "60000")),
        "log.retention.check.interval.ms": "1000",
        "log.segment.delete.delay.ms": random.choice(("0", "1000")),
        "log.cleaner.backoff.ms": random.choice(("300", "2000")),
        "leader.imbalance.check.interval.seconds": random.choice(("5", "300")),
        "auto.create.topics.enable": "false",
        **GROUP_SETTINGS,
    }


def _topic(random: Random, name: str) -> Topic:
    configs = {
        "segment.ms": random.choice(("300", "2000", "100000")),
        "retention.ms": random.choice(("3000", "-1", "-1", "-1")),
        "cleanup.policy": random.choice(("delete", "delete", "delete", "compact", "compact,delete")),
        "min.cleanable.dirty.ratio": random.choice(("0.01", "0.3")),
        "delete.retention.ms": random.choice(("5000", str(DAY_MS))),
    }
    return Topic(name, random.choice((1, 1, 2)), configs)


def _producing(random: Random, topic: Topic) -> Producing:
    idempotent = random.random() < 0.65
    return Producing(
        idempotent=idempotent,
        acks=ACKS_ALL if idempotent else random.choice((ACKS_ALL, 1)),
        batches=random.randint(8, 24),
        pause_s=random.choice((0.2, 1.0)),
        value_bytes=random.choice((20, 500)),
        keys=random.choice((2, 8)) if topic.is_compacted else 0,
        tombstones=random.choice((0.0, 0.2)) if topic.is_compacted else 0.0,
        codec=random.choice(CODECS),
    )


def _incidents_of(kind: str) -> Sequence[str]:
    return (*BLOWS, *MACHINES, *MACHINES) if kind == "faults" else (*BLOWS, *("blackout",) * 12)


def _incident(random: Random, kinds: Sequence[str]) -> ClusterIncident:
    return ClusterIncident(
        random.choice(kinds),
        after_s=random.choice((0.3, 2.0, 6.0)) * (0.5 + random.random()),
        while_s=random.choice((0.1, 1.0, 12.0)) * (0.5 + random.random()),
        waits=random.random() < 0.6,
        changes=random.randint(1, 20),
    )
