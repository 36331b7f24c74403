"""RabbitMQ's queues: one durable classic queue for each partition, over AMQP 0-9-1, as it was measured in 2011.

A message is persistent and confirmed (publisher confirms), with many in flight. Consumers acknowledge many messages at a time. Reading from
a queue removes the message. AMQP has no batch of messages, but a confirmation may cover many.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Sequence
from struct import Struct

from bench.peers.peer import CannotDo, Message, Setting
from bench.peers.rabbitmq_node import NO_PASSWORD, RabbitNode, Talk
from bench.peers.redis import value
from bench.peers.streams import streams_of
from bench.wire import BadAnswer

METHOD, HEADER, BODY, END = 1, 2, 3, b"\xce"
GREETING = b"AMQP\x00\x00\x09\x01"
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
DECLARE, DECLARE_OK, DELETE, DELETE_OK = (50, 10), (50, 11), (50, 40), (50, 41)
QOS, QOS_OK, CONSUME, CONSUME_OK, PUBLISH, DELIVER, ACK = (60, 10), (60, 11), (60, 20), (60, 21), (60, 40), (60, 60), (60, 80)
SELECT, SELECT_OK = (85, 10), (85, 11)
PASSIVE, DURABLE = 1, 2
PERSISTENT_FLAG, PERSISTENT = 0x1000, 2  # flag and value of the property "delivery-mode"
FRAME_MAX = 131_072  # the size that RabbitMQ proposes
LARGEST_PREFETCH = 65_535
TAG = b"c"
_FRAME = Struct(">BHI")  # type, channel, size
_METHOD = Struct(">HH")
_CONTENT = Struct(">HHQHB")  # class, weight, body size, property flags, delivery mode
_CONFIRM = Struct(">BHIHHQBB")  # a whole frame: Basic.Ack with the delivery tag and the flag "multiple"
_TAG_AT = _FRAME.size + _METHOD.size + 1 + len(TAG)  # position of the delivery tag in the first frame of a delivery


def short(words: str) -> bytes:
    return bytes([len(words)]) + words.encode()


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _FRAME.pack(kind, channel, len(payload)) + payload + END


def method(which: tuple[int, int], arguments: bytes, channel: int = 1) -> bytes:
    return frame(METHOD, channel, _METHOD.pack(*which) + arguments)


def content(body: bytes) -> bytes:
    """The frames of a message's header and body."""
    room = FRAME_MAX - _FRAME.size - len(END)
    head = frame(HEADER, 1, _CONTENT.pack(PUBLISH[0], 0, len(body), PERSISTENT_FLAG, PERSISTENT))
    return head + b"".join(frame(BODY, 1, body[at : at + room]) for at in range(0, len(body), room))


VERSION_2 = (len(short("x-queue-version")) + 5).to_bytes(4, "big") + short("x-queue-version") + b"I" + (2).to_bytes(4, "big")


