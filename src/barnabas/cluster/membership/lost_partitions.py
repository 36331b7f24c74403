"""Lost partitions, and how far the logs of them go here: what a controller has to know to have them led again.

A broker says it in its own registration, which ends when the broker does, so that what it said is never taken for what another process
of it has. It says so only of what it has stopped to follow: the log does not change before somebody is elected, and then the partition's
leader epoch is another.

Source: KIP-966 has the controller ask each broker for its log's end and epoch (unclean recovery). Here brokers say it unasked, because a
controller then elects from what it has read, and need not remember whom it asked when it dies in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.cluster.metadata.image import LogEnd, MetadataImage, Topic

MAX_SAID = 1_000  # at once, some 60 kB of the registration; the next follow when these are led
LastRecord = tuple[int, int]  # the epoch it was written in, -1 for an empty log, and the offset behind it
FindLog = Callable[[Topic, int, int], LastRecord | None]  # by topic, partition and leader epoch; None while it may still change


class LostPartitions:
    """Those of the cluster, as one broker sees them: most of the time there are none."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._topics: dict[str, list[int]] = {}

    def follow(self, image: MetadataImage, changed: Iterable[str]) -> None:
        """These topics are not as they were."""
        for name in changed:
            topic = image.topics.get(name)
            lost = [] if topic is None else [number for number, state in enumerate(topic.partitions) if state.is_lost]
            if lost:
                self._topics[name] = lost
            else:
                self._topics.pop(name, None)

    def log_ends(self, image: MetadataImage, find: FindLog) -> tuple[LogEnd, ...]:
        """What is to be said now: first of those that can be led when it is said, so that none waits for others."""
        ripe: list[tuple[Topic, int, int]] = []
        waiting: list[tuple[Topic, int, int]] = []
        for name in sorted(self._topics):
            topic = image.topics[name]
            for number in self._topics[name]:
                state = topic.partitions[number]
                if self._broker_id not in state.last_known:
                    continue
                (ripe if image.brokers.keys() >= set(state.last_known) else waiting).append((topic, number, state.leader_epoch))
        said = []
        for topic, number, leader_epoch in [*ripe, *waiting][:MAX_SAID]:
            last = find(topic, number, leader_epoch)
            if last is not None:
                said.append(LogEnd(topic.topic_id, number, leader_epoch, *last))
        return tuple(said)
