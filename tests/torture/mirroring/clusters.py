"""The two clusters: three brokers and a ZooKeeper each, every process a node of the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.torture.cluster.clusters import COUNT, BarnabasCluster

FAST_CLEANING = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "500"}


class Side(BarnabasCluster):
    """One of the two clusters."""

    @property
    def folders(self) -> list[Path]:
        """The log directory of each broker."""
        return [self._folder / name for name in self.brokers]

    def _broker_command(self, name: str) -> list[str]:
        return super()._broker_command(name) + [f"--config={key}={value}" for key, value in FAST_CLEANING.items()]


class Source(Side):
    name = "source"
    brokers: Sequence[str] = [f"source-{number}" for number in range(1, COUNT + 1)]
    quorum: Sequence[str] = ["source-quorum"]


class Target(Side):
    name = "target"
    brokers: Sequence[str] = [f"target-{number}" for number in range(1, COUNT + 1)]
    quorum: Sequence[str] = ["target-quorum"]
