"""The topics of a cluster or a data folder, as tables that can be read."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import EARLIEST, LATEST
from barnabas.protocol.values import NO_LEADER
from barnabas.tables.folder.log_dirs import LogDirs
from barnabas.tables.folder_source import DataFolder, FolderSource, paths_of

INTERNAL = ("__", "_schemas")  # beginnings of the names of topics that brokers and services keep for themselves


class Topic(Struct, frozen=True):
    """A topic.

    Args:
        partitions: their number.
        offsets: at most so many rows; None if a partition has no leader that knows.
    """

    topic: str
    partitions: int
    offsets: int | None

    @property
    def is_internal(self) -> bool:
        return self.topic.startswith(INTERNAL)


def topics_of_cluster(settings: Mapping[str, str]) -> list[Topic]:
    """The topics of a cluster, by their names. Raises ConfigError, ClientError."""
    config = ClientConfig.from_options({**settings, "isolation.level": "read_committed"})
    with BlockingClient(config) as client:
        topics = client.topics()
        led = [each for each in topics.values() if all(one.leader != NO_LEADER for one in each.partitions.values())]
        places = [(topic.name, partition) for topic in led for partition in topic.partitions]
        starts, ends = (client.list_offsets(dict.fromkeys(places, word)) for word in (EARLIEST, LATEST))
    offsets = dict.fromkeys((each.name for each in led), 0)
    for place in places:
        offsets[place[0]] += max(0, ends[place].offset - starts[place].offset)
    return [Topic(name, len(topic.partitions), offsets.get(name)) for name, topic in sorted(topics.items())]


def topics_of_folder(data_folder: DataFolder) -> list[Topic]:
    """The topics of a broker's log directories, by their names. Raises TableError."""
    return [_topic_of_folder(name, data_folder) for name in LogDirs(paths_of(data_folder)).topics()]


def _topic_of_folder(name: str, data_folder: DataFolder) -> Topic:
    source = FolderSource(name, data_folder)
    try:
        bounds = source.snapshot().partitions.values()
    finally:
        source.close()
    return Topic(name, len(bounds), sum(each.end - each.start for each in bounds))
