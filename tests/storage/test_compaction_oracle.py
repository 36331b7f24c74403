"""The oracle of compaction on cases that one can work out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.storage.compaction_oracle import Ending, Expected, Logged, expected_after_compaction

DAY_MS = 86_400_000


def log_of(*entries: tuple[bytes | None, bytes | None]) -> list[Logged]:
    """Records in batches of their own."""
    return [Logged(offset, offset, key, value, offset) for offset, (key, value) in enumerate(entries)]


def after(records: Sequence[Logged], *, end: int = 1_000, now_ms: int = 0) -> Expected:
    return expected_after_compaction(records, end_offset=end, now_ms=now_ms, delete_retention_ms=DAY_MS)


def offsets(expected: Expected) -> list[int]:
    return [record.offset for record in expected.records]


def test_the_last_of_each_key_stays_where_it_was() -> None:
    records = log_of((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (None, b"x"), (b"b", b"2"), (b"c", b"1"))
    assert offsets(after(records)) == [2, 4, 5]
    assert after(records).records == [records[2], records[4], records[5]]


def test_nothing_at_or_past_the_end_is_looked_at() -> None:
    records = log_of((b"a", b"1"), (b"a", b"2"), (b"a", b"3"), (b"a", b"4"))
    assert offsets(after(records, end=2)) == [1, 2, 3]


def test_a_tombstone_stays_for_its_time() -> None:
    records = log_of((b"a", b"1"), (b"a", None), (b"b", b"1"))
    once = after(records, now_ms=5)
    assert [(r.offset, r.horizon_ms) for r in once.records] == [(1, 5 + DAY_MS), (2, None)]
    assert offsets(after(once.records, now_ms=5 + DAY_MS - 1)) == [1, 2]
    assert offsets(after(once.records, now_ms=5 + DAY_MS)) == [2]


def test_a_tombstone_that_is_superseded_goes_at_once() -> None:
    assert offsets(after(log_of((b"a", None), (b"a", b"1")))) == [1]


def test_the_horizon_is_of_the_whole_batch() -> None:
    records = [replace(record, batch=0) for record in log_of((b"a", None), (b"b", b"1"))]
    assert [r.horizon_ms for r in after(records).records] == [DAY_MS, DAY_MS]


def test_aborted_records_go_and_count_for_no_key() -> None:
    records = [
        Logged(0, 0, b"a", b"good", 0),
        Logged(1, 1, b"a", b"bad", 1, transaction=7),
        Logged(2, 2, None, None, 2, transaction=7, ending=Ending.ABORT),
    ]
    found = after(records)
    assert offsets(found) == [0, 2]
    assert found.may_go == {2}


def test_a_commit_stays_with_its_records() -> None:
    records = [
        Logged(0, 0, b"a", b"1", 0, transaction=7),
        Logged(1, 1, None, None, 1, transaction=7, ending=Ending.COMMIT),
        Logged(2, 2, b"b", b"1", 2),
    ]
    assert after(records).may_go == frozenset()
    later = [*records, Logged(3, 3, b"a", b"2", 3)]
    assert offsets(after(later)) == [1, 2, 3]
    assert after(later).may_go == {1}
    assert after(later, end=3).may_go == frozenset()
