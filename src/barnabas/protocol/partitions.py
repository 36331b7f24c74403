"""Partitions as requests and records list them: the numbers of a topic under its name."""

from __future__ import annotations

from collections.abc import Iterable


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The partition numbers of each topic; topics and numbers keep their order."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
