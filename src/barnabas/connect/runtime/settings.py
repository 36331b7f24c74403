"""The settings of a task: what its config and the worker's say about topics, groups, clients and converters."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from barnabas.connect.java_patterns import java_pattern
from barnabas.engine.jobs import ConnectorWork

OFFSETS_TOPIC, DEFAULT_OFFSETS_TOPIC = "offset.storage.topic", "connect-offsets"
GROUP, DEFAULT_GROUP = "group.id", "connect-cluster"
PRODUCER, CONSUMER = "producer.override.", "consumer.override."
NO_OPTIONS = frozenset({"group.id", "auto.offset.reset"})  # they have their own place


class TaskSettings(Struct, frozen=True):
    """Of one task.

    Args:
        work: of its job.
        client: settings of the client for the cluster, by Kafka's names.
    """

    work: ConnectorWork
    client: Mapping[str, str]

    @property
    def transactional_id(self) -> str:
        """Of a source, as Kafka Connect names it (KIP-618)."""
        return f"{self.work.worker.get(GROUP, DEFAULT_GROUP)}-{self.work.connector}-{self.work.task}"

    @property
    def offsets_topic(self) -> str:
        """Of the offsets of sources."""
        own = self.work.config.get("offsets.storage.topic", "").strip()
        return own or self.work.worker.get(OFFSETS_TOPIC, DEFAULT_OFFSETS_TOPIC)

    @property
    def group(self) -> str:
        """The consumer group of a sink."""
        return self.work.config.get(f"{CONSUMER}group.id") or f"connect-{self.work.connector}"

    def options(self, prefix: str) -> dict[str, str]:
        """Options of a reader or a writer: the client's settings, before them those of the workers, and of the connector."""
        own = {name: value for name, value in self._own(prefix).items() if name not in NO_OPTIONS}
        return {f"kafka.{name}": value for name, value in {**self.client, **own}.items()}

    @property
    def start(self) -> str:
        """Where a sink begins with a partition that has no offset."""
        return self._own(CONSUMER).get("auto.offset.reset", "earliest")

    def _own(self, prefix: str) -> dict[str, str]:
        of_workers = prefix.removesuffix("override.")
        named = ((of_workers, self.work.worker), (prefix, self.work.config))
        return {key.removeprefix(start): value for start, all_ in named for key, value in all_.items() if key.startswith(start)}

    @property
    def topics(self) -> Mapping[str, str]:
        """Which topics a sink reads, as an option of the reader."""
        pattern = self.work.config.get("topics.regex", "").strip()
        if pattern:
            return {"subscribePattern": java_pattern(pattern).pattern}
        return {"subscribe": ",".join(each.strip() for each in self.work.config.get("topics", "").split(",") if each.strip())}
