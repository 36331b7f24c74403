"""Bytes that may be served unchecked, compared with a model that tracks every byte."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.storage.integrity import MAX_STRETCHES, READ_AHEAD_BYTES, READ_ENDS, Damage, SegmentIntegrity
from barnabas.storage.verify import verify
from tests.storage.support import FILES, append, batch, open_log

UNIT = READ_AHEAD_BYTES // 4
SIZE = 40
STEP = st.tuples(st.sampled_from(["add", "cold"]), st.integers(0, SIZE), st.integers(0, SIZE))


@given(st.integers(0, SIZE), st.lists(STEP, max_size=30))
def test_nothing_is_trusted_that_the_model_does_not_trust(tail: int, steps: list[tuple[str, int, int]]) -> None:
    trust = SegmentIntegrity(FILES, 0)
    trust.tail = tail * UNIT
    trusted = set(range(tail, SIZE))
    for kind, one, other in steps:
        start, end = sorted((one, other))
        if start == end:
            continue
        if kind == "add":
            trust.add(start * UNIT, end * UNIT)
            trusted |= set(range(start, end))
        else:
            trust.forget_behind(end * UNIT, SIZE * UNIT)
            trusted -= set(range(end, min(end + READ_AHEAD_BYTES // UNIT, SIZE)))
        for first in range(SIZE):
            for last in range(first + 1, SIZE + 1):
                assert trust.covers(first * UNIT, last * UNIT) == (set(range(first, last)) <= trusted)


def test_a_reader_in_order_leaves_one_stretch_and_jumpers_a_bounded_number() -> None:
    trust = SegmentIntegrity(FILES, 0)
    trust.tail = 1_000_000
    for position in range(0, 1000, 10):
        trust.add(position, position + 10)
    assert trust.covers(0, 1000)
    assert not trust.covers(0, 1001)
    for position in range(2000, 900_000, 1000):
        trust.add(position, position + 10)
    assert sum(trust.covers(position, position + 10) for position in range(2000, 900_000, 1000)) == MAX_STRETCHES


def test_what_grows_behind_the_end_is_trusted() -> None:
    trust = SegmentIntegrity(FILES, 0)
    trust.tail = 1000
    trust.forget_behind(1000, 1000)
    assert trust.covers(1000, 2000)
    trust.forget_behind(1500, 2000)
    assert trust.covers(1000, 1500)
    assert not trust.covers(1500, 1600)
    assert trust.covers(2000, 2100)


def test_damage_is_known_by_offset_until_it_is_cut_off() -> None:
    trust = SegmentIntegrity(FILES, 0)
    damage = Damage(100, 200, 10, 20, "why")
    assert trust.note(damage)
    assert not trust.note(damage)
    assert [trust.damage_at(offset) for offset in (9, 10, 19, 20)] == [None, damage, damage, None]
    trust.cut(100)
    assert trust.damage_at(10) is None


def test_where_reads_ended_is_known_for_the_last_readers_until_the_segment_is_cut() -> None:
    trust = SegmentIntegrity(FILES, 0)
    assert trust.end_of_read(5) is None
    for offset in range(2 * READ_ENDS):
        trust.note_end(offset, offset * 100)
    assert [trust.end_of_read(offset) for offset in (READ_ENDS - 1, READ_ENDS)] == [None, READ_ENDS * 100]
    assert trust.cuts == 0
    trust.cut(2 * READ_ENDS * 100)
    assert trust.end_of_read(READ_ENDS) is None
    assert trust.cuts == 1, "what a thread saw before says nothing now"


def test_offsets_that_lead_out_of_a_sealed_segment_are_damage(tmp_path: Path) -> None:
    """The base offset lies outside of the CRC; behind the last batch of a segment there is no neighbour to judge it by."""
    log = open_log(tmp_path, TopicConfig(segment_bytes=300))
    for _ in range(12):
        append(log, b"x" * 60)
    log.close()
    first = log.segments[0]
    last = first.size // 2
    data = bytearray(first.path.read_bytes())
    data[last + 5] ^= 1
    first.path.write_bytes(data)
    log = open_log(tmp_path)
    region = log.reader.read(0, 10_000, limit_offset=log.log_end_offset, minimum_one=True)
    assert region is not None
    found = verify(FILES, region.fileno, region.position, region.position + region.size, 0, region.integrity.end_offset())
    assert found.end == last
    assert found.damage is not None
    assert found.damage.reason == "the offsets lead past the segment"
    for offset in range(1, log.log_end_offset):
        region = log.reader.read(offset, 1, limit_offset=log.log_end_offset, minimum_one=True)
        assert region is not None
        assert region.base_offset == offset
    log.close()


def test_two_neighbours_whose_base_offsets_both_lie_are_both_damage(tmp_path: Path) -> None:
    """The second has no room behind the first where that one says it is. Seed 1733 of the simulator: the first was served at its wrong
    offset."""
    first, second = bytearray(batch(b"x")), bytearray(batch(b"a", b"b", b"c", b"d"))
    first[:8], second[:8] = (4).to_bytes(8, "big"), (2**49 + 1).to_bytes(8, "big")  # correct: 0 and 1
    path, data = tmp_path / "segment", first + second
    path.write_bytes(data)
    with path.open("rb") as file:
        for end in (len(first), len(data)):  # also if the read ends after the first
            found = verify(FILES, file.fileno(), 0, end, 0, end_offset=5, tail=len(data))
            assert (found.end, found.next_offset) == (0, 0)
            assert found.damage is not None


def test_a_batch_that_came_while_another_was_verified_accuses_nobody(tmp_path: Path) -> None:
    """The end of the segment was read before it was there."""
    first, second = batch(b"x"), bytearray(batch(b"y"))
    second[:8] = (1).to_bytes(8, "big")
    path = tmp_path / "segment"
    path.write_bytes(first + second)
    with path.open("rb") as file:
        found = verify(FILES, file.fileno(), 0, len(first), 0, end_offset=1, tail=len(first))
    assert (found.end, found.next_offset, found.damage) == (len(first), 1, None)
