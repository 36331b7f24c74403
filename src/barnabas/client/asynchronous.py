"""The client for code with an event loop: the same plans as the blocking one, with requests pipelined on a connection.

Owns the transports. Several tasks may use one client at once: requests to one broker share its connection and are answered in order.

Rules
  1. A failure of a connection, or the timeout of one request, fails all requests in flight on it; the next request opens
     another connection. This is also true for a request that its caller has cancelled. Otherwise a dead connection would stay
     if every caller stops waiting before `request.timeout.ms`.
  2. A frame is read once, into memory of its size: a Fetch response is not copied, except for its start, which arrives with the
     size in one read. A small response arrives in one read. The memory of a large response is reused for the next one after its
     last view is gone. Filling new memory with zeros would take a tenth of a follower's time.
  3. One timer runs for all requests in flight on a connection, set for the oldest of them.
  4. A streamed response (`request_streamed`) passes through memory of `STREAM_BYTES`, which grows for a larger batch. Each part of it
     renews the timeout. After each piece the loop gets a turn before the next is read.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_hex
from types import TracebackType
from typing import Any, TypeVar, cast

from barnabas import limits
from barnabas.client import administration, operations
from barnabas.client.cluster import Cluster, Topic
from barnabas.client.config import Address, ClientConfig
from barnabas.client.errors import ClientError, ConnectionFailed, TimedOut
from barnabas.client.plans import Call, Now, Pause, Plan
from barnabas.client.results import (
    CommittedOffset,
    CreatedTopic,
    Fetched,
    ListedOffset,
    NewTopic,
    Produced,
    TopicPartition,
)
from barnabas.client.sasl import RENEWED_AFTER, Credentials, log_in
from barnabas.client.streamed_fetch import FetchStream, StreamMemory
from barnabas.client.wire import Wire, size_of_frame
from barnabas.errors import BarnabasError, KafkaError, ProtocolError
from barnabas.protocol.base_message import Buffer
from barnabas.tls.failures import reason_of

LARGE_BYTES = 128 * 1024  # a frame larger than this gets a buffer of its own
START_BYTES = 16 * 1024  # bytes received together with the frame's size; copying them is faster than a second read
R = TypeVar("R")


class AsyncConnection(asyncio.BufferedProtocol):
    """One transport and its `Wire`."""

    def __init__(self, address: Address, config: ClientConfig) -> None:
        self.name = f"{address[0]}:{address[1]}"
        self._host = address[0]
        self.wire = Wire(config.client_id)
        self._credentials = config.credentials
        self._renewing: asyncio.Lock | None = None  # None if the session has no end
        self._renew_at_s = math.inf
        self._timeout_ms = config.request_timeout_ms
        self._transport: asyncio.Transport | None = None
        self._start = memoryview(bytearray(START_BYTES))  # receives bytes until the size of the next frame is known
        self._frame: memoryview | None = None  # buffer of the incoming frame, after its size is known
        self._filled = 0  # bytes filled in the current buffer
        self._large = bytearray()  # the buffer of the last large frame
        # future, deadline and stream of each request in flight, the oldest first
        self._waiting: deque[tuple[asyncio.Future[Any], float, FetchStream | None]] = deque()
        self._streaming: StreamMemory | None = None  # the incoming response, if it is streamed
        self._timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()
        self.lost: ClientError | None = None

    @classmethod
    async def open(cls, address: Address, config: ClientConfig) -> AsyncConnection:
        """Connect, agree on versions and log in; raises ConnectionFailed, LoginFailed or TimedOut."""
        connection = cls(address, config)
        try:
            async with asyncio.timeout(config.socket_connection_setup_timeout_ms / 1000):
                tls: dict[str, Any] = {} if config.tls is None else {"ssl": config.tls()}
                await asyncio.get_running_loop().create_connection(lambda: connection, *address, **tls)
        except OSError as error:  # includes TimeoutError
            raise ConnectionFailed(connection.name, reason_of(error) or "no connection in time") from error
        try:
            frame: bytes | None = connection.wire.send_hello()
            while frame is not None:
                frame = connection.wire.receive_hello(await connection._send(frame))
            if config.credentials is not None:
                await connection._log_in(config.credentials)
        except (ProtocolError, KafkaError) as error:
            connection.close()
            raise ConnectionFailed(connection.name, str(error)) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def request(self, call: Call) -> Any:
        """Send and wait for the response; raises ClientError."""
        await self._writable.wait()
        if self._renewing is not None:
            await self._renew()
        if self.lost is not None:
            raise self.lost
        return await self._send(self.wire.send(call.request, call.at_most, call.at_least))

    async def request_streamed(self, call: Call, stream: FetchStream) -> None:
        """Send a Fetch request, and wait until `stream` has taken the whole response; raises ClientError."""
        await self._writable.wait()
        if self._renewing is not None:
            await self._renew()
        if self.lost is not None:
            raise self.lost
        await self._send(self.wire.send(call.request, call.at_most, call.at_least), stream)

    async def _log_in(self, credentials: Credentials) -> None:
        if credentials.come_from_elsewhere:
            credentials = await asyncio.get_running_loop().run_in_executor(None, credentials.at_hand, self._host)
        login = log_in(credentials, self.name, token_hex(16))
        answer: Any = None
        try:
            while True:
                answer = await self._send(self.wire.send(login.send(answer)))
        except StopIteration as end:
            lifetime_ms = end.value
        if lifetime_ms:
            self._renewing = self._renewing or asyncio.Lock()
            self._renew_at_s = asyncio.get_running_loop().time() + lifetime_ms * RENEWED_AFTER / 1000

    async def _renew(self) -> None:
        """Log in again before the session ends (KIP-368); other requests wait."""
        assert self._renewing is not None
        async with self._renewing:
            if asyncio.get_running_loop().time() >= self._renew_at_s and self._credentials is not None:
                await self._log_in(self._credentials)

    def request_at_once(self, call: Call) -> asyncio.Future[Any] | None:
        """Like `request`, but sends at once and without a task; None if it would wait."""
        if self._renewing is not None or self.lost is not None or not self._writable.is_set():
            return None
        return self._send(self.wire.send(call.request, call.at_most, call.at_least))

    def _send(self, frame: bytes, stream: FetchStream | None = None) -> asyncio.Future[Any]:
        if self._transport is None or self.lost is not None:
            raise self.lost or ConnectionFailed(self.name, "closed")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        deadline = loop.time() + self._timeout_ms / 1000
        self._waiting.append((future, deadline, stream))
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._expire)
        self._transport.write(frame)
        return future

    def _expire(self) -> None:
        """The timer expired for the request that was the oldest when it was set; the remaining requests have their own
        deadlines."""
        self._timer = None
        if not self._waiting:
            return
        deadline = self._waiting[0][1]
        loop = asyncio.get_running_loop()
        if deadline > loop.time():
            self._timer = loop.call_at(deadline, self._expire)
        else:
            self._fail(TimedOut(f"answer of {self.name}", self._timeout_ms))

    def close(self) -> None:
        """End the connection; callers that wait for a response get ConnectionFailed."""
        self._fail(ConnectionFailed(self.name, "closed"))

    async def wait_lost(self) -> None:
        """Wait until the connection is lost for any reason."""
        await self._ended.wait()

    def end_if_cut_off(self, after_s: int) -> None:
        """Make the system end the connection when no packet arrives for `after_s` seconds; a slow broker keeps its connection."""
        if self._transport is None:
            return
        end = self._transport.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", 1),  # seconds without a packet until the first probe; then one probe each second
            ("TCP_KEEPINTVL", 1),
            ("TCP_KEEPCNT", max(1, after_s - 1)),
            # ms that sent data may stay unacknowledged; no probes are sent during this time
            ("TCP_USER_TIMEOUT", after_s * 1000),
        ):
            if hasattr(socket, name):  # these options exist only on Linux
                end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's type does not declare a Transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionFailed(self.name, reason_of(exc) if exc else "closed by the broker"))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._streaming is not None:
            return self._streaming.room()
        return (self._start if self._frame is None else self._frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._streaming is not None:
                self._stream(self._streaming, nbytes)
                return
            self._filled += nbytes
            if self._frame is None:
                self._take_start()
            elif self._filled == len(self._frame):
                body, self._frame, self._filled = self._frame, None, 0
                self._deliver(body)
        except BarnabasError as error:
            self._fail(ConnectionFailed(self.name, str(error)))

    def _take_start(self) -> None:
        """Deliver whole frames, and move the beginning of the next one to memory of its own."""
        start, end, position = self._start, self._filled, 0
        while end - position >= 4:
            body_at = position + 4
            behind = body_at + size_of_frame(start[position:body_at])
            stream = self._waiting[0][2] if self._waiting else None
            if stream is not None:
                part = start[body_at : min(end, behind)]
                streaming = self._streaming = StreamMemory(stream, behind - body_at)
                streaming.room()[: len(part)] = part
                self._stream(streaming, len(part))
                if self._streaming is not None:
                    self._filled = 0
                    return
                position = behind
                continue
            body = self._memory(behind - body_at)
            if behind > end:
                body[: end - body_at] = start[body_at:end]
                self._frame, self._filled = body, end - body_at
                return
            body[:] = start[body_at:behind]
            self._deliver(body)
            position = behind
        self._filled = end - position
        start[: self._filled] = start[position:end]

    def _memory(self, size: int) -> memoryview:
        """Memory for a frame of `size` bytes; its content is undefined."""
        if not LARGE_BYTES <= size <= limits.MAX_KEPT_ANSWER_BYTES:
            return memoryview(bytearray(size))
        if len(self._large) < size or _is_looked_at(self._large):
            self._large = bytearray(size)
        return memoryview(self._large)[:size]

    def _stream(self, streaming: StreamMemory, size: int) -> None:
        """Take bytes of a streamed response."""
        used = streaming.take(size, self.wire)
        if streaming.is_done:
            self._streaming = None
            future = self._waiting.popleft()[0]
            if not future.done():
                future.set_result(None)
            return
        future, _, stream = self._waiting[0]
        self._waiting[0] = future, asyncio.get_running_loop().time() + self._timeout_ms / 1000, stream
        if used and self._transport is not None:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._go_on_reading)

    def _go_on_reading(self) -> None:
        if self._transport is not None and self.lost is None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _deliver(self, body: memoryview) -> None:
        response = self.wire.receive(body) if self.wire.ready else body
        future = self._waiting.popleft()[0]
        if not future.done():
            future.set_result(response)

    def _fail(self, error: ClientError) -> None:
        if self.lost is None:
            self.lost = error
        if self._transport is not None:
            self._transport.abort()
        self._ended.set()
        self._writable.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            future = self._waiting.popleft()[0]
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks the error as retrieved: asyncio must not warn if no caller waits any more


def _is_looked_at(data: bytearray) -> bool:
    """Whether a view of `data` exists: then its size cannot change."""
    try:
        data.append(data.pop())
    except BufferError:
        return True
    return False


class AsyncClient:
    """A client for one event loop.

    Args:
        config: servers and settings; `AsyncClient.to("host:port")` for the defaults.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.cluster = Cluster()
        self._connections: dict[Address, AsyncConnection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}

    @classmethod
    def to(cls, bootstrap_servers: str) -> AsyncClient:
        """A client of the cluster behind these servers, with the defaults; raises ConfigError."""
        return cls(ClientConfig.from_options({"bootstrap.servers": bootstrap_servers}))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; the client may be used again, over new ones."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        await asyncio.sleep(0)  # lets the transports report that they are closed

    async def run(self, plan: Plan[R]) -> R:
        """Run a plan."""
        outcome: Any = None
        try:
            while True:
                instruction = plan.send(outcome)
                if isinstance(instruction, Now):
                    outcome = asyncio.get_running_loop().time() * 1000
                elif isinstance(instruction, Pause):
                    await asyncio.sleep(instruction.milliseconds / 1000)
                    outcome = None
                else:
                    outcome = await asyncio.gather(*(self._carry_out(call) for call in instruction))
        except StopIteration as end:
            result: R = end.value
            return result

    async def request(self, call: Call) -> Any:
        """The answer of one broker, without a retry. Raises ClientError."""
        return await (await self._connection_to(call.node_id)).request(call)

    async def request_streamed(self, call: Call, stream: FetchStream) -> None:
        """Have `stream` take the response of one broker to a Fetch request, while it arrives, without a retry. Raises ClientError."""
        await (await self._connection_to(call.node_id)).request_streamed(call, stream)

    async def _carry_out(self, call: Call) -> Any:
        try:
            return await self.request(call)
        except ClientError as error:
            return error

    async def _connection_to(self, node_id: int) -> AsyncConnection:
        broker = self.cluster.brokers.get(node_id)
        if broker is not None:
            return await self._connection((broker.host, broker.port))
        last: ClientError | None = None
        for address in self.cluster.addresses(node_id, self._connections, self.config.bootstrap_servers):
            try:
                return await self._connection(address)
            except (ConnectionFailed, TimedOut) as error:
                last = error
        assert last is not None  # parse_servers refuses an empty list
        raise last

    async def _connection(self, address: Address) -> AsyncConnection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            known = self._connections.get(address)
            if known is not None and known.lost is None:
                return known
            self._connections.pop(address, None)
            self._connections[address] = connection = await AsyncConnection.open(address, self.config)
            return connection

    async def topics(self) -> dict[str, Topic]:
        """Every topic of the cluster, internal ones too."""
        return await self.run(operations.all_topics(self.config, self.cluster))

    async def topics_by_name(self, names: Sequence[str]) -> dict[str, Topic]:
        """The topics of these names that exist; all brokers agree that the others do not. Raises PartitionError if brokers
        refuse a topic that exists."""
        return await self.run(operations.topics_by_name(self.config, self.cluster, names))

    async def list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset]:
        """The offset for each partition's timestamp: milliseconds, or LATEST, EARLIEST, MAX_TIMESTAMP."""
        return await self.run(operations.list_offsets(self.config, self.cluster, timestamps))

    async def fetch(self, topic: str, partition: int, offset: int) -> Fetched:
        """Raw batches from the one that holds `offset` on; empty if none came within `fetch_max_wait_ms`."""
        return await self.run(operations.fetch(self.config, self.cluster, topic, partition, offset))

    async def produce(self, topic: str, partition: int, batch: Buffer, *, acks: int = -1) -> Produced:
        """Append a finished batch; a retry after a lost response may append it twice, unless it has a producer id."""
        return await self.run(operations.produce(self.config, self.cluster, topic, partition, batch, acks=acks))

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; raises ResourceError for the first that was refused (the others may have been created)."""
        return await self.run(administration.create_topics(self.config, self.cluster, topics, validate_only=validate_only))

    async def create_partitions(self, topic: str, count: int) -> None:
        """Increase the partitions of `topic` to `count`."""
        await self.run(administration.create_partitions(self.config, self.cluster, topic, count))

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics by name; raises ResourceError for the first that was refused."""
        await self.run(administration.delete_topics(self.config, self.cluster, names))

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before an offset of each partition (-1: all records)."""
        await self.run(administration.delete_records(self.config, self.cluster, before))

    async def describe_topic_config(self, topic: str, *, only_own: bool = False) -> dict[str, str | None]:
        """The configuration of `topic`, by key: with the defaults, or only its own settings."""
        return await self.run(administration.describe_topic_config(self.config, self.cluster, topic, only_own=only_own))

    async def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Commit offsets for a group without members, so that lag tools see its progress."""
        await self.run(administration.commit_offsets(self.config, self.cluster, group, offsets, metadata))

    async def committed_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The committed offset of `group` for each of `partitions`; -1 if it has none."""
        return await self.run(administration.committed_offsets(self.config, self.cluster, group, partitions))
