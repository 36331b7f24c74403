"""Asks the leaders of a topic what is new, all partitions at once, and takes it into the live rows.

One Fetch from each leader tells the records from a position on, the last stable offset and the log start offset, and the broker checks
the caller's right to read. So a look at a table without news takes one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from uuid import UUID

from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError
from barnabas.client.operations import fetch_calls, known, receive_fetch
from barnabas.client.plans import Plan, retrying
from barnabas.client.results import EARLIEST, Fetched
from barnabas.columnar.decode import RecordDecoder
from barnabas.error_codes import ErrorCode
from barnabas.sql.live.few_records import few_records
from barnabas.sql.live.rows import LivePartition, LiveRows


class TableChanged(Exception):
    """The topic is another one, or lost records that the rows have: they must be read anew."""


class NewRecords:
    """Reads what is new in one topic.

    Args:
        client: of the caller, whose rights count.
        topic_id: another id raises TableChanged.
        config: of the Fetch; by default it does not wait.
    """

    def __init__(self, client: BlockingClient, topic: str, topic_id: UUID, config: ClientConfig | None = None) -> None:
        self._client, self._topic, self._topic_id = client, topic, topic_id
        self._config = config or replace(client.config, read_committed=True, fetch_max_wait_ms=0, fetch_min_bytes=0)

    def follow(self, rows: LiveRows, lock: AbstractContextManager[Any], most_bytes: int) -> bool:
        """Take everything that is committed at this moment; False if the rows need more memory than `most_bytes`.

        Args:
            lock: held while the rows change, not while an answer is awaited.

        Raises:
            TableChanged: the rows are no longer right.
            PartitionError, ClientError: the cluster refused, or did not answer.
        """
        ends: dict[int, int] = {}
        for partition in self.partitions():
            if partition not in rows.partitions:
                start = self._client.list_offsets({(self._topic, partition): EARLIEST})[self._topic, partition].offset
                rows.partitions[partition] = LivePartition(start)
        while True:
            behind = {
                index: each.position
                for index, each in rows.partitions.items()
                if index not in ends or each.position < ends[index]
            }
            if not behind:
                return True
            answers = self._client.run(self.fetch(behind))
            with lock:
                for partition, answer in answers.items():
                    ends.setdefault(partition, answer.last_stable_offset)
                    take(rows, self._topic, partition, behind[partition], answer)
            if rows.size > most_bytes:
                return False

    def partitions(self) -> list[int]:
        """The numbers of the partitions. Raises TableChanged."""
        found = self._client.cluster.topics.get(self._topic)
        if found is None or found.topic_id != self._topic_id:
            found = self._client.topics_by_name([self._topic]).get(self._topic)
            if found is None or found.topic_id != self._topic_id:
                raise TableChanged
        return sorted(found.partitions)

    def fetch(self, positions: Mapping[int, int]) -> Plan[dict[int, Fetched]]:
        """One answer of each partition. Raises TableChanged."""
        config, cluster = self._config, self._client.cluster

        def attempt() -> Plan[dict[int, Fetched]]:
            yield from known(config, cluster, [(self._topic, each) for each in positions])
            calls = fetch_calls(config, cluster, self._topic, positions)
            answers = yield [call for call, _ in calls]
            found = {}
            for (_, partitions), answer in zip(calls, answers, strict=True):
                if isinstance(answer, ClientError):
                    cluster.forget(self._topic)
                    raise answer
                for partition in partitions:
                    found[partition] = received(cluster, self._topic, partition, answer)
            return found

        return (yield from retrying(config, f"records of {self._topic}", attempt))


def received(cluster: Cluster, topic: str, partition: int, answer: Any) -> Fetched:
    """The part of a Fetch's answer for a partition. Raises TableChanged, PartitionError."""
    try:
        return receive_fetch(cluster, topic, partition, answer)
    except PartitionError as error:
        if error.code in (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_ID):
            raise TableChanged from error
        raise


def take(rows: LiveRows, topic: str, partition: int, asked: int, answer: Fetched) -> None:
    """Take the answer of a Fetch into the rows, behind that which another look has taken meanwhile. Raises TableChanged.

    Args:
        asked: the position that the Fetch was for.
    """
    part = rows.partitions[partition]
    start = part.position
    if start < asked:
        return
    if answer.last_stable_offset < asked:
        raise TableChanged
    few = few_records(answer, start) if len(answer.records) else None
    if few is not None:
        rows.take_few(partition, few)
        part.position = few.end
    elif len(answer.records):
        decoder = RecordDecoder(topic, partition)
        for batch in decoder.decode(answer.records, start, aborted=answer.aborted):
            rows.take(partition, batch)
        part.position = max(start, next_offset(answer.records, start))
    if answer.log_start_offset > part.log_start:
        part.drop_before(answer.log_start_offset)
        rows.changes += 1
