"""Sending pieces of files: all of it arrives in order, and no turn of the loop sends more than its share."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from barnabas.server.outbox import FILE_BYTES_PER_TURN, Outbox, Part
from barnabas.storage.files import OsFiles
from barnabas.storage.reading import FileRegion
from barnabas.storage.trust import Trust

FILES = OsFiles()


async def send(path: Path, parts: list[tuple[int, int] | bytes]) -> tuple[bytes, list[int]]:
    """What arrives of `parts` (stretches of the file, and bytes between them), and how much waited after each turn of the loop."""
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * 1024 * 1024)
    failures: list[OSError] = []
    outbox = Outbox(loop, near.fileno(), FILES, lambda: None, failures.append)
    fileno = os.open(path, os.O_RDONLY)
    items: list[Part] = [
        part if isinstance(part, bytes) else FileRegion(fileno, part[0], part[1], 0, Trust(FILES, 0)) for part in parts
    ]
    total = sum(len(part) if isinstance(part, bytes) else part[1] for part in parts)
    for item in items:
        outbox.push(item)
    waiting, received = [outbox.waiting_bytes], b""
    outbox.flush()
    os.close(fileno)  # what is sent later has a descriptor of its own
    while len(received) < total:
        waiting.append(outbox.waiting_bytes)
        received += await loop.sock_recv(far, 2**20)
    waiting.append(outbox.waiting_bytes)
    outbox.close()
    near.close()
    far.close()
    assert not failures
    return received, waiting


def test_a_large_region_takes_many_turns(tmp_path: Path) -> None:
    data = os.urandom(8 * FILE_BYTES_PER_TURN + 1000)
    path = tmp_path / "file"
    path.write_bytes(data)
    received, waiting = asyncio.run(send(path, [b"head", (0, len(data)), b"tail"]))
    assert received == b"head" + data + b"tail"
    assert waiting[1] >= len(data) - FILE_BYTES_PER_TURN, "the first turn sends its share and no more"
    assert waiting[-1] == 0


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
