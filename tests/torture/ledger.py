"""The sent and the acknowledged records: the plain list that the broker is held to.

Kept by the load's threads, each of which writes only what is its own, and read by the checker while the load is paused.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from threading import Lock


@dataclass
class Lane:
    """One producer's way to one partition."""

    sent: int = 0  # the client got sequences [0, sent)
    acknowledged: dict[int, int] = field(default_factory=dict)  # sequence -> offset in the answer, or -1
    failed: list[tuple[int, str]] = field(default_factory=list)  # sequences that the client gave up, with the error


class TopicState(Enum):
    """The last answer to the client about a topic that is made and deleted again and again."""

    CREATED = "created"
    DELETED = "deleted"
    UNKNOWN = "unknown"  # requested, without an answer


@dataclass(frozen=True, slots=True)
class Fleeting:
    """A topic that comes and goes under one name; its one partition holds the records [start, records) of this `life`."""

    state: TopicState
    life: int = 0
    start: int = 0
    records: int = 0


@dataclass
class Ledger:
    """All that the checker knows."""

    lanes: dict[tuple[str, str, int], Lane] = field(default_factory=lambda: defaultdict(Lane))  # by topic, producer, partition
    commits: dict[str, tuple[int, int]] = field(default_factory=dict)  # group -> (acknowledged, last attempt)
    trims: dict[int, tuple[int, int]] = field(default_factory=dict)  # partition -> (acknowledged log start offset, last attempt)
    fleeting: dict[str, Fleeting] = field(default_factory=dict)
    homes: dict[tuple[str, int], set[Path]] = field(default_factory=dict)  # log directories in which a moved partition may end
    lock: Lock = field(default_factory=Lock)

    def of_topic(self, topic: str) -> dict[tuple[str, int], Lane]:
        return {(producer, partition): lane for (name, producer, partition), lane in self.lanes.items() if name == topic}

    @property
    def acknowledged(self) -> int:
        return sum(len(lane.acknowledged) for lane in self.lanes.values())
