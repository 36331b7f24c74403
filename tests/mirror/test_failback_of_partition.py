"""One partition of an old site that becomes a copy of the site that took over: compared, cut, and equal again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from barnabas.errors import ErrorCode
from barnabas.mirror.partition_copy import SourceAnswer, Step
from tests.mirror.copying import NOW_MS, Pair


def go_on_until(pair: Pair, state: str) -> None:
    for _ in range(60):
        if pair.copy.status(NOW_MS).state == state:
            return
        if pair.copy.wants_records:
            pair.round()
    raise AssertionError(f"{pair.copy.status(NOW_MS)} is not {state}")


def fail_back(pair: Pair) -> None:
    for state, result in (("inspecting", "inspected"), ("comparing", "compared"), ("truncating", "truncated")):
        pair.set_state(state)
        go_on_until(pair, result)
    pair.set_state("mirroring")
    pair.begin_epoch()
    assert pair.copy.wants_records
    pair.rounds()


def test_records_that_only_one_side_has_are_cut(pair: Pair) -> None:
    pair.write(b"a", b"b")
    pair.rounds()
    pair.write_here(b"x")
    pair.write_here(b"y", b"z")
    pair.write(b"c")
    pair.set_state("comparing")
    go_on_until(pair, "compared")
    status = pair.copy.status(NOW_MS)
    assert (status.common_offset, status.end_offset) == (2, 5)
    fail_back(pair)
    assert pair.differences() == []
    assert pair.target.high_watermark == 3
    assert pair.target.end_offset_for_epoch(2) == (2, 2)  # a consumer that has read the lost records is told where they began


def test_a_cut_log_takes_nothing_before_the_next_epoch(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    pair.write_here(b"x")
    pair.write(b"b")
    pair.set_state("comparing")
    go_on_until(pair, "compared")
    pair.set_state("truncating")
    go_on_until(pair, "truncated")
    pair.set_state("mirroring")
    assert not pair.copy.wants_records
    assert pair.copy.status(NOW_MS).reason == "waits for the next leader epoch"
    pair.begin_epoch()
    assert pair.copy.wants_records
    pair.rounds()
    assert pair.copy.status(NOW_MS).reason == ""


def test_nothing_is_cut_before_the_state_allows_it(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    pair.write_here(b"x")
    for state, result in (("inspecting", "inspected"), ("comparing", "compared")):
        pair.set_state(state)
        go_on_until(pair, result)
        assert not pair.copy.wants_records
        assert pair.cut() == 0
    assert pair.target.log.log_end_offset == 2


def test_open_transactions_and_producers_are_those_of_the_common_part(pair: Pair) -> None:
    pair.write(b"a", producer_id=9, sequence=0, transactional=True)
    pair.write(b"b", producer_id=7, sequence=0)
    pair.rounds()
    pair.write_here(b"x", producer_id=7, sequence=1)
    pair.write_here(b"y", producer_id=8, sequence=0, transactional=True)
    pair.end(9, commit=False)
    fail_back(pair)
    assert pair.differences() == []
    assert pair.target.last_stable_offset == 3
    assert {each.producer_id: each.last_sequence for each in pair.target.log.reader.producers() if each.producer_id != 9} == {
        7: 0
    }


def test_a_log_whose_start_is_past_the_source_starts_again(pair: Pair) -> None:
    for value in (b"a", b"b"):
        pair.write(value)
    pair.rounds()
    for value in (b"x", b"y", b"z"):
        pair.write_here(value)
    pair.target.log.truncator.delete_records_before(4)
    pair.write(b"c")
    fail_back(pair)
    assert pair.differences() == []
    assert (pair.target.log.log_start_offset, pair.target.log.log_end_offset) == (0, 3)


def test_a_source_whose_start_is_past_this_log_is_followed_from_there(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    for value in (b"b", b"c", b"d"):
        pair.write(value)
    pair.source.log.truncator.delete_records_before(3)
    fail_back(pair)
    assert pair.differences() == []
    assert pair.target.log.log_start_offset == 3


def test_the_end_of_the_promotion_limits_what_is_common(pair: Pair) -> None:
    pair.write(b"a")
    pair.write(b"b")
    pair.rounds()
    pair.target.update_config(replace(pair.target.log.config, mirror_source_promoted_ends=("1:9", "0:1")))
    fail_back(pair)
    assert pair.target.end_offset_for_epoch(2) == (2, 1)
    assert pair.differences() == []


def test_a_leader_that_takes_over_cuts_again(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    pair.write_here(b"x", b"y")
    pair.write(b"b")
    pair.set_state("comparing")
    go_on_until(pair, "compared")
    pair.set_state("truncating")
    pair.restart_copy()
    assert not pair.copy.divergence.is_known
    go_on_until(pair, "truncated")
    fail_back(pair)
    assert pair.differences() == []


def test_a_source_that_is_away_holds_the_comparison_back(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    pair.set_state("comparing")
    assert pair.copy.wants_records
    lost = SourceAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, b"")
    assert pair.copy.receive(pair.copy.position, lost, NOW_MS) is Step.FIND_LEADER
    assert pair.copy.status(NOW_MS).state == "comparing"
    go_on_until(pair, "compared")


def test_a_stopped_copy_can_be_cut_too(pair: Pair) -> None:
    """The source was elected uncleanly: the records here beyond the common point are saved by the command, and cut."""
    pair.write(b"a")
    pair.write(b"b")
    pair.rounds()
    pair.lose(1)
    pair.write(b"other")
    pair.restart_copy()
    assert pair.round() is Step.STOP
    assert pair.copy.status(NOW_MS).state == "stopped"
    for _ in range(5):
        assert not pair.copy.wants_records or pair.round() in {Step.FETCH, Step.STOP}
    assert pair.copy.reason == "the source has other records at offset 1; the source does not have 1 offsets here, from 1 on"
    assert not pair.copy.wants_records
    assert pair.target.log.log_end_offset == 2
    fail_back(pair)
    assert pair.differences() == []


SIDE = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["plain", "commit", "abort", "open"])), max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    common=SIDE,
    ours=SIDE,
    theirs=SIDE,
    deleted=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    segment_bytes=st.sampled_from([200, 10_000]),
)
def test_whatever_both_sides_have_they_become_equal(
    tmp_path_factory: pytest.TempPathFactory, common: list[tuple[int, str]], ours: list[tuple[int, str]], theirs: list[tuple[int, str]],
    deleted: tuple[int, int], segment_bytes: int,
) -> None:  # fmt: skip
    pair = Pair(tmp_path_factory.mktemp("pair"), segment_bytes=segment_bytes)
    for number, (count, kind) in enumerate(common):
        _write(pair, number, count, kind)
    pair.rounds()
    for number, (count, kind) in enumerate(ours, 100):
        if kind == "plain":
            pair.write_here(*[b"ours"] * count)
        else:
            pair.write_here(*[b"ours"] * count, producer_id=number, sequence=0, transactional=True)
    for number, (count, kind) in enumerate(theirs, 200):
        _write(pair, number, count, kind)
    for side, count in zip((pair.target, pair.source), deleted, strict=True):
        side.log.truncator.delete_records_before(min(side.log.log_start_offset + count, side.high_watermark))
    fail_back(pair)
    pair.round()
    assert pair.target.last_stable_offset == pair.source.last_stable_offset or pair.target.log.log_start_offset > 0
    start = max(pair.source.log.log_start_offset, pair.target.log.log_start_offset)
    assert [each for each in pair.differences() if int(each.partition(":")[0]) >= start] == []
    pair.close()


def _write(pair: Pair, number: int, count: int, kind: str) -> None:
    if kind == "plain":
        pair.write(*[b"v"] * count)
        return
    pair.write(*[b"v"] * count, producer_id=number, sequence=0, transactional=True)
    if kind != "open":
        pair.end(number, commit=kind == "commit")
