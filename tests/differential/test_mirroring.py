"""Copies of a mirror link are what their sources are, and the comparison sees every kind of difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.storage.markers import marker_batch
from tests.differential.mirroring.__main__ import compare_rounds
from tests.differential.mirroring.compare import demand_equal
from tests.differential.mirroring.dumps import Dumped, _take
from tests.differential.mirroring.load import TRANSACTIONS, Ledger
from tests.differential.mirroring.stored import PartitionLog, Unequal, in_folder, in_order, split

NOW_MS = 1_700_000_000_000
Writing = tuple[bytes | None, bytes | None]


def test_a_copy_is_equal_during_load_compaction_aborts_deletions_and_growth() -> None:
    differ = compare_rounds(2, 7, 0.5, with_dumps=False)
    assert differ.batches > 100


def batch(offset: int, *records: Writing, epoch: int = 0, producer_id: int = -1, **fields: Any) -> bytes:
    """One batch at `offset`; producers have transactions."""
    if producer_id >= 0:
        fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True, **fields}
    made = bytearray(build_batch(records, timestamp_ms=NOW_MS, **fields))
    return placed(made, offset, epoch)


def placed(made: bytearray, offset: int, epoch: int = 0) -> bytes:
    made[0:8], made[12:16] = offset.to_bytes(8, "big"), epoch.to_bytes(4, "big")
    return bytes(made)


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    made = marker_batch(producer_id, 0, commit=commit, coordinator_epoch=1, now_ms=NOW_MS)
    return placed(bytearray(made.batch.data), offset)


def log(*batches: bytes, start: int = 0) -> PartitionLog:
    found = list(split("t-0", b"".join(batches)))
    return PartitionLog("t-0", start, found[-1].header.next_offset if found else start, in_order("t-0", found))


A, B, C = (b"k", b"a"), (b"k", b"b"), (b"l", b"c")


def test_other_leader_epochs_are_no_difference() -> None:
    assert demand_equal(log(batch(0, A), batch(1, B, epoch=3)), log(batch(0, A, epoch=7), batch(1, B, epoch=9))) == 2


@pytest.mark.parametrize(
    ("copy", "told"),
    [
        (log(batch(0, A), batch(1, C)), "the batch at 1: crc"),
        (log(batch(0, A), batch(2, B)), r"is \[0, 3\)"),
        (log(batch(1, B)), "the batch at 0 is missing"),
        (log(batch(0, A), batch(1, B), batch(2, C)), r"is \[0, 3\)"),
        (log(batch(0, A, B)), "the batch at 0: batch_length"),
        (log(batch(0, A), batch(1, B), start=1), r"is \[1, 2\)"),
        (log(batch(0, A)), r"is \[0, 1\)"),
    ],
)
def test_every_difference_is_seen(copy: PartitionLog, told: str) -> None:
    with pytest.raises(Unequal, match=told):
        demand_equal(log(batch(0, A), batch(1, B)), copy)


def test_a_copy_may_be_behind_but_not_ahead() -> None:
    one, two = log(batch(0, A)), log(batch(0, A), batch(1, B))
    assert demand_equal(two, one, is_whole=False) == 1
    with pytest.raises(Unequal, match="ends at 2"):
        demand_equal(one, two, is_whole=False)


WHOLE = log(batch(0, A), batch(1, B), batch(2, C))


def test_either_side_may_have_compacted() -> None:
    """The record at 0 is superseded, so one of both may lack it; the end shows that nothing more is missing."""
    compacted = log(batch(1, B), batch(2, C))
    assert demand_equal(WHOLE, compacted, compacted=True) == 2
    assert demand_equal(compacted, WHOLE, compacted=True) == 2
    assert demand_equal(log(batch(1, B), batch(2, C)), log(batch(0, A)), compacted=True, is_whole=False) == 0


@pytest.mark.parametrize(
    ("copy", "told"),
    [
        (log(batch(0, A), batch(2, C)), "the record at 1 with the last value of b'k' is missing"),
        (log(batch(0, A), batch(1, (b"k", b"x")), batch(2, C)), "the record at 1"),
        (log(batch(0, A), batch(1, B), batch(2, (b"m", b"c"))), "the record at 2"),
        (log(batch(0, A), batch(1, B, C)), "the batch at 1"),
    ],
)
def test_a_difference_of_a_compacted_topic_is_seen(copy: PartitionLog, told: str) -> None:
    with pytest.raises(Unequal, match=told):
        demand_equal(WHOLE, copy, compacted=True)


def test_records_of_aborted_transactions_may_be_compacted_away() -> None:
    start, end = batch(0, (b"k", b"old")), (marker(2, 5, commit=False), batch(3, C))
    whole = log(start, batch(1, B, producer_id=5), *end)
    assert demand_equal(whole, log(start, *end), compacted=True) == 3
    committed = (marker(2, 5, commit=True), batch(3, C))
    with pytest.raises(Unequal, match="the record at 1 with the last value of b'k' is missing"):
        demand_equal(log(start, batch(1, B, producer_id=5), *committed), log(start, *committed), compacted=True)


@pytest.mark.parametrize(
    ("batches", "told"),
    [
        ((batch(0, A, B), batch(1, C)), "follows one that ends before 2"),
        ((batch(0, A, epoch=4), batch(1, B, epoch=3)), "the leader epoch goes back from 4"),
        ((batch(0, A)[:-1] + b"?",), "wrong checksum"),
    ],
)
def test_a_log_that_contradicts_itself_is_seen(batches: tuple[bytes, ...], told: str, tmp_path: Path) -> None:
    with pytest.raises(Unequal, match=told):
        log(*batches)


def test_segments_of_a_folder_are_one_log(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, A) + batch(1, B))
    (tmp_path / "00000000000000000002.log").write_bytes(batch(2, C) + batch(3, C)[:HEADER_SIZE])  # a write is under way
    (tmp_path / "00000000000000000002.log.deleted").write_bytes(b"no log")
    found = in_folder(tmp_path)
    assert (found.start, found.end, sorted(found.batches)) == (0, 3, [0, 1, 2])


def test_the_ledger_sees_what_is_missing_and_other_ends_of_transactions() -> None:
    ledger = Ledger()
    ledger.acknowledged[TRANSACTIONS, 0] = {0: b"a", 1: b"b"}
    ledger.committed = {b"b"}
    right = log(batch(0, (b"a", b"a")), batch(1, (b"b", b"b"), producer_id=5), marker(2, 5, commit=True))
    assert ledger.check(right, TRANSACTIONS, 0) == 2
    assert ledger.check(log(*split_up(right)[1:], start=1), TRANSACTIONS, 0) == 1
    with pytest.raises(Unequal, match="b'b' was acknowledged at 1"):
        ledger.check(log(batch(0, (b"a", b"a"))), TRANSACTIONS, 0)
    for end in ([marker(2, 5, commit=False)], []):
        with pytest.raises(Unequal, match="another end"):
            ledger.check(log(*split_up(right)[:2], *end), TRANSACTIONS, 0)


def split_up(found: PartitionLog) -> list[bytes]:
    return [each.data for _, each in sorted(found.batches.items())]


def dumped(*lines: str) -> Dumped:
    folder = Path("/data/t-0")
    found = {folder: Dumped()}
    _take([f"Dumping {folder}/00000000000000000000.log", "Log starting offset: 0", *lines], found)
    return found[folder]


BATCH_LINE = (
    "baseOffset: {0} lastOffset: {0} count: 1 producerId: {1} partitionLeaderEpoch: {2} position: {2} size: 69 isvalid: true"
)


@pytest.mark.parametrize(
    "change", [lambda: BATCH_LINE.format(0, 6, 0), lambda: BATCH_LINE.format(1, 5, 0), lambda: "Log starting offset: 0"]
)
def test_other_batches_in_a_dump_are_seen(change: Callable[[], str]) -> None:
    source = dumped(BATCH_LINE.format(0, 5, 0), "| offset: 0 key: k payload: a")
    assert source.compare("t-0", dumped(BATCH_LINE.format(0, 5, 9), "| offset: 0 key: k payload: a"), 0, 2, compacted=False) == 1
    with pytest.raises(Unequal, match="kafka-dump-log shows other contents"):
        source.compare("t-0", dumped(change(), "| offset: 0 key: k payload: a"), 0, 2, compacted=False)
    for compacted in (False, True):
        with pytest.raises(Unequal, match="the record at 0"):
            source.compare("t-0", dumped(BATCH_LINE.format(0, 5, 0), "| offset: 0 key: k payload: b"), 0, 2, compacted=compacted)


@pytest.mark.parametrize("line", [BATCH_LINE.format(0, 5, 0).replace("true", "false"), "Found timestamp mismatch in :t-0"])
def test_faults_that_the_dump_tool_tells_are_seen(line: str) -> None:
    with pytest.raises(Unequal, match=line[-10:]):
        dumped(line)


def test_only_a_cut_end_is_left_out() -> None:
    data = batch(0, A)
    assert [each.header.base_offset for each in split("t-0", data + data[:20])] == [0]
