"""Frames (without their size) that real clients sent; `record_corpus` takes them down."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus.bin")
SIZE = struct.Struct(">i")


@cache
def recorded() -> tuple[bytes, ...]:
    data, at, frames = zlib.decompress(CORPUS.read_bytes()), 0, []
    while at < len(data):
        (size,) = SIZE.unpack_from(data, at)
        frames.append(data[at + SIZE.size : at + SIZE.size + size])
        at += SIZE.size + size
    return tuple(frames)
