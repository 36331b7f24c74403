"""The copiers and their topics: names that the rounds, the copiers and the check agree on.

An input topic is copied record by record to the same partition of its output topic. The copiers with confluent-kafka and Java share their
partitions as members of a group. A commit of offsets names the member and the generation, so a member that has lost a partition is fenced
(KIP-447). aiokafka names neither and does not wait for stable offsets. So it copies partitions of its own, and its transactional id is the
fence.
"""

from __future__ import annotations

from dataclasses import dataclass

SHARED, OWN = "shared", "own"
PARTITIONS = {SHARED: 4, OWN: 2}
GROUP = "copiers"
BATCH_RECORDS = 40  # at most, in one transaction
ABORTED_SHARE = 0.05  # share of transactions that the copier aborts itself
TRANSACTION_TIMEOUT_MS = 10_000
SESSION_TIMEOUT_MS = 6_000


def output_of(topic: str) -> str:
    return f"{topic}-copy"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run against copiers and brokers."""

    rounds: int = 30
    seed: int = 1
    seconds: float = 3.0  # longest work in a round before the kill
    rate: int = 400  # records/s into all partitions together
    with_java: bool = True


def value_of(partition: int, number: int) -> bytes:
    """The record `number` of a partition of an input topic."""
    return f"{partition}/{number}".encode()
