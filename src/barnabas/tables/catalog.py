"""The topics of a cluster or a data folder, as tables that can be read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec import Struct

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import EARLIEST, LATEST
from barnabas.tables.errors import TableError
from barnabas.tables.folder_source import DataFolder, FolderSource, paths_of

FOLDER = re.compile(r"(.+)-(\d+)")
INTERNAL = ("__", "_schemas")  # beginnings of the names of topics that brokers and services keep for themselves


class Topic(Struct, frozen=True):
    """A topic.

    Args:
        partitions: their number.
        offsets: at most so many rows.
    """

    topic: str
    partitions: int
    offsets: int

    @property
    def is_internal(self) -> bool:
        return self.topic.startswith(INTERNAL)


def topics_of_cluster(settings: Mapping[str, str]) -> list[Topic]:
    """The topics of a cluster, by their names. Raises ConfigError, ClientError."""
    config = ClientConfig.from_options({**settings, "isolation.level": "read_committed"})
    with BlockingClient(config) as client:
        topics = client.topics()
        places = [(name, partition) for name, topic in topics.items() for partition in topic.partitions]
        starts, ends = (client.list_offsets(dict.fromkeys(places, word)) for word in (EARLIEST, LATEST))
    offsets = dict.fromkeys(topics, 0)
    for place in places:
        offsets[place[0]] += max(0, ends[place].offset - starts[place].offset)
    return [Topic(name, len(topic.partitions), offsets[name]) for name, topic in sorted(topics.items())]


def topics_of_folder(data_folder: DataFolder) -> list[Topic]:
    """The topics of a broker's log directories, by their names. Raises TableError."""
    names = set()
    for path in paths_of(data_folder):
        if not path.is_dir():
            raise TableError(f"there is no data folder {path}")
        with os.scandir(path) as entries:
            names |= {match[1] for each in entries if each.is_dir() and (match := FOLDER.fullmatch(each.name))}
    return [_topic_of_folder(name, data_folder) for name in sorted(names)]


def _topic_of_folder(name: str, data_folder: DataFolder) -> Topic:
    source = FolderSource(name, data_folder)
    try:
        bounds = source.snapshot().partitions.values()
    finally:
        source.close()
    return Topic(name, len(bounds), sum(each.end - each.start for each in bounds))
