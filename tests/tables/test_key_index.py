"""The index of keys: every key is found, few blocks are read for nothing, and damaged or old files are not used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.tables import key_index
from barnabas.tables.key_index import KeyIndex, StripeBuilder, hashes_of
from barnabas.tables.key_lookup import KeyLookup
from barnabas.tables.source import Bounds

EPOCH = 3
KEYS = [None if number % 7 == 0 else f"key-{number % 300}".encode() for number in range(2_000)]
OFFSETS = np.arange(2_000, dtype=np.int64) * 2 + 10  # compaction leaves gaps
WHOLE = Bounds(10, 4_010)


@pytest.fixture(autouse=True)
def _small_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "BLOCK_RECORDS", 16)
    monkeypatch.setattr(key_index, "STRIPE_RECORDS", 256)


def records(first: int, last: int) -> pa.RecordBatch:
    columns: list[pa.Array[Any]] = [pa.array(KEYS[first:last], pa.binary()), pa.array(OFFSETS[first:last])]
    return pa.RecordBatch.from_arrays(columns, ["key", "offset"])


def lookup(folder: Path, epoch: int = EPOCH, end_of_epoch: int = 0) -> KeyLookup:
    return KeyLookup(KeyIndex(folder, "orders", "id"), {0: epoch}, lambda _partition, _epoch: end_of_epoch)


def built(folder: Path) -> None:
    one = lookup(folder)
    one.ranges(0, WHOLE, [b"x"])
    for first in range(0, len(KEYS), 37):
        one.observe(0, records(first, first + 37))


def holds(ranges: list[Bounds], offset: int) -> bool:
    return any(each.start <= offset < each.end for each in ranges)


def test_every_key_is_in_the_ranges_and_most_blocks_are_not(tmp_path: Path) -> None:
    built(tmp_path)
    skipped = 0
    for key in {each for each in KEYS if each is not None}:
        one = lookup(tmp_path)
        ranges = one.ranges(0, WHOLE, [key])
        assert ranges == sorted(ranges)
        assert all(holds(ranges, int(at)) for at, each in zip(OFFSETS, KEYS, strict=True) if each == key)
        assert one.indexed_offsets == 7 * 256 * 2  # seven stripes are full, and the rest is read
        skipped += WHOLE.end - WHOLE.start - sum(each.end - each.start for each in ranges)
    assert skipped > 250 * 3_000


def test_bounds_cut_the_ranges(tmp_path: Path) -> None:
    built(tmp_path)
    key = KEYS[100]
    assert key is not None
    bounds = Bounds(int(OFFSETS[90]), int(OFFSETS[110]))
    ranges = lookup(tmp_path).ranges(0, bounds, [key])
    assert holds(ranges, int(OFFSETS[100]))
    assert all(bounds.start <= each.start < each.end <= bounds.end for each in ranges)


def test_a_second_scan_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    half = Bounds(10, int(OFFSETS[1_000]))
    one = lookup(tmp_path)
    one.ranges(0, half, [b"x"])
    one.observe(0, records(0, 1_000))
    two = lookup(tmp_path)
    two.ranges(0, WHOLE, [b"x"])
    for first in range(0, len(KEYS), 500):
        two.observe(0, records(first, first + 500))
    bounds = [each.bounds for each in KeyIndex(tmp_path, "orders", "id").stripes(0)]
    assert bounds == [Bounds(10 + each * 512, 10 + (each + 1) * 512) for each in range(7)]


def test_stripes_whose_records_an_unclean_election_replaced_are_removed(tmp_path: Path) -> None:
    built(tmp_path)
    end = 10 + 3 * 512 + 1
    other = lookup(tmp_path, EPOCH + 1, end)
    assert other.ranges(0, WHOLE, [b"no such key"])[-1] == Bounds(10 + 3 * 512, WHOLE.end)
    assert [each.bounds.end for each in KeyIndex(tmp_path, "orders", "id").stripes(0)] == [10 + each * 512 for each in (1, 2, 3)]


@pytest.mark.parametrize("at", [0, 6, 12, 60, -1])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, at: int) -> None:
    built(tmp_path)
    file = min((tmp_path / "orders-id" / "0").iterdir())
    data = bytearray(file.read_bytes())
    data[at] ^= 0x55
    file.write_bytes(data)
    assert len(KeyIndex(tmp_path, "orders", "id").stripes(0)) == 6
    file.write_bytes(data[:20])
    assert len(KeyIndex(tmp_path, "orders", "id").stripes(0)) == 6


def test_topics_that_were_made_again_share_nothing(tmp_path: Path) -> None:
    built(tmp_path)
    assert KeyIndex(tmp_path, "orders", "other").stripes(0) == []


def test_hashes_do_not_depend_on_the_place_in_an_array() -> None:
    keys = pa.array([b"a", b"", None, b"b", b"a"], pa.binary())
    assert hashes_of(keys)[0] == hashes_of(keys)[4] == hashes_of(keys.slice(4))[0] == hashes_of(pa.array([b"a"], pa.binary()))[0]
    assert len(hashes_of(keys.slice(0, 0))) == 0


def test_a_stripe_without_keys_finds_nothing() -> None:
    builder = StripeBuilder(0, EPOCH)
    (stripe,) = builder.add(pa.nulls(257, pa.binary()), np.arange(257, dtype=np.int64))
    assert stripe.holding([1, 2]) == []
    assert stripe.bounds == Bounds(0, 256)
