"""The index of keys: every key is found, few blocks are read for nothing, and damaged or old files are not used."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.tables import key_index, key_lookup
from barnabas.tables.key_index import KeyIndex, StripeBuilder, hashes_of
from barnabas.tables.key_index_space import IndexSpace
from barnabas.tables.key_lookup import KeyLookup
from barnabas.tables.source import Bounds, Snapshot

EPOCH = 3
KEYS = [None if number % 7 == 0 else f"key-{number % 300}".encode() for number in range(2_000)]
OFFSETS = np.arange(2_000, dtype=np.int64) * 2 + 10  # compaction leaves gaps
WHOLE = Bounds(10, 4_010)


@pytest.fixture(autouse=True)
def _small_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "BLOCK_RECORDS", 16)
    monkeypatch.setattr(key_index, "STRIPE_RECORDS", 256)
    monkeypatch.setattr(key_lookup, "WRITTEN_RECORDS", 48)
    monkeypatch.setattr(key_lookup, "MAX_GAP", 0)


def records(first: int, last: int) -> pa.RecordBatch:
    columns: list[pa.Array[Any]] = [pa.array(KEYS[first:last], pa.binary()), pa.array(OFFSETS[first:last])]
    return pa.RecordBatch.from_arrays(columns, ["key", "offset"])


def lookup(folder: Path, epoch: int = EPOCH, end_of_epoch: int = 0, start: int = WHOLE.start) -> KeyLookup:
    snapshot = Snapshot("orders", "id", {0: Bounds(start, WHOLE.end)}, {0: epoch})
    return KeyLookup(KeyIndex(folder, "orders", "id"), snapshot, lambda _partition, _epoch: end_of_epoch)


def full(*numbers: int) -> list[Bounds]:
    """The bounds of full stripes from the first record on, by their numbers."""
    return [Bounds(at(each * 256), at((each + 1) * 256)) for each in numbers]


def scan(one: KeyLookup, *planned: Bounds) -> None:
    """Tell the index what a scan of these ranges finds."""
    for bounds in planned:
        one.ranges(0, bounds, [b"x"])
    one.prepare({0: planned})
    for bounds in planned:
        first, last = np.searchsorted(OFFSETS, bounds).tolist()
        for at in range(first, last, 37):
            one.observe(0, records(at, min(at + 37, last)))
    one.finish(0)


def built(folder: Path) -> None:
    scan(lookup(folder), WHOLE)


def stored(folder: Path) -> list[Bounds]:
    return [each.bounds for each in KeyIndex(folder, "orders", "id").stripes(0)]


def at(number: int) -> int:
    """The offset of a record."""
    return 10 + 2 * number


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
        assert one.indexed_offsets == WHOLE.end - WHOLE.start
        skipped += WHOLE.end - WHOLE.start - sum(each.end - each.start for each in ranges)
    assert skipped > 250 * 3_000


def test_blocks_that_are_near_are_one_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path)
    wanted = [KEYS[1], KEYS[40], KEYS[100]]  # in the blocks 0, 2 and 6
    payloads = [each for each in wanted if each is not None]
    bounds = Bounds(10, at(200))
    for gap, expected in ((31, [(0, 16), (32, 48), (96, 112)]), (32, [(0, 48), (96, 112)]), (96, [(0, 112)])):
        monkeypatch.setattr(key_lookup, "MAX_GAP", gap)
        assert lookup(tmp_path).ranges(0, bounds, payloads) == [Bounds(at(low), at(high)) for low, high in expected]


def test_bounds_cut_the_ranges(tmp_path: Path) -> None:
    built(tmp_path)
    key = KEYS[100]
    assert key is not None
    bounds = Bounds(int(OFFSETS[90]), int(OFFSETS[110]))
    ranges = lookup(tmp_path).ranges(0, bounds, [key])
    assert holds(ranges, int(OFFSETS[100]))
    assert all(bounds.start <= each.start < each.end <= bounds.end for each in ranges)


def test_a_second_scan_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    scan(lookup(tmp_path), Bounds(10, at(1_000)))
    scan(lookup(tmp_path), WHOLE)
    found = stored(tmp_path)
    assert len(found) == 8
    assert [10, *(each.end for each in found)] == [*(each.start for each in found), WHOLE.end]


def test_a_stripe_that_is_not_full_goes_on_with_the_records_behind_it(tmp_path: Path) -> None:
    for number, expected in ((47, []), (48, [48]), (95, [48]), (96, [96]), (208, [208]), (400, [256, 400])):
        scan(lookup(tmp_path), Bounds(10, at(number)))
        found = stored(tmp_path)
        assert [each.end for each in found] == [at(each) for each in expected]
        names = sorted(each.name for each in tmp_path.rglob("*.keys"))
        assert names == [f"{each.start:020}-{each.end:020}.keys" for each in found]
        for key in (b"key-1", b"key-150", b"key-255"):
            assert holds(lookup(tmp_path).ranges(0, WHOLE, [key]), at(KEYS.index(key)))
    one = lookup(tmp_path)
    assert one.ranges(0, Bounds(10, at(400)), [b"no such key"]) == []


def test_of_a_stripe_and_a_longer_one_the_longer_one_is_used(tmp_path: Path) -> None:
    """A kill, or another process, leaves both."""
    scan(lookup(tmp_path), Bounds(10, at(100)))
    (file,) = (tmp_path / "orders-id" / "0").iterdir()
    content = file.read_bytes()
    scan(lookup(tmp_path), Bounds(10, at(200)))
    assert stored(tmp_path) == [Bounds(10, at(200))]
    assert not file.exists()
    file.write_bytes(content)
    assert stored(tmp_path) == [Bounds(10, at(200))]
    assert not file.exists()


def test_offsets_that_a_scan_leaves_out_are_in_no_stripe(tmp_path: Path) -> None:
    scan(lookup(tmp_path), Bounds(10, at(300)), Bounds(at(700), at(1_300)))
    assert stored(tmp_path) == [*full(0), Bounds(at(700), at(956)), Bounds(at(956), at(1_212)), Bounds(at(1_212), at(1_300))]
    for number, key in enumerate(KEYS):
        assert key is None or holds(lookup(tmp_path).ranges(0, WHOLE, [key]), at(number))


@given(scans=st.lists(st.lists(st.integers(0, 2_000), min_size=2, max_size=6, unique=True), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_scans_of_any_ranges_lose_no_key(scans: list[list[int]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for cuts in scans:
            ends = sorted(cuts)
            scan(lookup(Path(name)), *(Bounds(at(low), at(high)) for low, high in zip(ends[::2], ends[1::2], strict=False)))
            for key in (b"key-1", b"key-150", b"key-299"):
                ranges = lookup(Path(name)).ranges(0, WHOLE, [key])
                assert all(holds(ranges, at(number)) for number, each in enumerate(KEYS) if each == key)


def test_a_later_scan_fills_the_parts_without_an_index(tmp_path: Path) -> None:
    scan(lookup(tmp_path), Bounds(at(700), at(1_300)))
    scan(lookup(tmp_path), WHOLE)
    one = lookup(tmp_path)
    one.ranges(0, WHOLE, [b"x"])
    assert stored(tmp_path)[0].start == 10
    assert [each.end for each in stored(tmp_path)[:-1]] == [each.start for each in stored(tmp_path)[1:]]
    assert one.indexed_offsets > WHOLE.end - WHOLE.start - 2 * 48


def test_stripes_of_records_that_retention_removed_are_removed(tmp_path: Path) -> None:
    built(tmp_path)
    start = at(2 * 256 + 5)
    lookup(tmp_path, start=start).ranges(0, Bounds(start, WHOLE.end), [b"x"])
    assert stored(tmp_path)[:1] == full(2)


def test_the_end_of_an_earlier_epoch_is_asked_for_once(tmp_path: Path) -> None:
    built(tmp_path)
    asked = []

    def end_of_epoch(partition: int, epoch: int) -> int:
        asked.append((partition, epoch))
        return WHOLE.end

    snapshot = Snapshot("orders", "id", {0: WHOLE}, {0: EPOCH + 1})
    one = KeyLookup(KeyIndex(tmp_path, "orders", "id"), snapshot, end_of_epoch)
    for bounds in (Bounds(10, 50), Bounds(60, WHOLE.end)):
        one.ranges(0, bounds, [b"x"])
    assert asked == [(0, EPOCH)]
    assert len(stored(tmp_path)) == 8


def test_a_scan_goes_on_without_an_index_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", no_room)
    built(tmp_path)
    assert stored(tmp_path) == []
    assert not list(tmp_path.rglob("*.tmp"))
    (line,) = caplog.messages
    assert line.startswith("event=key-index-not-extended topic=orders error=OSError")
    assert "No space left" in line


def fill(folder: Path, topic: str, size: int, used_at: int) -> Path:
    """A file in the index of another topic."""
    file = folder / f"{topic}-id" / "0" / f"{0:020}-{9:020}.keys"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(size))
    os.utime(file.parent.parent, (used_at, used_at))
    return file


def test_the_index_that_was_used_least_recently_makes_room(tmp_path: Path) -> None:
    """MAX_KEY_INDEX_BYTES"""
    old, older, newer = (fill(tmp_path, *each) for each in (("old", 100, 2), ("older", 100, 1), ("newer", 100, 3)))
    foreign = older.with_name("notes.txt")
    foreign.write_text("of a user")
    left_by_a_kill = newer.with_name("abc.keys.tmp")
    left_by_a_kill.write_bytes(bytes(1_000))
    os.utime(left_by_a_kill, (1, 1))
    space = IndexSpace(tmp_path, keeps=tmp_path / "orders-id", limit=350)
    space.take(50)
    assert old.exists()
    assert older.exists()
    assert not left_by_a_kill.exists()
    space = IndexSpace(tmp_path, keeps=tmp_path / "orders-id", limit=350)
    space.take(150)
    assert old.exists()
    assert not older.exists()
    assert foreign.exists()
    with pytest.raises(OSError, match="may take 350 bytes"):
        space.take(400)
    assert IndexSpace(tmp_path, keeps=tmp_path)._limit == limits.MAX_KEY_INDEX_BYTES


def test_a_reading_marks_the_index_as_used(tmp_path: Path) -> None:
    built(tmp_path)
    os.utime(tmp_path / "orders-id", (1, 1))
    stored(tmp_path)
    assert (tmp_path / "orders-id").stat().st_mtime > 1


def test_stripes_whose_records_an_unclean_election_replaced_are_removed(tmp_path: Path) -> None:
    built(tmp_path)
    end = 10 + 3 * 512 + 1
    other = lookup(tmp_path, EPOCH + 1, end)
    assert other.ranges(0, WHOLE, [b"no such key"])[-1] == Bounds(10 + 3 * 512, WHOLE.end)
    assert [each.end for each in stored(tmp_path)] == [10 + each * 512 for each in (1, 2, 3)]


@pytest.mark.parametrize("position", [0, 6, 12, 60, -1])
def test_a_damaged_file_counts_as_missing_until_a_scan_replaces_it(tmp_path: Path, position: int) -> None:
    built(tmp_path)
    file = min((tmp_path / "orders-id" / "0").iterdir())
    data = bytearray(file.read_bytes())
    data[position] ^= 0x55
    file.write_bytes(data)
    assert len(stored(tmp_path)) == 7
    file.write_bytes(data[:20])
    assert len(stored(tmp_path)) == 7
    built(tmp_path)
    assert len(stored(tmp_path)) == 8


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
    assert stripe.holding(np.array([1, 2], np.uint32)) == []
    assert stripe.bounds == Bounds(0, 256)
    assert StripeBuilder(5, EPOCH).finish(9).bounds == Bounds(5, 9)
