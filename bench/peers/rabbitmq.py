"""RabbitMQ's streams: one stream for each partition, with its stream protocol, which its documentation calls the fastest
interface.

A Publish frame carries any number of messages, each with an id that is confirmed. Chunks of a stream are sent as they are on
disk, one for each credit. Confirmations cannot be turned off.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence
from struct import Struct

from bench.peers.peer import CannotDo, Message, Setting
from bench.peers.rabbitmq_node import NO_PASSWORD, RabbitNode, Talk
from bench.peers.redis import value
from bench.peers.streams import streams_of
from bench.wire import BadAnswer

DECLARE_PUBLISHER, PUBLISH, CONFIRM, SUBSCRIBE, DELIVER, CREDIT = 1, 2, 3, 7, 8, 9
METADATA = 15
CREATE, DELETE, PEER_PROPERTIES, SASL_HANDSHAKE, SASL_AUTHENTICATE, TUNE, OPEN = 13, 14, 17, 18, 19, 20, 21
FIRST, LAST = 1, 2  # start positions of a subscription
OK = 1
MOST_STREAMS = 1_000  # with 5,000 subscriptions, RabbitMQ's readers crash one after the other
MOST_SUBSCRIPTIONS = 200  # per connection; subscription ids have one byte
CREDITS = 10  # chunks sent or being processed; the initial value of RabbitMQ's Java client
EMPTY_AFTER_S = 0.3  # a stream without a chunk for this time counts as empty
_HEAD = Struct(">IHH")  # size, key, version
_CHUNK = Struct(">BBBHIqQQ")  # subscription id; magic, type, entries, records, timestamp, epoch, first offset
_CONFIRM = Struct(">BI")


def text(words: str) -> bytes:
    return len(words).to_bytes(2, "big") + words.encode()


def frame(key: int, body: bytes) -> bytes:
    return _HEAD.pack(4 + len(body), key, 1) + body


class StreamTalk(Talk):
    """A connection that speaks the stream protocol."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self._chunks: list[bytes] = []
        self.ask(PEER_PROPERTIES, bytes(4))
        self.ask(SASL_HANDSHAKE)
        self.ask(SASL_AUTHENTICATE, text("PLAIN") + len(NO_PASSWORD).to_bytes(4, "big") + NO_PASSWORD)
        key, body = self._receive()
        if key != TUNE:
            raise BadAnswer(f"frame {key} where the limits were expected")
        self.socket.sendall(frame(TUNE, body[:4] + bytes(4)))  # turns heartbeats off
        self.ask(OPEN, text("/"))

    def _receive(self) -> tuple[int, bytes]:
        size, key, _ = _HEAD.unpack(self.exactly(_HEAD.size))
        return key, self.exactly(size - 4)

    def ask(self, key: int, body: bytes = b"") -> None:
        """Send a request and check its answer; chunks that arrive before it are kept."""
        self.socket.sendall(frame(key, bytes(4) + body))
        answered, answer = self._receive()
        while answered == DELIVER:
            self._chunks.append(answer)
            answered, answer = self._receive()
        code = int.from_bytes(answer[4:6], "big")
        if answered != key | 0x8000 or code != OK:
            raise BadAnswer(f"request {key} was answered with frame {answered:#x} and code {code}")

    def make(self, stream: str) -> None:
        self.ask(CREATE, text(stream) + bytes(4))

    def remove(self, stream: str) -> None:
        self.ask(DELETE, text(stream))

    def subscribe(self, stream: str, where: int, credits_: int, number: int = 0) -> None:
        body = bytes([number]) + text(stream) + where.to_bytes(2, "big") + credits_.to_bytes(2, "big") + bytes(4)
        self.ask(SUBSCRIBE, body)

    def last_offsets(self, streams: Sequence[str], within_s: float) -> int:
        """The sum of the ends of the streams' last chunks; 0 for a stream from which no chunk arrives within `within_s` after
        the last arrival."""
        for number, stream in enumerate(streams):
            self.subscribe(stream, LAST, 1, number)
        poller = select.poll()  # `select` supports only small descriptors
        poller.register(self.socket, select.POLLIN)
        while len(self._chunks) < len(streams) and poller.poll(within_s * 1000):
            key, chunk = self._receive()
            if key != DELIVER:
                raise BadAnswer(f"frame {key:#x} where a chunk was expected")
            self._chunks.append(chunk)
        heads = [_CHUNK.unpack_from(chunk) for chunk in self._chunks]
        return sum(first + records for _, _, _, _, records, _, _, first in heads)


