"""Sending pieces of files: all of it arrives in order, and no turn of the loop sends more than its share."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.fetch import Buffer
from barnabas.server import outbox as outbox_module
from barnabas.server.outbox import FILE_BYTES_PER_TURN, SENT_SHARE, TRIES, UNTRIED, Outbox, Part, Region
from barnabas.server.pinned_regions import PinnedFiles, PinnedRegion
from barnabas.server.send_strategy import MEASURED_BYTES, SendStrategy
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity

FILES = OsFiles()
PIECE = 200_000


class FixedStrategy(SendStrategy):
    """Always one way, however long it takes."""

    def took(self, size: int, ns: int, *, by_sendfile: bool) -> None:
        """Nothing is learnt from it."""


@pytest.fixture(params=[False, True], ids=["read", "sendfile"])
def by_sendfile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Which way large pieces go, whatever takes less time here."""
    strategy = FixedStrategy()
    strategy.by_sendfile = request.param
    monkeypatch.setattr(outbox_module, "_send_strategy", strategy)
    return strategy.by_sendfile


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are read."""
    monkeypatch.setattr(outbox_module, "_send_strategy", FixedStrategy())


class NoneLeft(OsFiles):
    """Files of a process that has no descriptors left."""

    def dup(self, fileno: int, /) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def outbox_of(near: socket.socket, files: OsFiles, failures: list[OSError]) -> Outbox:
    """One that waits for no room."""
    loop = asyncio.get_running_loop()
    return Outbox(loop, near.fileno(), PinnedFiles(files, 100), WriteWaiters(loop), lambda: None, failures.append)


async def send(
    path: Path, parts: list[tuple[int, int] | bytes], *, send_buffer: int = 8 * 1024 * 1024, taken: int = 2**20
) -> tuple[bytes, list[int]]:
    """The bytes of `parts` that arrive, and the number of waiting bytes after each turn of the loop.

    Args:
        parts: stretches of the file, and bytes between them.
        taken: the most bytes that the other side takes at once.
    """
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    failures: list[OSError] = []
    room = WriteWaiters(loop)
    outbox = Outbox(loop, near.fileno(), PinnedFiles(FILES, 100), room, lambda: None, failures.append)
    fileno = os.open(path, os.O_RDONLY)
    items: list[Part] = [
        part if isinstance(part, bytes) else FileRegion(fileno, part[0], part[1], 0, SegmentIntegrity(FILES, 0)) for part in parts
    ]
    total = sum(len(part) if isinstance(part, bytes) else part[1] for part in parts)
    for item in items:
        outbox.push(item)
    waiting, received = [outbox.waiting_bytes], b""
    outbox.flush()
    os.close(fileno)  # the outbox has its own descriptor for later writes
    while len(received) < total:
        waiting.append(outbox.waiting_bytes)
        received += await loop.sock_recv(far, taken)
    waiting.append(outbox.waiting_bytes)
    outbox.close()
    room.close()
    near.close()
    far.close()
    assert not failures
    return received, waiting


def test_a_large_region_takes_many_turns(tmp_path: Path, by_sendfile: bool) -> None:
    share = FILE_BYTES_PER_TURN * (SENT_SHARE if by_sendfile else 1)
    data = os.urandom(3 * share + 1000)
    path = tmp_path / "file"
    path.write_bytes(data)
    received, waiting = asyncio.run(send(path, [b"head", (0, len(data)), b"tail"]))
    assert received == b"head" + data + b"tail"
    assert waiting[1] >= len(data) - share, "the first turn sends its share and no more"
    assert waiting[-1] == 0


@pytest.mark.usefixtures("reading")
def test_many_small_regions_share_a_turn_up_to_its_bound(tmp_path: Path) -> None:
    data = os.urandom(40 * 16_384)
    path = tmp_path / "file"
    path.write_bytes(data)
    parts: list[tuple[int, int] | bytes] = []
    for position in range(0, len(data), 16_384):
        parts += [b"between", (position, 16_384)]
    received, waiting = asyncio.run(send(path, parts))
    assert received == b"".join(b"between" + data[at : at + 16_384] for at in range(0, len(data), 16_384))
    sent = waiting[0] - waiting[1]
    assert FILE_BYTES_PER_TURN - 16_384 <= sent <= FILE_BYTES_PER_TURN + 20 * len(b"between")
    assert waiting[-1] == 0


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(st.integers(1, 3 * FILE_BYTES_PER_TURN // 2), st.binary(max_size=70), st.integers(1, 3000)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([1, 20_000, 1_000_000]),
    st.sampled_from([2_000, 100_000]),
)
def test_small_and_large_pieces_arrive_in_order_however_full_the_socket_is(
    tmp_path_factory: pytest.TempPathFactory, by_sendfile: bool, sizes: list[int | bytes], send_buffer: int, taken: int
) -> None:
    path = tmp_path_factory.mktemp("outbox") / "file"
    data = random.Random(1).randbytes(2 * FILE_BYTES_PER_TURN)
    path.write_bytes(data)
    parts: list[tuple[int, int] | bytes] = [size if isinstance(size, bytes) else (size % 7, size) for size in sizes]
    received, waiting = asyncio.run(send(path, [b"head", *parts], send_buffer=send_buffer, taken=taken))
    wanted = [part if isinstance(part, bytes) else data[part[0] : sum(part)] for part in parts]
    assert received == b"head" + b"".join(wanted)
    assert waiting[-1] == 0


@pytest.mark.usefixtures("reading")
def test_what_goes_together_is_one_system_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    calls: list[int] = []
    write = Outbox._write

    def counting(outbox: Outbox, buffers: list[Buffer]) -> int:
        calls.append(len(buffers))
        return write(outbox, buffers)

    monkeypatch.setattr(Outbox, "_write", counting)
    asyncio.run(send(path, [b"head", (0, 50_000), b"between", (10, 40_000), b"tail"]))
    assert calls == [5]


@pytest.mark.usefixtures("reading")
def test_what_has_the_next_turn_does_not_wait_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(3 * FILE_BYTES_PER_TURN)
    path = tmp_path / "file"
    path.write_bytes(data)
    monkeypatch.setattr(Outbox, "_watch", lambda _: pytest.fail("the socket has room for all of it"))
    received, waiting = asyncio.run(send(path, [b"head", (0, len(data)), b"tail"]))
    assert received == b"head" + data + b"tail"
    assert waiting[-1] == 0


@pytest.mark.usefixtures("reading")
def test_a_socket_that_is_full_has_nothing_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(4 * FILE_BYTES_PER_TURN)
    path = tmp_path / "file"
    path.write_bytes(data)
    copied: list[int] = []
    read = Outbox._read

    def counting(outbox: Outbox, region: Region, piece: memoryview) -> int:
        copied.append(read(outbox, region, piece))
        return copied[-1]

    monkeypatch.setattr(Outbox, "_read", counting)
    received, _ = asyncio.run(send(path, [b"head", (0, len(data))], send_buffer=2_000, taken=10_000))
    assert received == b"head" + data
    assert copied == [FILE_BYTES_PER_TURN - len(b"head")], "the rest goes by sendfile"


@pytest.mark.usefixtures("reading")
def test_what_is_closed_before_its_next_turn_sends_no_more(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * FILE_BYTES_PER_TURN))
    failures: list[OSError] = []

    async def close_early() -> int:
        near, far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * 1024 * 1024)
        outbox = outbox_of(near, FILES, failures)
        with path.open("rb") as file, near, far:
            outbox.push(FileRegion(file.fileno(), 0, 2 * FILE_BYTES_PER_TURN, 0, SegmentIntegrity(FILES, 0)))
            outbox.flush()
            outbox.close()
            near.shutdown(socket.SHUT_WR)
            received = 0
            while piece := far.recv(2**20):
                received += len(piece)
                await asyncio.sleep(0)
            return received

    assert asyncio.run(close_early()) == FILE_BYTES_PER_TURN
    assert not failures


@pytest.mark.usefixtures("reading")
def test_a_large_piece_goes_by_the_way_that_takes_less_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(FixedStrategy):
        def took(self, size: int, ns: int, *, by_sendfile: bool) -> None:
            assert size == PIECE
            assert ns > 0
            assert by_sendfile == self.by_sendfile
            told.append(by_sendfile)

    told: list[bool] = []
    data = os.urandom(PIECE)
    path = tmp_path / "file"
    path.write_bytes(data)
    for by_sendfile in (False, True):
        strategy = Told()
        strategy.by_sendfile = by_sendfile
        monkeypatch.setattr(outbox_module, "_send_strategy", strategy)
        received, _ = asyncio.run(send(path, [b"head", (0, PIECE), b"tail"]))
        assert received == b"head" + data + b"tail"
    assert told == [False, True]


@pytest.mark.parametrize("by_sendfile", [False, True], ids=["read", "sendfile"])
def test_a_part_of_a_large_piece_is_measured_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_sendfile: bool) -> None:
    """A socket rarely takes a whole answer to a follower. If only whole answers were measured, the two ways would never be told apart."""

    class Told(FixedStrategy):
        def took(self, size: int, ns: int, *, by_sendfile: bool) -> None:
            told.append((size, by_sendfile))

    told: list[tuple[int, bool]] = []
    strategy = Told()
    strategy.by_sendfile = by_sendfile
    monkeypatch.setattr(outbox_module, "_send_strategy", strategy)
    whole = SENT_SHARE * FILE_BYTES_PER_TURN + 1000
    data = os.urandom(whole)
    path = tmp_path / "file"
    path.write_bytes(data)
    received, _ = asyncio.run(send(path, [(0, whole)]))
    assert received == data
    assert told
    assert all(MEASURED_BYTES <= size < whole and way is by_sendfile for size, way in told)


@pytest.mark.usefixtures("reading")
def test_what_was_read_and_not_sent_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(FixedStrategy):
        def took(self, size: int, ns: int, *, by_sendfile: bool) -> None:
            assert by_sendfile, "of what is read a part is left"

    monkeypatch.setattr(outbox_module, "_send_strategy", Told())
    data = os.urandom(2 * FILE_BYTES_PER_TURN)
    path = tmp_path / "file"
    path.write_bytes(data)
    received, _ = asyncio.run(send(path, [(0, len(data))], send_buffer=100_000))
    assert received == data


class Trying:
    """A full socket, and what is done about it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.watched = 0
        monkeypatch.setattr(Outbox, "_watch", self._watch)
        monkeypatch.setattr(Outbox, "_unwatch", lambda _: None)
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.outbox = outbox_of(self.near, FILES, [])

    def _watch(self, _: object = None) -> None:
        self.watched += 1

    def fill(self) -> None:
        self.outbox.push(bytes(2**23))
        self.outbox.flush()

    def drain(self) -> None:
        self.far.setblocking(False)
        while self.outbox.waiting_bytes:
            with suppress(BlockingIOError):
                while self.far.recv(2**20):
                    pass
            self.outbox.resume()

    async def turns(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    def close(self) -> None:
        self.outbox.close()
        self.near.close()
        self.far.close()


def test_a_full_socket_is_tried_again_before_it_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill() -> list[int]:
        trying = Trying(monkeypatch)
        trying.fill()
        watched = []
        await trying.turns(TRIES - 1)
        watched.append(trying.watched)
        trying.far.recv(2**22)  # the outbox starts its tries again
        await trying.turns(TRIES - 1)
        watched.append(trying.watched)
        await trying.turns(3)
        watched.append(trying.watched)
        trying.close()
        return watched

    assert asyncio.run(fill()) == [0, 0, 1]


def test_who_reads_crumbs_has_the_socket_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def crumb(outbox: Outbox, _: list[Buffer]) -> int:
        if len(sent) % 2:
            sent.append(0)
            raise BlockingIOError
        sent.append(1000)
        return 1000

    async def fill() -> int:
        trying = Trying(monkeypatch)
        monkeypatch.setattr(Outbox, "_write", crumb)
        trying.fill()
        await trying.turns(3 * TRIES)
        trying.close()
        return trying.watched

    assert asyncio.run(fill()) == 1
    assert TRIES // 2 <= sum(each > 0 for each in sent) <= TRIES


def test_a_socket_that_stayed_full_is_watched_at_once_for_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill() -> None:
        trying = Trying(monkeypatch)
        trying.fill()
        await trying.turns(TRIES + 1)
        assert trying.watched == 1
        for number in range(UNTRIED):
            trying.drain()
            trying.fill()
            await trying.turns(2)
            assert trying.watched == number + 2
        trying.drain()
        trying.fill()
        await trying.turns(2)
        assert trying.watched == UNTRIED + 1
        trying.close()

    asyncio.run(fill())


def test_a_file_that_is_shorter_than_its_region_ends_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1000))
    failures: list[OSError] = []

    async def push() -> None:
        near, far = socket.socketpair()
        outbox = outbox_of(near, FILES, failures)
        with path.open("rb") as file, near, far:
            outbox.push(b"head")
            outbox.push(FileRegion(file.fileno(), 0, 2000, 0, SegmentIntegrity(FILES, 0)))
            outbox.flush()
            outbox.close()

    asyncio.run(push())
    assert len(failures) == 1


