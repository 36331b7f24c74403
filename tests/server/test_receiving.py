"""However bytes arrive, frames come out whole, in order and as they were sent; buffers are used again and never by two at once."""

from __future__ import annotations

import asyncio
import random
import struct
from typing import cast

import pytest

from barnabas import limits
from barnabas.server import frame_reader
from barnabas.server.connection import Connection
from barnabas.server.connection_interfaces import Dispatcher
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.receiver import Receiver
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.files import OsFiles
from tests.fuzz.fuzz_frames import FakeTransport

LARGE_FRAME_BYTES, RECEIVE_BUFFER_BYTES, KEPT_GROWN_BYTES = 2_000, 700, 6_000
PEERS = 3


class Recorder:
    """A dispatcher that keeps copies of the frames by connection."""

    def __init__(self) -> None:
        self.pinned_files = PinnedFiles(OsFiles(), 100)
        self.write_waiters = WriteWaiters(asyncio.get_running_loop())
        self.frames: dict[Connection, list[bytes]] = {}

    def dispatch(self, connection: Connection, data: memoryview, position: int, stop: int) -> int:
        self.frames[connection].append(bytes(data[position + 4 : stop]))
        return stop

    def connection_opened(self, connection: Connection) -> str | None:
        self.frames[connection] = []
        return None

    def connection_closed(self, connection: Connection) -> None:
        del self.frames[connection]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGE_FRAME_BYTES", LARGE_FRAME_BYTES)
    monkeypatch.setattr(frame_reader, "LARGE", LARGE_FRAME_BYTES // 2)
    monkeypatch.setattr(limits, "RECEIVE_BUFFER_BYTES", RECEIVE_BUFFER_BYTES)
    monkeypatch.setattr(limits, "RECEIVED_SMALL_BYTES", RECEIVE_BUFFER_BYTES // 3)
    monkeypatch.setattr(limits, "SMALL_FRAME_BYTES", 40)
    monkeypatch.setattr(limits, "MAX_RUN_BYTES", RECEIVE_BUFFER_BYTES // 2)
    monkeypatch.setattr(limits, "FRAME_GROWTH_BYTES", 300)
    monkeypatch.setattr(limits, "KEPT_GROWN_BYTES", KEPT_GROWN_BYTES)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("seed", range(30))
async def test_frames_come_out_as_they_were_sent(seed: int) -> None:
    choose = random.Random(seed)
    recorder, receiver = Recorder(), Receiver(10_000, -1)
    sizes = choose.choice([(1500, 1500), (1200, 1999), (0, 3000), (1, 40), (1, 400)])
    sent: dict[Connection, list[bytes]] = {}
    stream: dict[Connection, bytes] = {}
    for _ in range(PEERS):
        line = Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", asyncio.get_running_loop())
        line.connection_made(FakeTransport(-1))
        sent[line] = [choose.randbytes(choose.randint(*sizes)) for _ in range(choose.randint(1, 25))]
        stream[line] = b"".join(struct.pack(">i", len(frame)) + frame for frame in sent[line])
    while any(stream.values()):
        line = choose.choice([line for line, left in stream.items() if left])
        buffer = line.get_buffer(-1)
        size = min(len(buffer), len(stream[line]), choose.choice([1, 3, 500, 10_000, 10_000]))
        buffer[:size] = stream[line][:size]
        stream[line] = stream[line][size:]
        line.buffer_updated(size)
    assert recorder.frames == sent
    assert receiver.queued_bytes == 0
    for line in sent:
        line.close()


async def test_who_sends_many_requests_at_once_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REQUESTS_PER_TURN", 10)
    recorder, receiver, loop = Recorder(), Receiver(10_000, -1), asyncio.get_running_loop()
    greedy, other = (Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", loop) for _ in range(2))
    for line in (greedy, other):
        line.connection_made(FakeTransport(-1))
    sent = [b"%d" % number for number in range(35)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in sent) + b"\0\0"  # and the start of one more frame
    buffer = greedy.get_buffer(-1)
    buffer[: len(stream)] = stream
    greedy.buffer_updated(len(stream))
    told = []
    loop.call_soon(lambda: told.append(len(recorder.frames[greedy])))
    for turn in (1, 2, 3):
        assert recorder.frames[greedy] == sent[: 10 * turn]
        await asyncio.sleep(0)
    assert recorder.frames[greedy] == sent
    assert told == [20]  # other connections wait for at most one turn
    for part in (b"\0\1", b"x"):
        greedy.get_buffer(-1)[: len(part)] = part
        greedy.buffer_updated(len(part))
    assert recorder.frames[greedy] == [*sent, b"x"]
    for line in (greedy, other):
        line.close()


async def test_who_sends_small_frames_has_a_part_of_the_buffer_a_turn() -> None:
    recorder, receiver = Recorder(), Receiver(2 * limits.LARGE_FRAME_BYTES, -1)
    line = Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", asyncio.get_running_loop())
    line.connection_made(FakeTransport(-1))
    small, larger = (struct.pack(">i", size) + bytes(size) for size in (limits.SMALL_FRAME_BYTES, limits.SMALL_FRAME_BYTES + 1))
    assert len(line.get_buffer(-1)) == limits.RECEIVED_SMALL_BYTES
    _receive(line, larger)
    assert len(line.get_buffer(-1)) == limits.RECEIVE_BUFFER_BYTES
    _receive(line, small + small[:100])  # the start of a frame takes the first 100 bytes of the buffer
    assert len(line.get_buffer(-1)) == limits.RECEIVED_SMALL_BYTES - 100
    _receive(line, small[100:] + larger[:100])
    assert len(line.get_buffer(-1)) == limits.RECEIVE_BUFFER_BYTES - 100
    _receive(line, larger[100:])
    assert recorder.frames[line] == [larger[4:], small[4:], small[4:], larger[4:]]
    line.close()


@pytest.mark.usefixtures("small_limits")
async def test_large_buffers_are_used_again_and_a_lost_connection_gives_its_own_back() -> None:
    recorder, receiver = Recorder(), Receiver(10_000, -1)
    frame = struct.pack(">i", 1496) + b"x" * 1496
    used: set[int] = set()
    for _ in range(10):
        line = Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", asyncio.get_running_loop())
        line.connection_made(FakeTransport(-1))
        for part in (frame[:600], frame[600:], frame[:1100]):
            used |= _receive(line, part)
        assert receiver.queued_bytes == 1500
        line.close()
        assert receiver.queued_bytes == 0
    assert len(used) <= 1 + 2  # the shared buffer, the large one, and one that was in use


def _receive(line: Connection, data: bytes) -> set[int]:
    """Have `data` arrive, in as many pieces as the connection has room for; the buffers that it lay in."""
    used = set()
    while data:
        buffer = line.get_buffer(-1)
        used.add(id(buffer.obj))
        taken = min(len(buffer), len(data))
        buffer[:taken] = data[:taken]
        line.buffer_updated(taken)
        data = data[taken:]
    return used


@pytest.mark.usefixtures("small_limits")
async def test_a_buffer_that_grew_with_a_frame_is_kept_for_the_next_unless_it_is_too_large() -> None:
    recorder, receiver = Recorder(), Receiver(20_000, -1)
    lines = [
        Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", asyncio.get_running_loop()) for _ in range(2)
    ]
    for line in lines:
        line.connection_made(FakeTransport(-1))
    first, second, third = (struct.pack(">i", size) + bytes([size % 251]) * size for size in (5_000, 4_000, 7_000))
    _receive(lines[0], first)
    kept = receiver.lend_grown(5_004)
    assert kept is not None
    receiver.hand_in(kept)
    _receive(lines[0], second[:1_500])
    assert receiver.lend_grown(1) is None  # it is lent, so the other connection grows its own
    _receive(lines[1], second)
    assert id(kept.obj) in _receive(lines[0], second[1_500:])
    _receive(lines[0], third)
    assert receiver.lend_grown(5_005) is None  # a buffer above the bound is not kept, the earlier one is
    assert receiver.lend_grown(5_004) is kept
    assert recorder.frames == {lines[0]: [first[4:], second[4:], third[4:]], lines[1]: [second[4:]]}
    assert receiver.queued_bytes == 0


@pytest.mark.usefixtures("small_limits")
async def test_a_lost_connection_gives_the_grown_buffer_back() -> None:
    recorder, receiver = Recorder(), Receiver(20_000, -1)
    line = Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", asyncio.get_running_loop())
    line.connection_made(FakeTransport(-1))
    frame = struct.pack(">i", 5_000) + bytes(5_000)
    _receive(line, frame + frame[:2_000])
    line.close()
    assert receiver.lend_grown(5_004) is not None
    assert receiver.queued_bytes == 0


async def test_the_start_of_a_frame_behind_others_is_received_with_what_follows_it() -> None:
    recorder, receiver = Recorder(), Receiver(10_000, -1)
    line = Connection(cast(Dispatcher[Connection], recorder), receiver, "PLAINTEXT", asyncio.get_running_loop())
    line.connection_made(FakeTransport(-1))
    frames = [bytes([number]) * 100 for number in range(6)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    for cut in (2, 30):  # bytes of the next frame: within its size field, and after it
        recorder.frames[line] = []
        first = 104 + cut
        _receive(line, stream[:first])
        assert (recorder.frames[line], receiver.queued_bytes) == (frames[:1], cut)
        # one read for the rest of this frame and all complete ones
        assert len(_receive(line, stream[first : 5 * 104 + cut])) == 1
        assert (recorder.frames[line], receiver.queued_bytes) == (frames[:5], cut)
        _receive(line, stream[5 * 104 + cut : -1])
        room = line.get_buffer(-1)
        # the receiver does not copy the received bytes again for each piece
        assert (len(room), receiver.queued_bytes) == (1, 104)
        _receive(line, stream[-1:])
        assert (recorder.frames[line], receiver.queued_bytes) == (frames, 0)
    _receive(line, stream[:110])
    line.close()
    assert receiver.queued_bytes == 0
