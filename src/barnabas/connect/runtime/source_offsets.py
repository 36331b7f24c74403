"""The offsets of sources in Kafka Connect's topic: the key is `["CONNECTOR",{partition}]`, the value the offset, both JSON.

A partition is known by its JSON, whatever the order of its names. A key that is there is written again byte by byte, so that compaction
keeps one record of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.keyed_topic import committed_records
from barnabas.client.results import EARLIEST, LATEST
from barnabas.protocol.records.batch import Record

_JSON = msgspec.json.Decoder()  # made at import, because threads must not make it at once


class SourceOffsets:
    """The offsets of one connector.

    Args:
        client: reads what is committed.
    """

    def __init__(self, client: BlockingClient, topic: str, connector: str) -> None:
        self._client, self._topic, self._connector = client, topic, connector
        self._keys: dict[str, bytes] = {}
        self._known: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}

    def read(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Partitions and their offsets, as of now. Raises ClientError, PartitionError."""
        for record in records_of(self._client, self._topic):
            partition = self._partition(record.key)
            if partition is None:
                continue
            name = _name(partition)
            self._keys[name] = bytes(record.key or b"")
            offset = _JSON.decode(record.value) if record.value is not None else None
            if offset is None:
                self._known.pop(name, None)
            else:
                self._known[name] = partition, offset
        return list(self._known.values())

    def _partition(self, key: bytes | None) -> Mapping[str, Any] | None:
        try:
            found = _JSON.decode(key or b"null")
        except msgspec.MsgspecError:
            return None
        match found:
            case [self._connector, dict() as partition]:
                return partition
        return None

    def record(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> tuple[bytes, bytes | None]:
        """Key and value of an offset; a tombstone for None."""
        key = self._keys.setdefault(_name(partition), msgspec.json.encode([self._connector, partition]))
        return key, None if offset is None else msgspec.json.encode(offset)


def _name(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)


def records_of(client: BlockingClient, topic: str) -> Iterator[Record]:
    """The committed records of a topic up to its ends at this moment, partition by partition; none if there is no such topic."""
    found = client.topics_by_name([topic]).get(topic)
    if found is None:
        return
    places = [(topic, partition) for partition in found.partitions]
    ends = client.list_offsets(dict.fromkeys(places, LATEST), read_committed=True)
    starts = client.list_offsets(dict.fromkeys(places, EARLIEST))
    for place in places:
        offset, end = starts[place].offset, ends[place].offset
        while offset < end:
            fetched = client.fetch(*place, offset)
            yield from committed_records(fetched, offset)
            offset = next_offset(fetched.records, offset)