@pytest.mark.parametrize("pushed_before", [1, 0])
def test_who_can_not_be_waited_for_is_given_up(tmp_path: Path, pushed_before: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * FILE_BYTES_PER_TURN))
    failures: list[OSError] = []

    async def push() -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2_000)
        outbox = outbox_of(near, NoneLeft(), failures)
        with path.open("rb") as file, near, far:
            region = FileRegion(file.fileno(), 0, 2 * FILE_BYTES_PER_TURN, 0, SegmentIntegrity(FILES, 0))
            outbox.push(region if pushed_before else bytes(2**20))
            outbox.flush()
            if not pushed_before:
                assert not failures
                outbox.push(region)
            assert outbox.hold([b"head", region]) == []
            assert outbox.waiting_bytes == 0
            outbox.close()

    asyncio.run(push())
    assert [error.errno for error in failures] == 2 * [errno.EMFILE]


class SlowReader:
    """Waits for room with pieces of a file, until it makes way."""

    def __init__(self, region: PinnedRegion) -> None:
        self.regions = [region]

    @property
    def holds_files(self) -> bool:
        return bool(self.regions)

    def resume(self) -> None: ...

    def give_up(self, error: OSError) -> None:
        self.regions.clear()


@pytest.mark.parametrize(
    ("asked", "waits", "is_given_up"),
    [("a held file", True, False), ("another file", True, False), ("a held file", False, False), ("another file", False, True)],
)
def test_who_asks_for_more_files_than_may_be_held_goes_where_nobody_else_can(
    tmp_path: Path, asked: str, *, waits: bool, is_given_up: bool
) -> None:
    failures: list[OSError] = []

    async def ask() -> None:
        loop = asyncio.get_running_loop()
        held, room = PinnedFiles(FILES, 1), WriteWaiters(loop)
        near, far = socket.socketpair()
        waiting, other = socket.socketpair()
        files = [stack.enter_context((tmp_path / f"{number}").open("w+b")) for number in range(3)]
        regions = [FileRegion(file.fileno(), 0, 7, 0, SegmentIntegrity(FILES, 0)) for file in files]
        reader, elsewhere = SlowReader(held.hold(regions[0])), held.hold(regions[1])
        assert held.is_crowded
        with near, far, waiting, other:
            if waits:
                room.watch(waiting.fileno(), reader)
            outbox = Outbox(loop, near.fileno(), held, room, lambda: None, failures.append)
            parts = outbox.hold([b"head", regions[1 if asked == "a held file" else 2]])
            assert len(parts) == (0 if is_given_up else 2)
            assert reader.holds_files == (not waits or asked == "a held file")
            outbox.close()
            room.close()
        assert elsewhere.size == 7

    with ExitStack() as stack:
        asyncio.run(ask())
    assert len(failures) == is_given_up


def test_who_was_given_up_is_not_given_up_again_for_the_rest_of_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1000))
    failures: list[OSError] = []

    async def push() -> None:
        near, far = socket.socketpair()
        outbox = outbox_of(near, NoneLeft(), failures)

        def give_up(error: OSError) -> None:
            failures.append(error)
            outbox.close()  # as in a connection

        outbox._on_error = give_up
        outbox._wait_for_turn()
        with path.open("rb") as file, near, far:
            region = FileRegion(file.fileno(), 0, 1000, 0, SegmentIntegrity(FILES, 0))
            for part in (b"head", region, region, region):
                outbox.push(part)
            assert outbox.hold([region]) == []

    asyncio.run(push())
    assert [error.errno for error in failures] == [errno.EMFILE]
