"""Reports the ends of this broker's logs of lost partitions, which the controller needs to elect a leader again.

A broker reports them in its own registration. The registration ends with the broker, so a report never counts for a later
process of this broker. The broker reports only logs that have stopped to follow a leader. Such a log does not change before an
election, and the election raises the partition's leader epoch.

Source: KIP-966 (unclean recovery), where the controller asks each broker for the end and the epoch of its log. Here brokers
report it without a request. So a controller elects from stored reports, and its successor need not know which brokers were
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.cluster.metadata.image import LogEnd, MetadataImage, Topic

MAX_SAID = 1_000  # reports at a time, about 60 kB of the registration; the others follow when these partitions have leaders
LastRecord = tuple[int, int]  # the epoch of the last record, -1 for an empty log, and the log end offset
# By topic, partition and leader epoch; None while the log may still change.
FindLog = Callable[[Topic, int, int], LastRecord | None]


class LostPartitions:
    """The cluster's lost partitions from one broker's view: usually there are none."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._topics: dict[str, list[int]] = {}

    def follow(self, image: MetadataImage, changed: Iterable[str]) -> None:
        """Find the lost partitions of these changed topics."""
        for name in changed:
            topic = image.topics.get(name)
            lost = [] if topic is None else [number for number, state in enumerate(topic.partitions) if state.is_lost]
            if lost:
                self._topics[name] = lost
            else:
                self._topics.pop(name, None)

    def log_ends(self, image: MetadataImage, find: FindLog) -> tuple[LogEnd, ...]:
        """The reports to send now; those that make an election possible come first, so that no partition waits for others."""
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
