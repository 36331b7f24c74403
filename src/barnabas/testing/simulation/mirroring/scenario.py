"""The scenario of a run with two clusters, drawn from its seed."""

from __future__ import annotations

from random import Random

from msgspec import Struct, field

from barnabas.testing.simulation.clients import ACKS_ALL, Producing
from barnabas.testing.simulation.cluster_scenario import BLOWS, MACHINES, ClusterScenario, draw_cluster

KINDS = ("faults", "faults", "faults", "blackout")  # of the source; in a blackout it may lose the ends of its logs
ADMINS = ("elect", "delete-records", "reassign")
TARGET_BROKERS = 3


class Cut(Struct):
    """The clusters do not reach each other, in one or both directions."""

    after_s: float
    while_s: float
    ways: str  # "both", "requests" or "answers"


class MirrorScenario(Struct):
    """One run.

    Args:
        source: the source with its topics, clients and faults.
        target: the settings and faults of the target while it copies.
        later: the faults of the target while topics are promoted and written to.
        early_s: when the first topic is promoted without waiting for its source; none if negative.
        is_hasty: topics are promoted when the copies cannot have the last records yet.
        writers: producers of the promoted topics, one for each partition.
    """

    source: ClusterScenario
    target: ClusterScenario
    later: ClusterScenario
    cuts: list[Cut] = field(default_factory=list)
    early_s: float = -1.0
    is_hasty: bool = False
    writers: Producing | None = None


def draw_mirror(random: Random) -> MirrorScenario:
    """The scenario of a seed."""
    source = draw_cluster(random, random.choice(KINDS))
    source.churned, source.members, source.directories = None, [], 1
    source.brokers = 3
    source.admins = {name: pause_s for name, pause_s in source.admins.items() if name in ADMINS}
    source.incidents = [each for each in source.incidents if each.kind != "disk-fails"]
    target, later = (draw_cluster(random, "faults", (*BLOWS, *MACHINES)) for _ in range(2))
    target.incidents, later.incidents = target.incidents[:4], later.incidents[:2]
    for incident in later.incidents:
        incident.while_s = min(incident.while_s, 3.0)
    scenario = MirrorScenario(source, target, later)
    scenario.cuts = [
        Cut(
            random.choice((0.5, 3.0)) * (0.5 + random.random()),
            random.choice((0.3, 4.0)),
            random.choice(("both", "requests", "answers")),
        )
        for _ in range(random.choice((0, 1, 2)))
    ]
    if random.random() < 0.25 and len(source.topics) > 1:
        scenario.early_s = 10.0 * random.random()
    scenario.is_hasty = random.random() < 0.5
    scenario.writers = Producing(random.random() < 0.8, ACKS_ALL, random.randint(3, 8), pause_s=0.3, value_bytes=20)
    return scenario
