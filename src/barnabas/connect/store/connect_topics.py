"""The topics of one Connect cluster, by the worker's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import KeyedTopic
from barnabas.client.results import NewTopic
from barnabas.connect.herder.records import BadRecord, Changes, Value, decode, encode
from barnabas.connect.herder.state import Configs, Statuses
from barnabas.connect.store.partitioned import PartitionedTopic
from barnabas.digits import is_number
from barnabas.errors import ConfigError

CONFIGS, STATUSES, OFFSETS = "config.storage.topic", "status.storage.topic", "offset.storage.topic"
DEFAULT_TOPICS = {CONFIGS: "connect-configs", STATUSES: "connect-status", OFFSETS: "connect-offsets"}
STATUS_PARTITIONS, OFFSET_PARTITIONS = ("status.storage.partitions", 5), ("offset.storage.partitions", 25)
MOST_REPLICAS = 2**15 - 1
_ANY = msgspec.json.Decoder()  # made at import, because threads must not make it at once


class ConnectTopics:
    """Configs, statuses and offsets, each as of the last look.

    Args:
        settings: of the worker.
    """

    def __init__(self, config: ClientConfig, settings: Mapping[str, str]) -> None:
        names = {key: settings.get(key, default) for key, default in DEFAULT_TOPICS.items()}
        self.names = names
        self._configs: KeyedTopic[Value] = KeyedTopic(
            config, names[CONFIGS], encode=encode, decode=decode, most_records=limits.MAX_CONNECT_RECORDS,
            most_bytes=limits.MAX_CONNECT_CONFIG_BYTES, transactional_id=f"connect-{names[CONFIGS]}",
            replication=replication(settings, CONFIGS),
        )  # fmt: skip
        statuses = _compacted(names[STATUSES], _count(settings, *STATUS_PARTITIONS), replication(settings, STATUSES))
        self._statuses: PartitionedTopic[Value] = PartitionedTopic(
            config, statuses, encode=encode, decode=decode, transactional_id=f"connect-{names[STATUSES]}"
        )
        self.offsets = offsets_topic(config, names[OFFSETS], settings)

    def cluster_id(self) -> str | None:
        """The id of the Kafka cluster. Raises ClientError, KafkaError."""
        if self._configs.cluster_id is None:
            self._configs.follow()
        return self._configs.cluster_id

    def configs(self) -> Configs:
        """As of now. Raises ClientError, KafkaError."""
        return Configs(self._configs.follow())

    def statuses(self) -> Statuses:
        """As of now. Raises as `configs`."""
        return Statuses(self._statuses.follow())

    def change_configs(self, client: BlockingClient, decide: Callable[[Configs], Changes]) -> None:
        """Write what `decide` makes of the configs. Raises as `KeyedTopic.change`, and what `decide` raises."""
        self._configs.change(client, lambda records: decide(Configs(records)))

    def put_statuses(self, client: BlockingClient, changes: Changes) -> None:
        """Write statuses. Raises as `PartitionedTopic.put`."""
        self._statuses.put(client, changes)

    def close(self) -> None:
        """Release the connections."""
        for each in (self._configs, self._statuses, self.offsets):
            each.close()


def offsets_topic(config: ClientConfig, name: str, settings: Mapping[str, str]) -> PartitionedTopic[Any]:
    """A topic with the offsets of sources: that of the workers, or one of a connector."""
    created = created_offsets_topic(name, settings)
    return PartitionedTopic(config, created, encode=msgspec.json.encode, decode=_any, transactional_id=f"connect-{name}")


def created_offsets_topic(name: str, settings: Mapping[str, str]) -> NewTopic:
    """A topic with the offsets of sources, as whoever needs it first creates it. Raises ConfigError."""
    return _compacted(name, _count(settings, *OFFSET_PARTITIONS), replication(settings, OFFSETS))


def _compacted(name: str, partitions: int, replicas: int) -> NewTopic:
    return NewTopic(name, partitions, replicas, {"cleanup.policy": "compact"})


def _any(payload: bytes) -> Any:
    try:
        return _ANY.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRecord(str(error)) from None


def replication(settings: Mapping[str, str], topic: str) -> int:
    """The replication factor of a topic, if this worker creates it; -1 for that of the broker. Raises ConfigError."""
    key = f"{topic.removesuffix('.topic')}.replication.factor"
    text = settings.get(key, "-1").strip()
    if text == "-1":
        return -1
    if not is_number(text, MOST_REPLICAS) or int(text) < 1:
        raise ConfigError(key, text, f"a number of replicas from 1 to {MOST_REPLICAS}, or -1 for that of the broker")
    return int(text)


def _count(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key, str(default))
    if not is_number(text, 10_000) or int(text) < 1:
        raise ConfigError(key, text, "a number of partitions from 1 to 10000")
    return int(text)
