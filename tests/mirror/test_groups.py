"""Which committed offsets of the source are committed here."""

from __future__ import annotations

from barnabas.mirror.groups import Committed, GroupOffsets, Partition, summary

A, B = ("t", 0), ("t", 1)


def at(**offsets: int) -> dict[Partition, Committed]:
    return {("t", int(name[1:])): Committed(offset) for name, offset in offsets.items()}


def test_offsets_are_committed_once() -> None:
    offsets = GroupOffsets()
    assert offsets.due("g", at(p0=4, p1=2), {A: 9, B: 9}) == at(p0=4, p1=2)
    offsets.committed("g", at(p0=4))
    assert offsets.due("g", at(p0=4, p1=2), {A: 9, B: 9}) == at(p1=2)  # that of B was refused, and is tried again
    assert offsets.due("other", at(p0=4), {A: 9}) == at(p0=4)


def test_an_offset_that_goes_back_and_another_text_are_committed() -> None:
    offsets = GroupOffsets()
    offsets.committed("g", at(p0=4))
    assert offsets.due("g", at(p0=1), {A: 9}) == at(p0=1)
    assert offsets.due("g", {A: Committed(4, "text")}, {A: 9}) == {A: Committed(4, "text")}


def test_offsets_lie_within_the_copy() -> None:
    """A consumer past the end would be out of range, and might begin anew."""
    offsets = GroupOffsets()
    assert offsets.due("g", at(p0=7), {A: 5}) == at(p0=5)
    offsets.committed("g", at(p0=5))
    assert offsets.due("g", at(p0=7), {A: 5}) == {}
    assert offsets.due("g", at(p0=7), {A: 8}) == at(p0=7)


def test_partitions_without_an_offset_or_a_known_end_are_left_out() -> None:
    assert GroupOffsets().due("g", at(p0=-1, p1=3), {A: 9}) == {}


def test_groups_that_are_gone_are_forgotten() -> None:
    offsets = GroupOffsets()
    offsets.committed("g", at(p0=4))
    assert offsets.knows("g")
    offsets.keep({"other"})
    assert not offsets.knows("g")
    assert offsets.due("g", at(p0=4), {A: 9}) == at(p0=4)


def test_a_summary_is_short() -> None:
    assert summary({"b", "a"}) == "a, b"
    assert summary(f"g{number}" for number in range(8)) == "g0, g1, g2, g3, g4 and 3 more"
