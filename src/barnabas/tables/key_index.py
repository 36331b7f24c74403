"""An index of keys: the blocks of offsets in which a key may be.

Owns the index files of one topic. A scan for a key reads everything once and builds the index by the way; later scans for keys read the
blocks that the index names, and whatever came after the last stripe.

How it works: a stripe covers up to STRIPE_RECORDS records of a partition, divided into blocks of BLOCK_RECORDS. Its file has the blocks'
offsets and, sorted by hash, every pair of a key's hash and a block. A stripe that is not full goes on with the records behind it: the
longer stripe then takes its place.

Rules
  1. Only committed offsets are indexed. Compaction and retention remove records and add none, so a stripe stays right.
  2. A topic that was made again has another id, and other files. A cluster without topic ids has no index.
  3. A partition can lose committed records in an unclean election, and get others at the same offsets. A stripe holds the leader
     epoch of its time, so that its user can find out (`key_lookup`).
  4. A file is written whole and renamed, so that several processes may share a folder. A damaged file counts as missing.
  5. Of two stripes, one within the other, the longer one is used, and the other one is removed.
  6. The indexes of a folder take at most MAX_KEY_INDEX_BYTES (`key_index_space`).
"""

from __future__ import annotations

import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.lazy_module import LazyModule
from barnabas.tables.key_index_space import SUFFIX, UNFINISHED_SUFFIX, IndexSpace
from barnabas.tables.source import Bounds

if TYPE_CHECKING:
    from barnabas.tables.kernels import hashing
else:
    hashing = LazyModule("barnabas.tables.kernels.hashing")

BLOCK_RECORDS = 1_024
STRIPE_RECORDS = BLOCK_RECORDS * 256
MAGIC = b"BKI1"
KEPT = 100_000  # stripes whose checksum a process remembers
_NAME = re.compile(r"(\d{20})-(\d{20})\.keys")
_HEADER = np.dtype(
    [("magic", "S4"), ("crc", "<u4"), ("blocks", "<u4"), ("entries", "<u4"), ("start", "<i8"), ("end", "<i8"), ("epoch", "<i8")]
)

Hashes = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.int64]
NO_PLACES = np.empty(0, np.uint64)
NO_PAIR = np.uint64(2**64 - 1)  # a pair has 40 bits


def hashes_of(keys: Any) -> Hashes:
    """The hashes of a `pa.binary()` array; those of nulls are without meaning."""
    keys = keys if keys.offset == 0 else pa.concat_arrays([keys])
    made = np.empty(len(keys), np.uint32)
    _, ends, data = keys.buffers()
    if len(keys):
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        hashing.hash_strings(content, np.frombuffer(ends, np.int32, len(keys) + 1), made)
    return made


class Stripe(NamedTuple):
    """The index of some offsets of a partition.

    Args:
        blocks: int64[blocks + 1], the first offset of each block, and the end.
        hashes, places: sorted by hash; the block of each hash.
        epoch: the leader epoch of the partition when the stripe was built.
    """

    blocks: Longs
    hashes: Hashes
    places: npt.NDArray[np.uint8]
    epoch: int

    @property
    def bounds(self) -> Bounds:
        return Bounds(int(self.blocks[0]), int(self.blocks[-1]))

    @property
    def is_full(self) -> bool:
        return len(self.blocks) > STRIPE_RECORDS // BLOCK_RECORDS

    def holding(self, wanted: Hashes) -> list[Bounds]:
        """The blocks that may hold keys with these hashes, in the order of offsets."""
        firsts, lasts = (np.searchsorted(self.hashes, wanted, side) for side in ("left", "right"))
        found = {place for first, last in zip(firsts, lasts, strict=True) for place in self.places[first:last].tolist()}
        return [Bounds(int(self.blocks[each]), int(self.blocks[each + 1])) for each in sorted(found)]


class StripeBuilder:
    """Collects the keys of a partition from `start` on; `add` returns the stripes that are full, `finish` the last one.

    Args:
        before: a stripe that ends at `start` and is not full; the first stripe also covers what it covers.
    """

    def __init__(self, start: int, epoch: int, before: Stripe | None = None) -> None:
        self._epoch = epoch
        self._begin(start)
        if before is not None:
            self._starts = before.blocks.tolist()
            self._parts.append((before.hashes, before.places))

    def _begin(self, start: int) -> None:
        self._starts = [start]
        self._in_block = 0
        self._parts: list[tuple[Hashes, int | npt.NDArray[np.uint8]]] = []
        self.waiting = 0  # records that were added and are in no stripe yet

    def add(self, keys: Any, offsets: Longs) -> Iterator[Stripe]:
        """Take the keys at these offsets, which rise."""
        hashes, valid = hashes_of(keys), ~np.asarray(keys.is_null())
        position = 0
        while position < len(offsets):
            if self._in_block == BLOCK_RECORDS:
                yield from self._next_block(int(offsets[position]))
            taken = min(BLOCK_RECORDS - self._in_block, len(offsets) - position)
            part = slice(position, position + taken)
            self._parts.append((hashes[part][valid[part]], len(self._starts) - 1))
            self._in_block += taken
            self.waiting += taken
            position += taken

    def _next_block(self, start: int) -> Iterator[Stripe]:
        self._in_block = 0
        self._starts.append(start)
        if len(self._starts) > STRIPE_RECORDS // BLOCK_RECORDS:
            yield self._stripe()
            self._begin(start)

    def finish(self, end: int) -> Stripe:
        """The stripe of the records that are in none yet, up to the offset `end`."""
        self._starts.append(end)
        return self._stripe()

    def _stripe(self) -> Stripe:
        places = np.concatenate([NO_PLACES, *(np.full(len(hashes), blocks, np.uint64) for hashes, blocks in self._parts)])
        hashes = np.concatenate([NO_PLACES, *(hashes.astype(np.uint64) for hashes, _ in self._parts)])
        pairs = np.sort(hashes << np.uint64(8) | places)
        pairs = pairs[np.diff(pairs, prepend=NO_PAIR) != 0]  # as np.unique does, which takes 50 times as long by hashing
        return Stripe(
            np.array(self._starts, np.int64),
            (pairs >> np.uint64(8)).astype(np.uint32),
            (pairs & np.uint64(0xFF)).astype(np.uint8),
            self._epoch,
        )


