"""The records that a failback saves: which ones, and what is added to them."""

from __future__ import annotations

from barnabas.mirror.lost_records import Outcomes, batches_of, early_records, origin_of
from barnabas.protocol.records.batch import build_batch, iterate_records, split_batches
from barnabas.protocol.records.record import Record
from barnabas.storage.markers import marker_batch

NOW_MS = 1_700_000_000_000


def batch(base: int, *values: bytes, producer: int = -1, codec: int = 0) -> bytes:
    records = [Record(0, NOW_MS + number, b"k", value, (("h", b"1"),)) for number, value in enumerate(values)]
    fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True} if producer >= 0 else {}
    return build_batch(records, base_offset=base, compression=codec, **fields)  # type: ignore[arg-type]  # they are fields of the batch


def marker(base: int, producer: int, *, commit: bool) -> bytes:
    data = bytearray(marker_batch(producer, 0, commit=commit, coordinator_epoch=1, now_ms=NOW_MS).batch.data)
    data[:8] = base.to_bytes(8, "big")
    return bytes(data)


def test_records_of_aborted_transactions_are_left_out_and_open_ones_are_marked() -> None:
    log = b"".join(
        [
            batch(10, b"plain"),
            batch(11, b"aborted", b"too", producer=1),
            batch(13, b"committed", producer=2),
            marker(14, 1, commit=False),
            marker(15, 2, commit=True),
            batch(16, b"open", producer=1),
        ]
    )
    outcomes = Outcomes()
    assert outcomes.note(log) == 17
    found = [(each.record.offset, each.record.value, each.is_open) for each in outcomes.records(log, 10)]
    assert found == [(10, b"plain", False), (13, b"committed", False), (16, b"open", True)]
    assert outcomes.aborted == 2


def test_a_transaction_that_began_before_the_common_point_is_saved_as_a_whole() -> None:
    before = (
        batch(3, b"first", producer=2) + batch(4, b"done", producer=5) + marker(5, 5, commit=True) + batch(6, b"x", producer=7)
    )
    beyond = (
        batch(10, b"second", producer=2) + marker(11, 2, commit=True) + batch(12, b"y", producer=5) + marker(13, 5, commit=True)
    )
    outcomes = Outcomes()
    outcomes.note(beyond)
    assert outcomes.early == {2, 5}
    assert outcomes.first_commit_ms == NOW_MS
    assert [each.record.value for each in early_records([before, beyond], outcomes.early, 10)] == [b"first"]
    assert [each.record.value for each in outcomes.records(beyond, 10)] == [b"second", b"y"]


def test_a_saved_record_tells_where_it_was() -> None:
    log = batch(4, b"a", b"b", codec=1) + batch(6, b"c")
    outcomes = Outcomes()
    outcomes.note(log)
    made = list(batches_of(outcomes.records(log, 5), "orders", 2))
    assert [count for _, count in made] == [1, 1]  # a batch has one codec
    ((position, header),) = split_batches(made[0][0])
    (record,) = iterate_records(made[0][0], position)
    assert header.compression == 1
    assert (record.key, record.value, record.timestamp, origin_of(record)) == (b"k", b"b", NOW_MS + 1, 5)
    assert dict(record.headers) == {
        "h": b"1", "mirror.origin.topic": b"orders", "mirror.origin.partition": b"2", "mirror.origin.offset": b"5"
    }  # fmt: skip


def test_large_records_are_saved_in_several_batches() -> None:
    log = b"".join(batch(offset, bytes(100_000)) for offset in range(6))
    outcomes = Outcomes()
    outcomes.note(log)
    assert [count for _, count in batches_of(outcomes.records(log, 0), "orders", 0)] == [2, 2, 2]
