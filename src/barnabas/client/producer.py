"""Sends finished batches to the leaders of their partitions, several requests ahead of the answers. For the blocking client.

Owns the sequence numbers, the queue of batches and the batches in flight.

Rules
  1. Batches of a partition arrive in the order of `send`. An idempotent producer (one with an owner) neither duplicates nor
     loses a batch by its retries.
  2. At most MAX_IN_FLIGHT requests are in flight to a broker, each with at most one batch of a partition: a broker keeps the
     last five batches of a producer, so it recognises each repeated one.
  3. After the first transient error, no other batch is sent until every batch without a response has been sent again: one at a
     time, in order, with the retries of `operations.produce`.
  4. All batches go to the topic that had the name at the first batch, unless `any_topic` is set. Usually the placement of
     batches depends on its number of partitions, and a topic that replaces it may have fewer.
  5. A request that is not the producer's own waits for the answers in flight: a connection answers in the order of its requests.
  6. After an error the producer is unusable: it does not know which batches arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import UUID

from msgspec import Struct

from barnabas.client import operations, transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, PartitionError
from barnabas.client.plans import Plan
from barnabas.client.results import TopicPartition
from barnabas.client.transactions import Owner
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.records.batch_header import MAX_SEQUENCE
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.seal import Stamp, seal_batch

MAX_IN_FLIGHT = 5
REQUEST_BYTES = 1 << 20  # approximate size; a request has at least one batch


class _Batch(Struct, frozen=True):
    place: TopicPartition
    data: bytes
    count: int = 0


class BatchProducer:
    """The producer of one write attempt.

    Args:
        client: of one producer at a time; other requests of it may come in between.
        owner: producer id and epoch; makes the producer idempotent.
        transactional_id: every batch is part of its open transaction; needs `owner`.
        second_version: whether the first write adds a partition to the transaction (KIP-890).
        now_ms: the wall clock, for the time of the records.
        any_topic: batches may also go to a topic that replaces the first one; False if their placement depends on the number of
            partitions.
    """

    def __init__(
        self,
        client: BlockingClient,
        now_ms: Callable[[], int],
        *,
        owner: Owner | None = None,
        transactional_id: str | None = None,
        second_version: bool = True,
        acks: int = -1,
        codec: Compression = Compression.NONE,
        any_topic: bool = False,
        creates_topics: bool = True,
    ) -> None:
        self._client = client
        self._now_ms = now_ms
        self._owner = owner
        self._transactional_id = transactional_id
        self._joins_by_itself = second_version or transactional_id is None
        self._at_most = None if self._joins_by_itself else transactions.LAST_FIRST_VERSION_PRODUCE
        self._acks = acks
        self._codec = codec
        self._any_topic = any_topic
        self._creates_topics = creates_topics
        self._sequences: dict[TopicPartition, int] = {}
        self._ids: dict[str, UUID] = {}  # topic name -> id
        self._joined: set[TopicPartition] = set()
        self._queue: list[_Batch] = []
        self._queued_bytes = 0
        self._in_flight: dict[Connection, deque[list[_Batch]]] = {}
        client.settle = self._settle
        self.ends: dict[TopicPartition, int] = {}  # behind the last acknowledged record; not of a batch that was written twice

    def send(self, place: TopicPartition, room: bytearray | memoryview, count: int, times: tuple[int, int] | None = None) -> None:
        """Finish a batch (see `seal_batch`) and send it, at once or with the next ones.

        Args:
            times: the base and the greatest time of the records, in milliseconds; None: they get the time of the wall clock.

        Raises:
            PartitionError: a broker refused this or an earlier batch.
            ClientError: no answer in time.
        """
        if place[0] in self._client.cluster.topics:
            self._id_of(place[0])
        stamp = Stamp()
        if self._owner is not None:
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = (sequence + count) & MAX_SEQUENCE
            stamp = Stamp(*self._owner, sequence, self._transactional_id is not None)
        base_ms, max_ms = (self._now_ms(), None) if times is None else times
        batch = _Batch(place, seal_batch(room, count, base_ms, stamp, self._codec, max_ms), count)
        self._queue.append(batch)
        self._queued_bytes += len(batch.data)
        if self._queued_bytes >= REQUEST_BYTES:
            self._dispatch()

    def flush(self) -> None:
        """Wait until every batch is acknowledged; raises like `send`."""
        self._dispatch()
        self._settle()

    def _settle(self) -> None:
        """Receive every answer in flight."""
        for connection in list(self._in_flight):
            while self._in_flight.get(connection):
                self._receive(connection)

    def close(self) -> None:
        """End the requests in flight; batches without an acknowledgement may or may not arrive."""
        self._client.settle = None
        for connection, requests in self._in_flight.items():
            if requests:
                self._client.drop(connection)
        self._in_flight.clear()
        self._queue.clear()

    def _dispatch(self) -> None:
        client = self._client
        while self._queue:
            topics = {b.place[0] for b in self._queue}
            creates = self._creates_topics and not topics <= self._ids.keys()  # one that was written to and is gone stays so
            self._run(operations.topics_to_write(client.config, client.cluster, topics, creates=creates))
            for topic in topics:
                self._run(operations.still_the_same(client.config, client.cluster, topic, self._id_of(topic)))
            self._join()
            try:
                leader = operations.leading(client.cluster, *self._queue[0].place)[1].leader
                self._send_request(leader)
            except (ClientError, PartitionError) as error:
                self._repair(error)
                if self._queue:
                    self._produce_again(self._take_first())

    def _id_of(self, topic: str) -> UUID:
        """The id of the topic that batches for this name must go to; ZERO_UUID if any topic is acceptable."""
        if self._any_topic:
            return ZERO_UUID
        return self._ids.setdefault(topic, self._client.cluster.topics[topic].topic_id)

    def _take_first(self) -> _Batch:
        first = self._queue.pop(0)
        self._queued_bytes -= len(first.data)
        return first

    def _next_request(self, leader: int) -> list[_Batch]:
        """Batches for one broker; the others stay in the queue, in order."""
        chosen: list[_Batch] = []
        rest: list[_Batch] = []
        waiting: set[TopicPartition] = set()
        size = 0
        for batch in self._queue:
            fits = size < REQUEST_BYTES and batch.place not in waiting
            if fits and self._leader_of(batch.place) == leader:
                chosen.append(batch)
                size += len(batch.data)
            else:
                rest.append(batch)
            waiting.add(batch.place)
        self._queue = rest
        self._queued_bytes -= size
        return chosen

    def _leader_of(self, place: TopicPartition) -> int | None:
        """The leader of a partition; None without one: then the batch waits until it is the first of the queue."""
        try:
            return self._client.cluster.leader_of(*place)[1].leader
        except PartitionError:
            return None

    def _send_request(self, leader: int) -> None:
        connection = self._client.connection_to(leader)
        while len(self._in_flight.get(connection, ())) >= MAX_IN_FLIGHT:
            if not self._receive(connection):
                return
        batches = self._next_request(leader)
        self._in_flight.setdefault(connection, deque()).append(
            batches
        )  # record the batches before the send, so that they are sent again if the send fails
        connection.send(self._call(leader, batches))

    def _call(self, leader: int, batches: list[_Batch]) -> Any:
        data = {batch.place: batch.data for batch in batches}
        client = self._client
        return operations.produce_call(
            client.config, client.cluster, leader, data, self._acks, self._transactional_id, self._at_most
        )

    def _receive(self, connection: Connection) -> bool:
        """Receive the oldest response; False if it had to send all batches in flight again."""
        try:
            response = connection.receive()
            for topic in response.responses:
                for item in topic.partition_responses:
                    name = topic.name or self._name_of(topic.topic_id)
                    if item.error_code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                        raise PartitionError(ErrorCode(item.error_code), name, item.index, item.error_message)
                    self._acknowledged((name, item.index), item.base_offset, self._in_flight[connection][0])
        except (ClientError, PartitionError) as error:
            self._repair(error)
            return False
        self._in_flight[connection].popleft()
        return True

    def _acknowledged(self, place: TopicPartition, base_offset: int, batches: list[_Batch]) -> None:
        if base_offset >= 0:
            count = next((each.count for each in batches if each.place == place), 0)
            self.ends[place] = max(self.ends.get(place, 0), base_offset + count)

    def _name_of(self, topic_id: object) -> str:
        return next((t.name for t in self._client.cluster.topics.values() if t.topic_id == topic_id), str(topic_id))

    def _repair(self, error: ClientError | PartitionError) -> None:
        """Send batches without a response again, in order and one at a time; raises if that fails."""
        unanswered = [batch for requests in self._in_flight.values() for batches in requests for batch in batches]
        for connection in self._in_flight:
            self._client.drop(connection)
        self._in_flight.clear()
        if isinstance(error, PartitionError) and not error.code.retriable:
            raise error
        client = self._client
        for batch in unanswered:
            client.cluster.forget(batch.place[0])
        for batch in unanswered:
            self._produce_again(batch)

    def _produce_again(self, batch: _Batch) -> None:
        client = self._client
        plan = operations.produce(
            client.config,
            client.cluster,
            *batch.place,
            batch.data,
            acks=self._acks,
            transactional_id=self._transactional_id,
            at_most=self._at_most,
            topic_id=self._ids.get(batch.place[0]),
        )
        try:
            self._acknowledged(batch.place, self._run(plan).base_offset, [batch])
        except PartitionError as error:
            if error.code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                raise

    def _join(self) -> None:
        """Add the partitions of the next writes to a transaction of version 1."""
        if self._joins_by_itself:
            return
        fresh = {batch.place for batch in self._queue} - self._joined
        if fresh:
            assert self._transactional_id is not None
            assert self._owner is not None
            client = self._client
            self._run(transactions.add_partitions(client.config, client.cluster, self._transactional_id, self._owner, fresh))
            self._joined |= fresh

    def _run(self, plan: Plan[Any]) -> Any:
        return self._client.run(plan)
