"""A limit on the rate of moves, set before they start and removed after they end, as Kafka's own tool does (KIP-73).

The rates are dynamic settings of the brokers that take part; a setting of each topic names the throttled replicas. The source
of a copy is throttled as a leader, the replica that is created as a follower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from barnabas.cli.resources import Change, Operation, alter_settings, describe_settings, resource_names
from barnabas.cli.wire import Wire
from barnabas.cluster.planning.moves import Partition, Replicas
from barnabas.protocol.values import ResourceType

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


def begin(
    wire: Wire,
    before: Mapping[Partition, Replicas],
    plan: Mapping[Partition, Replicas],
    bytes_per_s: int,
    *,
    alive: Collection[int],
) -> None:
    """Throttle the moves of `plan`; raises Failure, and then `end` removes the settings again.

    It sets the topics first: their settings show `end` that there are rates to remove.

    Args:
        alive: the brokers that can take a setting; a broker that is down moves nothing.
    """
    for topic in sorted({topic for topic, _ in plan}):
        numbers = [number for name, number in plan if name == topic]
        sources = [f"{n}:{broker}" for n in numbers for broker in before[topic, n]]
        targets = [f"{n}:{broker}" for n in numbers for broker in plan[topic, n] if broker not in before[topic, n]]
        changes = [Change(LEADERS, Operation.SET, ",".join(sources)), Change(FOLLOWERS, Operation.SET, ",".join(targets))]
        alter_settings(wire, ResourceType.TOPIC, topic, changes, validate_only=False)
    taking_part = {broker for partition, replicas in plan.items() for broker in (*before[partition], *replicas)}
    for broker in sorted(taking_part.intersection(alive)):
        changes = [Change(rate, Operation.SET, str(bytes_per_s)) for rate in RATES]
        alter_settings(wire, ResourceType.BROKER, str(broker), changes, validate_only=False)


def end(wire: Wire, topics: Iterable[str], *, rates_too: bool) -> int:
    """Remove the throttle from topics that have one, and from all brokers; returns how many topics had one."""
    throttled = [topic for topic in topics if _is_throttled(wire, topic)]
    for topic in throttled:
        changes = [Change(key, Operation.DELETE, None) for key in (LEADERS, FOLLOWERS)]
        alter_settings(wire, ResourceType.TOPIC, topic, changes, validate_only=False)
    if throttled and rates_too:
        for broker in resource_names(wire, ResourceType.BROKER):
            changes = [Change(rate, Operation.DELETE, None) for rate in RATES]
            alter_settings(wire, ResourceType.BROKER, broker, changes, validate_only=False)
    return len(throttled)


def _is_throttled(wire: Wire, topic: str) -> bool:
    settings = describe_settings(wire, ResourceType.TOPIC, topic)
    return any(setting["name"] in (LEADERS, FOLLOWERS) and not setting["default"] for setting in settings)
