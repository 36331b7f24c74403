"""The settings of a task: what its config and the worker's say about topics, groups, clients and converters."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from barnabas.engine.jobs import ConnectorWork

OFFSETS_TOPIC, DEFAULT_OFFSETS_TOPIC = "offset.storage.topic", "connect-offsets"
GROUP, DEFAULT_GROUP = "group.id", "connect-cluster"
PRODUCER, CONSUMER = "producer.override.", "consumer.override."


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
        """Options of a reader or a writer: the client's settings with those of the connector before them."""
        own = {key.removeprefix(prefix): value for key, value in self.work.config.items() if key.startswith(prefix)}
        own.pop("group.id", None)
        own.pop("auto.offset.reset", None)
        return {f"kafka.{name}": value for name, value in {**self.client, **own}.items()}

    @property
    def topics(self) -> Mapping[str, str]:
        """Which topics a sink reads, as an option of the reader."""
        pattern = self.work.config.get("topics.regex", "").strip()
        if pattern:
            return {"subscribePattern": pattern}
        return {"subscribe": ",".join(each.strip() for each in self.work.config.get("topics", "").split(",") if each.strip())}
