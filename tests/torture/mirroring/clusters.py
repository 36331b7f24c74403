"""The two clusters: three brokers and a ZooKeeper each, every process a node of the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.server.mirroring.acls import AUTHORIZED
from tests.torture.cluster.clusters import COUNT, BarnabasCluster, Cluster, KafkaCluster

CONFIG = {
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    **AUTHORIZED,
}
SOURCE_BROKERS = [f"source-{number}" for number in range(1, COUNT + 1)]
SOURCE_QUORUM = ["source-quorum"]


class Side(Cluster):
    """One of the two clusters."""

    @property
    def folders(self) -> list[Path]:
        """The log directory of each broker."""
        return [self._folder / name for name in self.brokers]


class BarnabasSide(Side, BarnabasCluster):
    def _broker_command(self, name: str) -> list[str]:
        return super()._broker_command(name) + [f"--config={key}={value}" for key, value in CONFIG.items()]


class Source(BarnabasSide):
    name = "source"
    brokers: Sequence[str] = SOURCE_BROKERS
    quorum: Sequence[str] = SOURCE_QUORUM


class KafkaSource(Side, KafkaCluster):
    """Apache Kafka 4.3 as the source."""

    name = "source"
    brokers: Sequence[str] = SOURCE_BROKERS
    quorum: Sequence[str] = SOURCE_QUORUM

    def _command(self, name: str, properties: dict[str, str]) -> list[str]:
        return super()._command(name, {**properties, **CONFIG})


class Target(BarnabasSide):
    name = "target"
    brokers: Sequence[str] = [f"target-{number}" for number in range(1, COUNT + 1)]
    quorum: Sequence[str] = ["target-quorum"]