class RabbitMq(RabbitNode):
    """One node with the stream plugin."""

    name = "RabbitMQ streams"
    nudge = frame(METADATA, bytes(8))  # requests the metadata of no stream
    settings = (
        Setting("enabled_plugins", "rabbitmq_stream", "rabbitmq.com, Stream plugin: the protocol for the highest throughput"),
        Setting("queue type", "stream", "rabbitmq.com, Streams: for large logs, many consumers and throughput"),
        Setting("stream.frame_max", "0", "rabbitmq.com, Stream plugin: no limit, for messages of more than 1 MB"),
    )

    def port_of(self, amqp: int, streams: int) -> int:
        return streams

    def talk(self) -> StreamTalk:
        return StreamTalk(self.address)

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        if partitions > MOST_STREAMS:
            raise CannotDo(f"it breaks with more than {MOST_STREAMS:,} streams and as many subscriptions")
        super().create(topic, partitions, largest_bytes=largest_bytes)

    def stored(self, topic: str, partitions: int) -> int:
        streams, total = streams_of(topic, partitions), 0
        for at in range(0, partitions, MOST_SUBSCRIPTIONS):
            talk = self.talk()
            with talk.socket:
                total += talk.last_offsets(streams[at : at + MOST_SUBSCRIPTIONS], EMPTY_AFTER_S)
        return total

    def line(self, streams: Sequence[str], message: Message, requests: int, window: int) -> _Publisher:
        if not message.acks:
            raise CannotDo("a stream confirms whatever is published")
        talk = self.talk()
        for publisher, stream in enumerate(streams):
            talk.ask(DECLARE_PUBLISHER, bytes([publisher]) + text("") + text(stream))
        return _Publisher(talk.socket, len(streams), message, requests, window)

    def receiver(self, stream: str, message: Message, pull: int) -> _Subscriber:
        return _Subscriber(self.talk(), stream)


class _Publisher:
    """One connection that publishes to streams in turn; it has a numbered publisher for each."""

    is_answered = True

    def __init__(self, line: socket.socket, streams: int, message: Message, requests: int, window: int) -> None:
        size = message.value_bytes.to_bytes(4, "big")
        messages = b"".join(
            number.to_bytes(8, "big") + size + value(message.value_bytes, number) for number in range(message.batch)
        )
        head, publishers = message.batch.to_bytes(4, "big"), [number % streams for number in range(requests)]
        self.chunk = b"".join(frame(PUBLISH, bytes([publisher]) + head + messages) for publisher in publishers)
        self.requests, self.window = requests, window
        self.socket = line
        self._batch, self._confirmed = message.batch, 0

    def take(self, received: memoryview) -> tuple[int, int]:
        position = 0
        while position + _HEAD.size + _CONFIRM.size <= len(received):
            size, key, _ = _HEAD.unpack_from(received, position)
            if position + 4 + size > len(received):
                break
            if key != CONFIRM:
                raise BadAnswer(f"frame {key:#x} where confirmations were expected")
            self._confirmed += _CONFIRM.unpack_from(received, position + _HEAD.size)[1]
            position += 4 + size
        answers, self._confirmed = divmod(self._confirmed, self._batch)
        return answers, position


class _Subscriber:
    """One connection that receives a stream from its beginning."""

    def __init__(self, talk: StreamTalk, stream: str) -> None:
        self.socket = talk.socket
        self._talk, self._stream = talk, stream
        self._next = 0

    def begin(self) -> None:
        self._talk.subscribe(self._stream, FIRST, CREDITS)

    def take(self, received: memoryview) -> tuple[int, int]:
        position = came = 0
        while position + _HEAD.size + _CHUNK.size <= len(received):
            size, key, _ = _HEAD.unpack_from(received, position)
            if position + 4 + size > len(received):
                break
            if key != DELIVER:
                raise BadAnswer(f"frame {key:#x} where a chunk was expected")
            _, _, _, _, records, _, _, first = _CHUNK.unpack_from(received, position + _HEAD.size)
            if first != self._next:
                raise BadAnswer(f"a chunk at {first}, expected one at {self._next}")
            self._next += records
            came += records
            position += 4 + size
            self.socket.sendall(frame(CREDIT, b"\0\0\1"))
        return came, position
