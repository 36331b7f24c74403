"""Frames of one connection are worked on in their order, and beside each other only where `request_order.py` lets them."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from typing import cast

import pytest

from barnabas import limits
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.server.answer_order import Answer
from barnabas.server.connection import Connection
from barnabas.server.connection_interfaces import Dispatcher
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.receiver import Receiver
from barnabas.server.request_order import Effect, effect_of, may_begin
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.files import OsFiles
from tests.fuzz.fuzz_frames import FakeTransport

FETCH, LATEST, PRODUCE, COMMIT, CREATE, ENVELOPE = (
    ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.CREATE_TOPICS, ApiKey.ENVELOPE,
)  # fmt: skip
HEAD = struct.Struct(">ihhi")  # size, API key, version, correlation id


def framed(api: int, number: int, size: int = HEAD.size - 4) -> bytes:
    return HEAD.pack(size, api, 0, number) + bytes(size - HEAD.size + 4)


class Waiting:
    """A dispatcher that lets every request wait, or answers it at once, as its number says."""

    def __init__(self) -> None:
        self.pinned_files = PinnedFiles(OsFiles(), 100)
        self.write_waiters = WriteWaiters(asyncio.get_running_loop())
        self.begun: list[int] = []
        self.waiting: dict[int, tuple[int, Answer]] = {}
        self.at_once: set[int] = set()
        self.put_off = 0  # number of frames to put off

    def dispatch(self, connection: Connection, data: memoryview, position: int, stop: int) -> int:
        if self.put_off:
            self.put_off -= 1
            connection.put_off("test")
            return stop
        api, version, number = struct.unpack_from(">hhi", data, position + 4)
        effect = effect_of(api, version)
        for other, _ in self.waiting.values():
            assert may_begin(effect, effect_of(other, 0)), f"{api} began beside {other}"
        self.begun.append(number)
        if number in self.at_once:
            connection.send([struct.pack(">i", number)])
        else:
            self.waiting[number] = api, connection.expect_answer(effect)
        return stop

    def connection_opened(self, _: Connection) -> str | None:
        return None

    def connection_closed(self, _: Connection) -> None:
        self.waiting.clear()

    def end(self, connection: Connection, number: int) -> None:
        _, place = self.waiting.pop(number)
        connection.complete(place, [struct.pack(">i", number)])


class Peer:
    """A connection, and the end of it that its client has."""

    def __init__(self, receiver: Receiver) -> None:
        self.ours, theirs = socket.socketpair()
        self.theirs = theirs
        theirs.setblocking(False)
        self.ours.setblocking(False)
        self.dispatcher, self.receiver = Waiting(), receiver
        self.connection = Connection(
            cast(Dispatcher[Connection], self.dispatcher), receiver, "PLAINTEXT", asyncio.get_running_loop()
        )
        self.connection.connection_made(FakeTransport(self.ours.fileno()))

    def say(self, data: bytes) -> None:
        while data:
            buffer = self.connection.get_buffer(-1)
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            self.connection.buffer_updated(size)

    def hear(self) -> list[int]:
        try:
            data = self.theirs.recv(1 << 20)
        except BlockingIOError:
            return []
        return [number for (number,) in struct.iter_unpack(">i", data)]

    def close(self) -> None:
        self.connection.close()
        self.ours.close()
        self.theirs.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    made = Peer(Receiver(1_000_000, 500_000))
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_waits_for_whatever_all_begin_and_are_answered_in_order(peer: Peer, seed: int) -> None:
    choose = random.Random(seed)
    count, dispatcher, connection = 60, peer.dispatcher, peer.connection
    dispatcher.at_once = {number for number in range(count) if choose.random() < 0.3}
    apis = [choose.choice([FETCH, FETCH, LATEST, PRODUCE, PRODUCE, COMMIT, CREATE, ENVELOPE]) for _ in range(count)]
    frames = [framed(api, number) for number, api in enumerate(apis)]
    answered: list[int] = []
    while len(answered) < count:
        may_say = not connection.paused_for  # a paused transport reads nothing
        if frames and may_say and choose.random() < 0.6:
            together = choose.randint(1, 8)
            peer.say(b"".join(frames[:together]))
            frames = frames[together:]
        elif dispatcher.waiting and choose.random() < 0.7:
            dispatcher.end(connection, choose.choice(list(dispatcher.waiting)))
        else:
            await asyncio.sleep(0)
        answered += peer.hear()
    assert answered == dispatcher.begun == list(range(count))
    assert peer.receiver.queued_bytes == 0


@pytest.mark.parametrize(("first", "second", "begins"), [
    (PRODUCE, PRODUCE, True), (FETCH, FETCH, True), (COMMIT, COMMIT, True), (ENVELOPE, ENVELOPE, True), (CREATE, CREATE, False),
    (LATEST, LATEST, False), (FETCH, LATEST, False), (LATEST, FETCH, False),
    (PRODUCE, FETCH, False), (FETCH, PRODUCE, False), (CREATE, FETCH, False), (FETCH, CREATE, False), (COMMIT, FETCH, False),
])  # fmt: skip
async def test_what_begins_behind_what_waits(peer: Peer, first: int, second: int, *, begins: bool) -> None:
    peer.say(framed(first, 0) + framed(second, 1))
    assert peer.dispatcher.begun == ([0, 1] if begins else [0])


async def test_a_large_frame_that_waits_is_counted_until_it_begins_or_its_connection_ends(peer: Peer) -> None:
    size = limits.LARGE_FRAME_BYTES
    receiver, loop = peer.receiver, asyncio.get_running_loop()
    peer.say(framed(CREATE, 0) + framed(PRODUCE, 1, 400_000))
    other = Peer(receiver)
    other.say(framed(CREATE, 0) + framed(PRODUCE, 1, 400_000))
    assert receiver.queued_bytes > size // 2
    third = Peer(receiver)
    third.say(framed(PRODUCE, 0, 200_000)[:100_000])  # above the memory limit, but one connection may always continue
    assert not third.connection.paused_for
    fourth = Peer(receiver)
    fourth.say(framed(PRODUCE, 0, 200_000)[:100_000])
    assert fourth.connection.paused_for == {"queue"}
    other.close()
    peer.dispatcher.end(peer.connection, 0)
    ran = asyncio.Event()
    loop.call_soon(ran.set)
    await ran.wait()
    assert peer.dispatcher.begun == [0, 1]
    assert not fourth.connection.paused_for
    third.close()
    fourth.close()
    assert receiver.queued_bytes == 0


async def test_a_backlog_is_not_copied_for_each_of_its_requests(peer: Peer) -> None:
    peer.say(b"".join(framed(CREATE, number) for number in range(1_000)))
    backlog = peer.connection.frames.backlog.obj
    for number in range(500):
        peer.dispatcher.end(peer.connection, number)
        await asyncio.sleep(0)
    assert peer.dispatcher.begun == list(range(501))
    assert peer.connection.frames.backlog.obj is backlog


async def test_a_request_that_is_put_off_comes_again_before_those_behind_it(peer: Peer) -> None:
    peer.dispatcher.at_once, peer.dispatcher.put_off = {0, 1}, 2
    peer.say(framed(CREATE, 0) + framed(FETCH, 1))
    for begun in ([], [0, 1]):
        peer.connection.resume("test")
        assert peer.dispatcher.begun == begun
    assert peer.hear() == [0, 1]


def test_every_effect_has_a_request_here() -> None:
    assert {effect_of(api, 0) for api in (FETCH, LATEST, PRODUCE, COMMIT, CREATE, ENVELOPE)} == set(Effect)
