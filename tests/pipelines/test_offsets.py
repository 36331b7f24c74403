"""Positions as JSON and the arithmetic on them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Offsets,
    OptionError,
    Position,
    from_json,
    from_stream_offset,
    limit_bytes,
    limit_rows,
    partitions_from_json,
    position_from_json,
    split_ranges,
    stream_offset,
    timestamps_from_json,
    to_json,
)

partitions = st.tuples(st.sampled_from("abc"), st.integers(0, 12))
positions = st.dictionaries(partitions, st.integers(0, 10_000), max_size=8)


@given(positions)
def test_offsets_survive_json_and_equal_ones_are_equal_text(offsets: Offsets) -> None:
    text = json.dumps(to_json(offsets))
    assert from_json(json.loads(text)) == offsets
    assert json.dumps(to_json(dict(reversed(offsets.items())))) == text


def test_partitions_are_ordered_as_numbers() -> None:
    assert list(to_json({("t", 10): 1, ("t", 9): 2})["t"]) == ["9", "10"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"t": 1}', '{"t": {"x": 1}}', '{"t": {"0": "1"}}', '{"t": {"0": true}}'])
def test_text_that_is_no_position(text: str) -> None:
    with pytest.raises(OptionError, match=r"Expected e\.g"):
        position_from_json(text)
    with pytest.raises(OptionError, match=r"Expected e\.g"):
        timestamps_from_json(text)


def test_a_topic_may_have_one_word_for_all_of_its_partitions() -> None:
    position = position_from_json('{"t":"earliest","u":{"0":23},"v":"LATEST"}')
    assert position == Position(offsets={("u", 0): 23}, topics={"t": EARLIEST, "v": LATEST})
    assert position.moves
    assert not position_from_json('{"t":"earliest"}').moves
    for text in ('{"t":"first"}', '{"t":{"0":"earliest"}}'):
        with pytest.raises(OptionError, match=r'Expected e\.g\. .* or {"topicA":"earliest","topicB":"latest"}'):
            position_from_json(text)
    with pytest.raises(OptionError, match=r"Expected e\.g"):
        timestamps_from_json('{"t":"earliest"}')


@pytest.mark.parametrize("text", ["[]", '{"t": 1}', '{"t": ["0"]}', '{"t": {"0": 1}}'])
def test_text_that_is_no_assignment(text: str) -> None:
    with pytest.raises(OptionError, match=r"Expected e\.g"):
        partitions_from_json(text)


@given(positions, positions, st.integers(1, 5_000))
def test_a_limit_is_kept_and_starves_nobody(start: Offsets, more: Offsets, limit: int) -> None:
    end = {tp: offset + more.get(tp, 0) for tp, offset in start.items()}
    found = limit_rows(limit, start, end)
    assert found.keys() == end.keys()
    waiting = {tp for tp in end if end[tp] > start[tp]}
    taken = {tp: found[tp] - start[tp] for tp in end}
    assert all(0 <= taken[tp] <= end[tp] - start[tp] for tp in end)
    assert all(taken[tp] > 0 for tp in waiting)
    assert sum(taken.values()) <= limit + len(waiting)


@given(positions, st.integers(1, 5_000))
def test_steps_under_a_limit_reach_the_end(end: Offsets, limit: int) -> None:
    at = dict.fromkeys(end, 0)
    for _ in range(sum(end.values()) + 1):
        if at == end:
            break
        at = limit_rows(limit, at, end)
    assert at == end


ranges = st.lists(
    st.builds(
        lambda p, start, size: OffsetRange("t", p, start, start + size),
        st.integers(0, 9),
        st.integers(0, 99),
        st.integers(0, 500),
    ),
    max_size=6,
)


@given(ranges, st.none() | st.integers(1, 40), st.none() | st.integers(1, 200))
def test_cut_ranges_cover_the_same_offsets_once(
    whole: list[OffsetRange], min_partitions: int | None, max_records: int | None
) -> None:
    parts = split_ranges(whole, min_partitions, max_records)
    assert sorted((r.partition, o) for r in whole for o in range(r.start, r.end)) == sorted(
        (r.partition, o) for r in parts for o in range(r.start, r.end)
    )
    assert all(r.size > 0 for r in parts)
    if max_records is not None:
        assert all(r.size <= max_records for r in parts)


def test_a_skewed_partition_is_cut_and_a_small_one_is_not() -> None:
    parts = split_ranges([OffsetRange("t", 0, 0, 1000), OffsetRange("t", 1, 0, 10)], 5)
    assert [(r.partition, r.size) for r in parts] == [(0, 250)] * 4 + [(1, 10)]


def test_a_streams_offset_has_the_ids_of_its_topics() -> None:
    offsets = {("b", 0): 5, ("a", 1): 7, ("a", 0): 6}
    written = stream_offset(offsets, {"a": "id-a", "b": "", "gone": "x"})
    assert written == {"a": {"0": 6, "1": 7}, "b": {"0": 5}, "#topicIds": {"a": "id-a"}}
    assert from_stream_offset(written) == (offsets, {"a": "id-a"})
    assert stream_offset(offsets, {}) == to_json(offsets)
    assert from_stream_offset(to_json(offsets)) == (offsets, {})


def test_bytes_are_shared_out_by_what_offsets_weigh() -> None:
    start, end = {("a", 0): 0, ("b", 0): 100}, {("a", 0): 1000, ("b", 0): 1100}
    weights = {"a": 10.0, "b": 90.0}
    assert limit_bytes(10_000, start, end, lambda tp, offset: weights[tp[0]]) == {("a", 0): 100, ("b", 0): 200}
    assert limit_bytes(10_000, start, end, lambda tp, offset: None) == end
    assert limit_bytes(10_000, end, end, lambda tp, offset: 10.0) == end
    only_a = limit_bytes(1_000, start, end, lambda tp, offset: 10.0 if tp[0] == "a" else None)
    assert only_a == {("a", 0): 100, ("b", 0): 1100}, "what is not known is not limited"
