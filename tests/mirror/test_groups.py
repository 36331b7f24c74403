"""Which committed offsets of the source are committed here."""

from __future__ import annotations

from barnabas.mirror.groups import GroupOffsets

A, B = ("t", 0), ("t", 1)


def test_offsets_are_committed_once() -> None:
    offsets = GroupOffsets()
    assert offsets.due("g", {A: 4, B: 2}, {A: 9, B: 9}) == {A: 4, B: 2}
    offsets.committed("g", {A: 4})
    assert offsets.due("g", {A: 4, B: 2}, {A: 9, B: 9}) == {B: 2}  # that of B was refused, and is tried again
    assert offsets.due("other", {A: 4}, {A: 9}) == {A: 4}


def test_offsets_lie_within_the_copy() -> None:
    """A consumer past the end would be out of range, and might begin anew."""
    offsets = GroupOffsets()
    assert offsets.due("g", {A: 7}, {A: 5}) == {A: 5}
    offsets.committed("g", {A: 5})
    assert offsets.due("g", {A: 7}, {A: 5}) == {}
    assert offsets.due("g", {A: 7}, {A: 8}) == {A: 7}


def test_partitions_without_an_offset_or_a_known_end_are_left_out() -> None:
    assert GroupOffsets().due("g", {A: -1, B: 3}, {A: 9}) == {}


def test_groups_that_are_gone_are_forgotten() -> None:
    offsets = GroupOffsets()
    offsets.committed("g", {A: 4})
    offsets.keep({"other"})
    assert offsets.due("g", {A: 4}, {A: 9}) == {A: 4}