class QueueTalk(Talk):
    """A connection with one channel."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self.socket.sendall(GREETING)
        self._expect(START)
        self.ask(
            START_OK, bytes(4) + short("PLAIN") + len(NO_PASSWORD).to_bytes(4, "big") + NO_PASSWORD + short("en_US"), TUNE, 0
        )
        # the last two bytes turn heartbeats off
        self.socket.sendall(method(TUNE_OK, (1).to_bytes(2, "big") + FRAME_MAX.to_bytes(4, "big") + bytes(2), 0))
        self.ask(OPEN, short("/") + b"\0\0", OPEN_OK, 0)
        self.ask(CHANNEL_OPEN, b"\0", CHANNEL_OPEN_OK)

    def ask(self, which: tuple[int, int], arguments: bytes, answer: tuple[int, int], channel: int = 1) -> bytes:
        """Send a method; returns the arguments of the expected answer. Raises BadAnswer for another answer."""
        self.socket.sendall(method(which, arguments, channel))
        return self._expect(answer)

    def _expect(self, which: tuple[int, int]) -> bytes:
        kind, _, size = _FRAME.unpack(self.exactly(_FRAME.size))
        payload = self.exactly(size + len(END))
        found = _METHOD.unpack_from(payload)
        if kind != METHOD or found != which:
            raise BadAnswer(f"method {found} where {which} was expected: {payload[4:-1]!r}")
        return payload[_METHOD.size : -1]

    def make(self, stream: str) -> None:
        self.declare(stream, DURABLE)

    def remove(self, stream: str) -> None:
        self.declare(stream, PASSIVE)
        self.ask(DELETE, b"\0\0" + short(stream) + b"\0", DELETE_OK)

    def declare(self, queue: str, flags: int) -> int:
        """Declare a queue; returns the number of messages in it."""
        answer = self.ask(DECLARE, b"\0\0" + short(queue) + bytes([flags]) + VERSION_2, DECLARE_OK)
        return int.from_bytes(answer[1 + len(queue) : 5 + len(queue)], "big")


class RabbitMqQueues(RabbitNode):
    """One node with its queues."""

    name = "RabbitMQ queues"
    nudge = method(QOS, bytes(7))  # sets no limits, which is the default
    settings = (
        Setting("queue", "durable, classic", "rabbitmq.com, Queues: what is kept where nothing is replicated"),
        Setting("x-queue-version", "2", "rabbitmq.com, Classic queues: takes more, with less memory"),
        Setting("delivery-mode", "2", "rabbitmq.com, Confirms: a confirmed persistent message is on disk"),
        Setting("confirm.select", "", "rabbitmq.com, Confirms: many in flight rather than one by one"),
        Setting("basic.qos", "what is asked for at a time", "rabbitmq.com, Consumer prefetch: hundreds for throughput"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._read: Counter[str] = Counter()  # queue -> messages that were read, and thus removed from it

    def port_of(self, amqp: int, streams: int) -> int:
        return amqp

    def talk(self) -> QueueTalk:
        return QueueTalk(self.address)

    def stored(self, topic: str, partitions: int) -> int:
        talk = self.talk()
        with talk.socket:
            return sum(talk.declare(queue, PASSIVE) for queue in streams_of(topic, partitions))

    def written(self, topic: str, partitions: int) -> int:
        # Read this counter first: otherwise a message consumed in between would count twice.
        read = sum(self._read[queue] for queue in streams_of(topic, partitions))
        return read + self.stored(topic, partitions)

    def line(self, streams: Sequence[str], message: Message, requests: int, window: int) -> _Publisher:
        if message.batch > 1:
            raise CannotDo("a publication is one message")
        talk = self.talk()
        if message.acks:
            talk.ask(SELECT, b"\0", SELECT_OK)
        return _Publisher(talk.socket, streams, message, requests, window)

    def receiver(self, stream: str, message: Message, pull: int) -> _Consumer:
        return _Consumer(self.talk(), stream, message.value_bytes, min(pull, LARGEST_PREFETCH), self._read)


class _Publisher:
    """One connection that publishes to queues in turn."""

    def __init__(self, line: socket.socket, queues: Sequence[str], message: Message, requests: int, window: int) -> None:
        self.socket = line
        self.is_answered = message.acks != 0
        self.requests, self.window = requests, window
        publish = [method(PUBLISH, b"\0\0" + short("") + short(queue) + b"\0") for queue in queues]
        self.chunk = b"".join(
            publish[number % len(publish)] + content(value(message.value_bytes, number)) for number in range(requests)
        )
        self._floor = 0  # all messages up to this tag are confirmed
        self._above: set[int] = set()  # confirmed messages above `_floor`

    def take(self, received: memoryview) -> tuple[int, int]:
        confirmations = len(received) // _CONFIRM.size
        before = self._floor + len(self._above)
        for number in range(confirmations):
            kind, _, _, of_class, which, tag, is_multiple, _ = _CONFIRM.unpack_from(received, number * _CONFIRM.size)
            if kind != METHOD or (of_class, which) != ACK:
                raise BadAnswer(f"method {of_class}.{which} where confirmations were expected")
            if is_multiple:
                self._floor = max(self._floor, tag)
                self._above = {each for each in self._above if each > tag}
            else:
                self._above.add(tag)
        while self._floor + 1 in self._above:
            self._floor += 1
            self._above.remove(self._floor)
        return self._floor + len(self._above) - before, confirmations * _CONFIRM.size


class _Consumer:
    """One connection that receives a queue. All deliveries have the same size, so they are counted by size, and in `read`."""

    def __init__(self, talk: QueueTalk, queue: str, value_bytes: int, prefetch: int, read: Counter[str]) -> None:
        self.socket = talk.socket
        self._read = read
        self._talk, self._queue, self._prefetch = talk, queue, prefetch
        delivery = method(DELIVER, bytes([len(TAG)]) + TAG + bytes(8) + b"\0" + short("") + short(queue))
        self._size = len(delivery + content(bytes(value_bytes)))
        self._tag = 0

    def begin(self) -> None:
        self._talk.ask(QOS, bytes(4) + self._prefetch.to_bytes(2, "big") + b"\0", QOS_OK)
        self._talk.ask(CONSUME, b"\0\0" + short(self._queue) + bytes([len(TAG)]) + TAG + b"\0" + bytes(4), CONSUME_OK)

    def take(self, received: memoryview) -> tuple[int, int]:
        came = len(received) // self._size
        if not came:
            return 0, 0
        used = came * self._size
        begins, ends = (bytes(received[at : used : self._size]) for at in (0, self._size - 1))
        if begins != bytes([METHOD]) * came or ends != END * came:
            raise BadAnswer("something else where deliveries were expected")
        at = used - self._size + _TAG_AT
        tag = int.from_bytes(received[at : at + 8], "big")
        if tag != self._tag + came:
            raise BadAnswer(f"delivery {tag}, expected {self._tag + came}")
        self._tag = tag
        self._read[self._queue] += came
        self.socket.sendall(method(ACK, tag.to_bytes(8, "big") + b"\1"))
        return came, used
