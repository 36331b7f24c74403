"""Transactions over plain sockets: repeats a Produce request for some partitions and EndTxn, as in transactions version 2
(KIP-890).

One thread drives all producers. A transaction begins after the answer to the end of the one before. As in `wire.py`, this
module has its own layouts of the frequent requests, Produce 12 and EndTxn 5.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from struct import Struct

from crc32c import crc32c

from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from bench.latency import STALLED_S
from bench.wire import CLIENT_ID, FIND_COORDINATOR, INIT_PRODUCER_ID, REQUEST_TIMEOUT_MS, BadAnswer, call, varint

PRODUCE, END_TXN = (0, 12), (26, 5)
TRANSACTIONS = 1  # key type of a transaction coordinator
TIMEOUT_MS = 60_000
COORDINATOR_IS_COMING = {14, 15, 16}  # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
CONCURRENT_TRANSACTIONS = 51
AGAIN_S, READY_S = 0.05, 60.0
RECEIVE_BYTES = 64 * 1024
_SIZE, _HEAD, _I16 = Struct(">i"), Struct(">hhih"), Struct(">h")
_OWNER_AND_SEQUENCE, _OWNER_AT = Struct(">qhi"), 43  # of a batch: producer id, producer epoch, base sequence
_CRC, _CRC_AT, _CRC_FROM = Struct(">I"), 17, 21
_ATTRIBUTES_AT, _TRANSACTIONAL = 22, 0x10
_ENDED = Struct(">ibihqhb")  # correlation id, tags, throttle time, error code, next producer id and epoch, tags
_PARTITION_BYTES, _ERROR_AT = 33, 4  # a partition in the response to Produce, and the position of its error code


class Transactor:
    """One producer on a connection of its own.

    Args:
        batches: the batch of each partition, from partition 0 on.
    """

    def __init__(self, address: tuple[str, int], name: str, topic: str, batches: Sequence[bytes]) -> None:
        self.count = 0
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(STALLED_S)
        self._name, self._partitions = name.encode(), len(batches)
        self._owner = _owner_of(address, name)
        self._frame, self._places = _produce_frame(self._name, topic.encode(), batches)
        self._answers_from = _SIZE.size + 4 + 1 + 1 + len(varint(len(topic) + 1)) + len(topic) + len(varint(len(batches) + 1))
        self._received = bytearray()
        self._ends = False

    def begin(self) -> None:
        """Send the records of a transaction."""
        frame, (producer_id, epoch) = self._frame, self._owner
        for start, end in self._places:
            _OWNER_AND_SEQUENCE.pack_into(frame, start + _OWNER_AT, producer_id, epoch, 0)
            _CRC.pack_into(frame, start + _CRC_AT, crc32c(memoryview(frame)[start + _CRC_FROM : end]))
        self._ends = False
        self.socket.sendall(frame)

    def ready(self, *, goes_on: bool) -> None:
        """Receive bytes. After a whole answer, send the next request; after the end of a transaction, begin another one if
        `goes_on`."""
        piece = self.socket.recv(RECEIVE_BYTES)
        if not piece:
            raise BadAnswer("the server closed the connection")
        self._received += piece
        received = self._received
        if len(received) < _SIZE.size or len(received) < _SIZE.size + _SIZE.unpack_from(received)[0]:
            return
        if self._ends:
            self._take_end(received)
            if goes_on:
                self.begin()
        elif self._is_stored(received):
            self._ends = True
            self.socket.sendall(_end_frame(self._name, *self._owner))
        else:
            self.begin()
        received.clear()

    def _is_stored(self, answer: bytearray) -> bool:
        """Whether the records are stored; False if the transaction before has not ended yet."""
        for index in range(self._partitions):
            (error,) = _I16.unpack_from(answer, self._answers_from + index * _PARTITION_BYTES + _ERROR_AT)
            if error == CONCURRENT_TRANSACTIONS:
                return False
            if error:
                raise BadAnswer(f"partition {index} was answered with error {error}")
        return True

    def _take_end(self, answer: bytearray) -> None:
        _, _, _, error, producer_id, epoch, _ = _ENDED.unpack_from(answer, _SIZE.size)
        if error:
            raise BadAnswer(f"EndTxn: error {error}")
        self._owner = producer_id, epoch
        self.count += 1


def transact(producers: Sequence[Transactor], seconds: float) -> float:
    """Let the producers commit one transaction after the other for `seconds`; returns the seconds that it took."""
    poll = select.poll()
    by_descriptor = {each.socket.fileno(): each for each in producers}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    began = time.perf_counter()
    under_way = len(producers)
    for each in producers:
        each.begin()
    while under_way:
        found = poll.poll(STALLED_S * 1000)
        if not found:
            raise BadAnswer(f"no answer for {STALLED_S:g} s")
        goes_on = time.perf_counter() - began < seconds
        for descriptor, _ in found:
            producer = by_descriptor[descriptor]
            before = producer.count
            producer.ready(goes_on=goes_on)
            under_way -= producer.count > before and not goes_on
    return time.perf_counter() - began


def _owner_of(address: tuple[str, int], name: str) -> tuple[int, int]:
    """The producer id and epoch for a transactional id; waits until its coordinator is available."""
    find = FindCoordinatorRequest(key_type=TRANSACTIONS, coordinator_keys=[name])
    become = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1)
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        call(address, FIND_COORDINATOR, 4, find, FindCoordinatorResponse)
        answer = call(address, INIT_PRODUCER_ID, 5, become, InitProducerIdResponse)
        if not answer.error_code:
            return answer.producer_id, answer.producer_epoch
        if answer.error_code not in COORDINATOR_IS_COMING:
            raise BadAnswer(f"InitProducerId: error {answer.error_code}")
        time.sleep(AGAIN_S)
    raise BadAnswer("the coordinator does not come")


def _header(api: tuple[int, int]) -> bytes:
    return _HEAD.pack(*api, 0, len(CLIENT_ID)) + CLIENT_ID + b"\0"


def _produce_frame(name: bytes, topic: bytes, batches: Sequence[bytes]) -> tuple[bytearray, list[tuple[int, int]]]:
    """The frame, and the start and end of each batch in it."""
    frame = bytearray(_SIZE.size) + _header(PRODUCE) + varint(len(name) + 1) + name + Struct(">hi").pack(-1, REQUEST_TIMEOUT_MS)
    frame += b"\2" + varint(len(topic) + 1) + topic + varint(len(batches) + 1)
    places = []
    for partition, batch in enumerate(batches):
        frame += _SIZE.pack(partition) + varint(len(batch) + 1)
        places.append((len(frame), len(frame) + len(batch)))
        frame += batch + b"\0"
        frame[places[-1][0] + _ATTRIBUTES_AT] |= _TRANSACTIONAL
    frame += b"\0\0"
    _SIZE.pack_into(frame, 0, len(frame) - _SIZE.size)
    return frame, places


def _end_frame(name: bytes, producer_id: int, epoch: int) -> bytes:
    body = _header(END_TXN) + varint(len(name) + 1) + name + Struct(">qhbb").pack(producer_id, epoch, 1, 0)
    return _SIZE.pack(len(body)) + body