class StoredStripe(NamedTuple):
    """A stripe in a file. The file is open only while it is searched: a topic may have thousands of them.

    Args:
        epoch: the leader epoch of the partition when the stripe was built.
    """

    path: Path
    bounds: Bounds
    epoch: int

    def read(self) -> Stripe | None:
        """The stripe; None if its file is gone or has become unreadable."""
        return _read(self.path, is_checked=True)

    def holding(self, wanted: Hashes) -> list[Bounds]:
        """The blocks that may hold keys with these hashes; the whole stripe if its file has become unreadable."""
        stripe = self.read()
        return [self.bounds] if stripe is None else stripe.holding(wanted)

    def remove(self) -> None:
        """Remove its file, if that is possible."""
        with suppress(OSError):
            self.path.unlink()


class KeyIndex:
    """The stripes of one topic in a folder.

    Args:
        folder: of all indexes.
        topic_id: not empty.
    """

    def __init__(self, folder: Path, topic: str, topic_id: str) -> None:
        self._folder = folder / f"{topic}-{topic_id}"
        self._space = IndexSpace(folder, keeps=self._folder)

    def stripes(self, partition: int) -> list[StoredStripe]:
        """Those of a partition, in the order of offsets, none over another. Those that cannot be read count as missing."""
        found: list[StoredStripe] = []
        folder = self._folder / str(partition)
        names: list[str] = []
        with suppress(OSError):
            names = os.listdir(folder)
            os.utime(self._folder)  # tells the indexes that are used from those that are not
        for name in sorted(filter(_NAME.fullmatch, names), key=_longest_first):
            stripe = _stored(folder / name)
            if stripe is None:
                continue
            if not found or found[-1].bounds.end <= stripe.bounds.start:
                found.append(stripe)
            elif stripe.bounds.end <= found[-1].bounds.end:
                stripe.remove()
        return found

    def write(self, partition: int, stripe: Stripe) -> None:
        """Add a stripe. Raises OSError, also if the indexes may take no more room."""
        folder = self._folder / str(partition)
        content = _content(stripe)
        self._space.take(len(content))
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{stripe.bounds.start:020}-{stripe.bounds.end:020}{SUFFIX}", content)


def _longest_first(name: str) -> tuple[str, int]:
    """The order of names by the first offset; the longest of those with the same one comes first."""
    start, end = name.removesuffix(SUFFIX).split("-")
    return start, -int(end)


@lru_cache(KEPT)
def _stored_at(path: Path, _changed_ns: int) -> StoredStripe | None:
    stripe = _read(path, is_checked=False)
    return None if stripe is None else StoredStripe(path, stripe.bounds, stripe.epoch)


def _stored(path: Path) -> StoredStripe | None:
    """A stripe, whose checksum is checked once in a process; None if the file is damaged or gone."""
    try:
        return _stored_at(path, path.stat().st_mtime_ns)
    except OSError:
        return None


def _content(stripe: Stripe) -> bytes:
    body = stripe.blocks.astype("<i8").tobytes() + stripe.hashes.astype("<u4").tobytes() + stripe.places.tobytes()
    header = np.zeros(1, _HEADER)
    header[0] = (MAGIC, zlib.crc32(body), len(stripe.blocks) - 1, len(stripe.hashes), *stripe.bounds, stripe.epoch)
    return header.tobytes() + body


def _write(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=UNFINISHED_SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _read(path: Path, *, is_checked: bool) -> Stripe | None:
    """A stripe of a file, mapped into memory for as long as the stripe is used; None if the file is damaged or gone.

    Args:
        is_checked: whether the checksum is known to be right.
    """
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        return None
    if len(data) < _HEADER.itemsize:
        return None
    header = data[: _HEADER.itemsize].view(_HEADER)[0]
    blocks, entries = int(header["blocks"]), int(header["entries"])
    body = data[_HEADER.itemsize :]
    if header["magic"] != MAGIC or len(body) != 8 * (blocks + 1) + 5 * entries:
        return None
    if not is_checked and zlib.crc32(body.data) != header["crc"]:
        return None
    first, second = 8 * (blocks + 1), 8 * (blocks + 1) + 4 * entries
    return Stripe(body[:first].view("<i8"), body[first:second].view("<u4"), body[second:], int(header["epoch"]))
