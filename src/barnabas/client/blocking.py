"""The client for code without an event loop: Spark tasks, scripts, tests. Plain sockets, no thread.

Owns the connections. The plans make all decisions; this module executes them. It closes a connection after any failure, and the
next request opens another one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from barnabas.client import administration, agreement, epochs, operations
from barnabas.client.batches import next_offset
from barnabas.client.cluster import Cluster, Topic
from barnabas.client.config import Address, ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, ConnectionFailed, PartitionError, ResourceError, TimedOut
from barnabas.client.interruption import Interrupted
from barnabas.client.plans import ANY_BROKER, Call, Now, Pause, Plan
from barnabas.client.results import (
    CommittedOffset,
    CreatedTopic,
    Fetched,
    ListedOffset,
    NewTopic,
    Produced,
    TopicPartition,
)
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Buffer

R = TypeVar("R")


class BlockingClient:
    """A blocking client. Not for several threads at once.

    Args:
        config: servers and settings; `BlockingClient.to("host:port")` for the defaults.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.cluster = Cluster()
        self._connections: dict[Address, Connection] = {}
        self.settle: Callable[[], None] | None = None  # receives what a producer has in flight; called before other requests

    @classmethod
    def to(cls, bootstrap_servers: str) -> BlockingClient:
        """A client of the cluster behind these servers, with the defaults; raises ConfigError."""
        return cls(ClientConfig.from_options({"bootstrap.servers": bootstrap_servers}))

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the client may be used again, over new ones."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def run(self, plan: Plan[R]) -> R:
        """Run a plan. Raises Interrupted at any point if the `interruption` of the configuration says so."""
        outcome: Any = None
        interruption = self.config.interruption
        try:
            while True:
                instruction = plan.send(outcome)
                if interruption is not None:
                    interruption.check()
                if isinstance(instruction, Now):
                    outcome = time.monotonic() * 1000
                elif isinstance(instruction, Pause):
                    (time.sleep if interruption is None else interruption.pause)(instruction.milliseconds / 1000)
                    outcome = None
                else:
                    outcome = self._carry_out(instruction)
        except StopIteration as end:
            result: R = end.value
            return result

    def _carry_out(self, calls: Sequence[Call]) -> list[Any]:
        if calls and self.settle is not None:
            self.settle()
        sent: list[Connection | ClientError] = []
        for call in calls:
            try:
                connection = self.connection_to(call.node_id)
                self._guarded(connection, connection.send, call)
                sent.append(connection)
            except ClientError as error:
                sent.append(error)
        answers: list[Any] = []
        for item in sent:
            try:
                answers.append(item if isinstance(item, ClientError) else self._guarded(item, item.receive))
            except ClientError as error:
                answers.append(error)
        return answers

    def _guarded(self, connection: Connection, action: Any, *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except (ConnectionFailed, TimedOut, Interrupted):
            self.drop(connection)
            raise

    def drop(self, connection: Connection) -> None:
        """Close a connection that failed."""
        connection.close()
        self._connections = {a: c for a, c in self._connections.items() if c is not connection}

    def connection_to(self, node_id: int) -> Connection:
        """The connection to a broker, or to any broker that answers; opened if there is none."""
        broker = self.cluster.brokers.get(node_id)
        if broker is not None:
            return self._connection((broker.host, broker.port))
        last: ClientError | None = None
        for address in self.cluster.addresses(node_id, self._connections, self.config.bootstrap_servers):
            try:
                return self._connection(address)
            except (ConnectionFailed, TimedOut) as error:
                last = error
        assert last is not None  # parse_servers refuses an empty list
        raise last

    def _connection(self, address: Address) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(address, self.config)
        return self._connections[address]

    @property
    def has_second_transactions(self) -> bool:
        """Whether the cluster supports version 2 of transactions (KIP-890)."""
        return self.connection_to(ANY_BROKER).wire.feature_level("transaction.version") >= 2

    def topics(self) -> dict[str, Topic]:
        """Every topic of the cluster."""
        return self.run(operations.all_topics(self.config, self.cluster))

    def topics_by_name(self, names: Sequence[str]) -> dict[str, Topic]:
        """The topics of `names` that exist; all brokers agree that the others do not."""
        return self.run(operations.topics_by_name(self.config, self.cluster, names))

    def agreed_topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of `names` that exist according to all brokers. Asks every broker, because a single answer may be
        outdated."""
        return self.run(agreement.agreed_topics(self.config, self.cluster, names))

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool | None = None
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset for each partition's timestamp: milliseconds, or LATEST, EARLIEST, MAX_TIMESTAMP.

        Args:
            read_committed: overrides the configuration; False also counts records of open transactions.
        """
        config = self.config if read_committed is None else replace(self.config, read_committed=read_committed)
        return self.run(operations.list_offsets(config, self.cluster, timestamps))

    def end_of_epoch(self, topic: str, partition: int, epoch: int) -> int:
        """The offset behind the last record of a leader epoch, or of the last earlier one that the log has; -1 if it has none."""
        return self.run(epochs.end_of_epoch(self.config, self.cluster, (topic, partition), epoch))

    def fetch(self, topic: str, partition: int, offset: int, *, max_bytes: int | None = None) -> Fetched:
        """Raw batches from the one that holds `offset` on; empty if none came within `fetch_max_wait_ms`."""
        return self.run(operations.fetch(self.config, self.cluster, topic, partition, offset, max_bytes))

    def produce(self, topic: str, partition: int, batch: Buffer, *, acks: int = -1) -> Produced:
        """Append a finished batch; a retry after a lost response may append it twice, unless it has a producer id."""
        return self.run(operations.produce(self.config, self.cluster, topic, partition, batch, acks=acks))

    def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; raises ResourceError for the first that was refused (the others may have been created)."""
        return self.run(administration.create_topics(self.config, self.cluster, topics, validate_only=validate_only))

    def ensure_topic(self, wanted: NewTopic) -> None:
        """Create a topic unless it is there, or somebody else creates it now. Raises ResourceError."""
        if wanted.name in self.topics_by_name([wanted.name]):
            return
        try:
            self.create_topics([wanted])
        except ResourceError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def create_partitions(self, topic: str, count: int) -> None:
        """Increase the partitions of `topic` to `count`."""
        self.run(administration.create_partitions(self.config, self.cluster, topic, count))

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics by name; raises ResourceError for the first that was refused."""
        self.run(administration.delete_topics(self.config, self.cluster, names))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before an offset of each partition (-1: all records)."""
        self.run(administration.delete_records(self.config, self.cluster, before))

    def describe_topic_config(self, topic: str, *, only_own: bool = False) -> dict[str, str | None]:
        """The configuration of `topic`, by key: with the defaults, or only its own settings."""
        return self.run(administration.describe_topic_config(self.config, self.cluster, topic, only_own=only_own))

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: str | Mapping[TopicPartition, str] = "", *,
        timeout_ms: int | None = None,
    ) -> None:  # fmt: skip
        """Commit offsets for a group without members, so that lag tools see its progress."""
        config = self.config if timeout_ms is None else replace(self.config, default_api_timeout_ms=timeout_ms)
        self.run(administration.commit_offsets(config, self.cluster, group, offsets, metadata))

    def committed_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The committed offset of `group` for each of `partitions`; -1 if it has none."""
        return self.run(administration.committed_offsets(self.config, self.cluster, group, partitions))


FIRST_BYTES_PER_OFFSET = 1024.0  # estimate before the first response
LEAST_FETCH_BYTES = 64 << 10


class PartitionReader:
    """Reads one partition forward, always one request ahead: while the caller handles a response, the broker prepares the next.

    It requests about as many bytes as the rest of the range has, estimated from the last response. Requests of `fetch_bytes`
    would waste most of them for a small range, and at the end of every other range.

    Args:
        client: used only by this reader until it is closed.
        offset, end: reads records in [offset, end); a response may begin before and end after this range.
    """

    def __init__(self, client: BlockingClient, topic: str, partition: int, offset: int, end: int) -> None:
        self._client = client
        self._topic, self._partition = topic, partition
        self.offset = offset  # offset of the next record to return
        self.end = end
        self._bytes_per_offset = FIRST_BYTES_PER_OFFSET
        self._connection: Connection | None = None  # the connection with the request in flight

    def read(self) -> Fetched:
        """The next batches, in a buffer that the next call reuses.

        Raises:
            PartitionError: OFFSET_OUT_OF_RANGE, or an error that remained after the retries.
            ClientError: no response in time.
        """
        answer = self._read_ahead() if self._connection is not None else None
        if answer is None:
            answer = self._client.fetch(self._topic, self._partition, self.offset, max_bytes=self._likely_bytes())
        position, self.offset = self.offset, next_offset(answer.records, self.offset)
        if self.offset > position:
            self._bytes_per_offset = len(answer.records) / (self.offset - position)
        if self.offset < self.end:
            self._send()
        return answer

    def go_on_from(self, offset: int) -> None:
        """Continue at another offset."""
        self.close()
        self.offset = offset

    def close(self) -> None:
        """End the request in flight."""
        if self._connection is not None:
            self._client.drop(self._connection)
            self._connection = None

    def _likely_bytes(self) -> int:
        return max(LEAST_FETCH_BYTES, int((self.end - self.offset) * self._bytes_per_offset * 1.25))

    def _send(self) -> None:
        client = self._client
        with contextlib.suppress(ClientError, PartitionError):  # after an error, `fetch` reads the records with its own retries
            limit = self._likely_bytes()
            call = operations.fetch_call(client.config, client.cluster, self._topic, self._partition, self.offset, limit)
            connection = client.connection_to(call.node_id)
            connection.send(call)
            self._connection = connection

    def _read_ahead(self) -> Fetched | None:
        connection, self._connection = self._connection, None
        assert connection is not None
        try:
            response = connection.receive(reuse=True)
        except ClientError:
            self._client.drop(connection)
            return None
        try:
            return operations.receive_fetch(self._client.cluster, self._topic, self._partition, response)
        except PartitionError as error:
            if error.code.retriable:
                return None
            raise
