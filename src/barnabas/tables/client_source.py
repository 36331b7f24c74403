"""Reads a topic over the wire, from any Kafka cluster. Owns a pool of clients, one for each scan that runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from barnabas.client.blocking import BlockingClient, PartitionReader
from barnabas.client.cluster import UnknownTopic
from barnabas.client.config import ClientConfig
from barnabas.client.errors import PartitionError
from barnabas.client.results import EARLIEST, LATEST
from barnabas.error_codes import ErrorCode
from barnabas.tables.errors import TableError
from barnabas.tables.source import Bounds, Chunk, Snapshot


class ClientSource:
    """A topic of a cluster, read with read_committed.

    Args:
        config: of the clients; `ClientConfig.from_options({"bootstrap.servers": …})` for the defaults.
    """

    def __init__(self, topic: str, config: ClientConfig) -> None:
        self.topic = topic
        self._config = replace(config, read_committed=True)
        self._idle: list[BlockingClient] = []
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    @contextmanager
    def _client(self) -> Iterator[BlockingClient]:
        with self._lock:
            client = self._idle.pop() if self._idle else BlockingClient(self._config)
        try:
            yield client
        except BaseException:
            client.close()
            raise
        with self._lock:
            self._idle.append(client)

    def snapshot(self) -> Snapshot:
        with self._client() as client:
            found = client.topics_by_name([self.topic]).get(self.topic)
            if found is None:
                raise TableError(f"there is no topic {self.topic}")
            places = [(self.topic, each) for each in sorted(found.partitions)]
            starts, ends = (client.list_offsets(dict.fromkeys(places, word)) for word in (EARLIEST, LATEST))
            bounds = {place[1]: Bounds(starts[place].offset, max(starts[place].offset, ends[place].offset)) for place in places}
            # The leaders' own answers have them: the metadata of a client may be minutes old.
            epochs = {place[1]: ends[place].leader_epoch for place in places if ends[place].leader_epoch >= 0}
            return Snapshot(self.topic, found.topic_id.hex if found.topic_id.int else "", bounds, epochs)

    def end_of_epoch(self, partition: int, epoch: int) -> int:
        with self._client() as client:
            return client.end_of_epoch(self.topic, partition, epoch)

    def offsets_from(self, snapshot: Snapshot, timestamp_ms: int) -> Mapping[int, int]:
        if timestamp_ms < 0:  # negative timestamps have other meanings in the request
            return {partition: bounds.start for partition, bounds in snapshot.partitions.items()}
        with self._client() as client:
            found = client.list_offsets({(self.topic, each): timestamp_ms for each in snapshot.partitions})
        offsets = {}
        for partition, bounds in snapshot.partitions.items():
            offset = found[self.topic, partition].offset
            offsets[partition] = bounds.end if offset < 0 else min(max(offset, bounds.start), bounds.end)
        return offsets

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        with self._client() as client:
            reader = PartitionReader(client, self.topic, partition, start, end)
            try:
                yield from self._chunks(client, reader, snapshot, partition, end)
            finally:
                reader.close()

    def _chunks(
        self, client: BlockingClient, reader: PartitionReader, snapshot: Snapshot, partition: int, end: int
    ) -> Iterator[Chunk]:
        last_progress = time.monotonic()
        while reader.offset < end:
            position = reader.offset
            try:
                answer = reader.read()
            except UnknownTopic as error:
                raise self._deleted() from error
            except PartitionError as error:
                self._check_topic(client, snapshot)
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                reader.go_on_from(self._after_deletion(client, partition, position, end))
                continue
            self._check_topic(client, snapshot)
            if reader.offset > position:
                last_progress = time.monotonic()
                yield Chunk(answer.records, answer.aborted)
            elif time.monotonic() - last_progress > self._config.default_api_timeout_ms / 1000:
                raise TableError(
                    f"{self.topic}-{partition}: no records from offset {position} on within "
                    f"{self._config.default_api_timeout_ms} ms, but the snapshot ends at {end}"
                )

    def _check_topic(self, client: BlockingClient, snapshot: Snapshot) -> None:
        """Raise TableError if the client knows another topic of this name by now."""
        known = client.cluster.topics.get(self.topic)
        if known is not None and snapshot.topic_id and known.topic_id.hex != snapshot.topic_id:
            raise self._deleted()

    def _deleted(self) -> TableError:
        return TableError(f"the topic {self.topic} was deleted while it was read")

    def _after_deletion(self, client: BlockingClient, partition: int, position: int, end: int) -> int:
        """The offset to go on from after records below it were deleted."""
        place = self.topic, partition
        earliest = client.list_offsets({place: EARLIEST})[place].offset
        if earliest <= position:
            latest = client.list_offsets({place: LATEST})[place].offset
            raise TableError(f"{self.topic}-{partition}: the log ends at offset {latest}, but the snapshot ends at {end}")
        return min(earliest, end)
