"""Consumer groups of the source, and their offsets in the target."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Event, Thread
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST
from tests.differential.mirroring.load import COMMON, PLAIN, TRANSACTIONS
from tests.torture.check import Broken

GROUPS, MEMBERS = ("billing", "search"), 2
COMMIT_EACH_S = 0.5
Partition = tuple[str, int]
Offsets = dict[tuple[str, Partition], int]


class Groups:
    """Members that read everything and commit, from `__enter__` to `__exit__`."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._is_over = Event()
        self.failures: list[BaseException] = []
        self._threads = [
            Thread(target=self._guarded, args=(group,), name=f"{group}-{number}") for group in GROUPS for number in range(MEMBERS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, group: str) -> None:
        try:
            self._consume(group)
        except BaseException as error:  # noqa: BLE001 - told by the rounds
            self.failures.append(error)

    def _consume(self, group: str) -> None:
        settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 6_000}
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": group, **settings, **WITHOUT_LINGER})
        consumer.subscribe([PLAIN, TRANSACTIONS])
        committed_s = time.monotonic()
        while not self._is_over.is_set():
            consumer.consume(500, 0.2)
            if time.monotonic() - committed_s > COMMIT_EACH_S:
                committed_s = time.monotonic()
                try:
                    consumer.commit(asynchronous=False)
                except KafkaException:
                    continue  # nothing to commit, or a member that must join again; the next commit says more
        consumer.close()


WITHOUT_LINGER = {key: value for key, value in COMMON.items() if key != "linger.ms"}


def offsets_of(servers: str, partitions: Sequence[Partition]) -> Offsets:
    """The committed offsets of the groups; partitions without one are left out."""
    with BlockingClient.to(servers) as client:
        return {
            (group, each): found.offset
            for group in GROUPS
            for each, found in client.committed_offsets(group, partitions).items()
            if found.offset >= 0
        }


def demand_in_copy(target: str, partitions: Sequence[Partition]) -> int:
    """No group's offset lies past the end of the copy; returns how many offsets there are.

    The ends are read after the offsets. So a copy that goes on may hide an offset that was too large, and one that stands still may not.

    Raises:
        Broken: an offset does.
    """
    offsets = offsets_of(target, partitions)
    with BlockingClient.to(target) as client:
        ends = {each: found.offset for each, found in client.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
    demand_within(offsets, ends)
    return len(offsets)


def demand_within(offsets: Offsets, ends: Mapping[Partition, int]) -> None:
    """Raises Broken if a group is past the end of a partition."""
    for (group, each), offset in offsets.items():
        if offset > ends[each]:
            raise Broken(f"group {group} is at {offset} in the copy {each}, which ends at {ends[each]}")


def differing(source: str, target: str, partitions: Sequence[Partition]) -> str:
    """An offset that differs between the clusters; "" if there is none."""
    theirs, ours = offsets_of(source, partitions), offsets_of(target, partitions)
    return next(
        (f"{key} is {ours.get(key)}, and {offset} in the source" for key, offset in theirs.items() if ours.get(key) != offset), ""
    )
