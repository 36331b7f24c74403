"""The actions of the clients of a run with transactions, drawn from its seed.

The topics: writers write to `in`, and copiers copy it to `out`. Writers also write to `keyed`, which is compacted.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct, field

from barnabas.testing.simulation.history import TopicPartition

INPUT, OUTPUT, KEYED = "in", "out", "keyed"
CODECS = (0, 0, 0, 3)


class Instance(Struct):
    """One process that uses a transactional id; several may use it at the same time, and fence each other.

    Args:
        after_s: seconds from the start of the run.
        second: whether it speaks transactions version 2.
        timeout_ms: the timeout of its transactions.
        patience_s: how long it repeats a request before it gives up.
        comes_back: how often it takes the id again after it was fenced.
    """

    after_s: float
    second: bool
    transactions: int
    timeout_ms: int
    patience_s: float
    pause_s: float
    comes_back: int


class Client(Struct):
    """A transactional id: a writer, or the copier of one input partition.

    Args:
        source: the partition that a copier copies; None for a writer.
        abort_share: the share of its transactions that it aborts.
    """

    transactional_id: str
    instances: list[Instance]
    source: TopicPartition | None = None
    abort_share: float = 0.2


class Harm(Struct):
    """A fault of a client: its process dies, or pauses for a while."""

    after_s: float
    kills: bool
    while_s: float


class Clients(Struct):
    """All clients of a run.

    Args:
        echoes: the share of requests that are late or come twice.
        configs: the settings of each topic.
    """

    partitions: dict[str, int]
    configs: dict[str, dict[str, str]]
    clients: list[Client] = field(default_factory=list)
    harms: list[Harm] = field(default_factory=list)
    late_requests: float = 0.0

    @property
    def places(self) -> list[TopicPartition]:
        return [(topic, index) for topic, count in self.partitions.items() for index in range(count)]


def draw(random: Random, *, patient: bool = False) -> Clients:
    """The clients of a seed.

    Args:
        patient: brokers are down for longer, so the timeouts of transactions are longer too.
    """
    partitions = {INPUT: random.randint(1, 2), OUTPUT: random.randint(1, 2), KEYED: 1}
    clients = Clients(partitions, {topic: _configs(random, topic) for topic in partitions})
    for number in range(random.randint(1, 3)):
        clients.clients.append(Client(f"writer-{number}", _instances(random, patient=patient), None, random.choice((0.1, 0.4))))
    for index in range(partitions[INPUT]):
        instances = _instances(random, patient=patient)
        clients.clients.append(Client(f"copier-{index}", instances, (INPUT, index), random.choice((0.0, 0.3))))
    clients.harms = [_harm(random) for _ in range(random.choice((0, 1, 2, 4)))]
    clients.late_requests = random.choice((0.0, 0.05, 0.2))
    return clients


def _configs(random: Random, topic: str) -> dict[str, str]:
    configs = {
        "segment.ms": random.choice(("300", "2000", "100000")),
        "index.interval.bytes": random.choice(("0", "500", "4096")),
        "retention.ms": "-1",
        "cleanup.policy": "delete",
        "delete.retention.ms": "86400000",
    }
    if topic == KEYED:
        configs["cleanup.policy"] = "compact"
        configs["min.cleanable.dirty.ratio"] = random.choice(("0.01", "0.3"))
        configs["delete.retention.ms"] = random.choice(("0", "500", "86400000"))
    return configs


def _instances(random: Random, *, patient: bool) -> list[Instance]:
    count = random.choice((1, 1, 2, 3))
    after_s, instances = 0.0, []
    for _ in range(count):
        instances.append(
            Instance(
                after_s,
                second=random.random() < 0.6,
                transactions=random.randint(2, 8),
                timeout_ms=random.choice((10_000, 30_000) if patient else (2_000, 5_000, 15_000)),
                patience_s=random.choice((3.0, 30.0, 60.0) if patient else (0.0, 3.0, 20.0)),
                pause_s=random.choice((0.02, 0.1, 0.4)),
                comes_back=random.choice((0, 0, 1, 3)),
            )
        )
        after_s += random.choice((0.1, 1.0, 4.0)) * (0.5 + random.random())
    return instances


def _harm(random: Random) -> Harm:
    return Harm(
        after_s=random.choice((0.3, 1.0, 3.0)) * (0.5 + random.random()),
        kills=random.random() < 0.5,
        while_s=random.choice((0.5, 3.0, 9.0)),
    )
