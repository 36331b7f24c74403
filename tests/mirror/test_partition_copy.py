"""One partition and its copy, without brokers: what is copied, what is refused, what stops the copy."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.mirror.partition_copy import SourceAnswer, Step
from barnabas.mirror.source_batches import pieces
from barnabas.protocol.records.batch import build_batch
from barnabas.storage.markers import marker_batch
from tests.mirror.copying import NOW_MS, Pair


def test_batches_are_copied_byte_for_byte_at_their_offsets(pair: Pair) -> None:
    pair.write(b"a", b"b")
    pair.write(b"c")
    pair.rounds()
    pair.write(b"d")
    pair.rounds()
    assert pair.differences() == []
    assert pair.target.high_watermark == 4
    assert pair.target.log.reader.latest_epoch == 2


def test_transactions_are_copied_with_their_markers(pair: Pair) -> None:
    pair.write(b"a", producer_id=9, sequence=0, transactional=True)
    pair.write(b"b", producer_id=8, sequence=0, transactional=True)
    pair.end(9, commit=False)
    pair.rounds()
    assert pair.differences() == []
    assert pair.target.last_stable_offset == 1  # producer 8 has not ended its transaction
    pair.end(8, commit=True)
    pair.rounds()
    assert pair.target.last_stable_offset == 4
    assert [(each.producer_id, each.first_offset) for each in pair.target.log.reader.aborted_transactions(0, 4)] == [(9, 0)]


def test_nobody_else_writes_to_a_copy(pair: Pair) -> None:
    batch = memoryview(bytearray(build_batch([(None, b"x")], timestamp_ms=NOW_MS)))
    with pytest.raises(KafkaError, match="read-only copy of the mirror link link") as refused:
        pair.target.append_as_leader(batch, NOW_MS)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    marker, ending = marker_batch(3, 0, commit=True, coordinator_epoch=1, now_ms=NOW_MS)
    with pytest.raises(KafkaError) as refused:
        pair.target.append_own(marker, NOW_MS, ending)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH  # its sender does not try again
    with pytest.raises(KafkaError) as refused:
        pair.target.append_own(marker, NOW_MS)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert pair.target.log.appender.bounds_of_run(NOW_MS, 100, 1) is None
    assert pair.target.log.log_end_offset == 0


def test_the_start_follows_that_of_the_source(pair: Pair) -> None:
    for value in (b"a", b"b", b"c"):
        pair.write(value)
    pair.rounds()
    pair.source.log.truncator.delete_records_before(2)
    pair.round()
    assert pair.target.log.log_start_offset == 2


def test_the_start_follows_once_the_records_before_it_are_replicated(pair: Pair) -> None:
    """The source tells its start once: a fetch session leaves out partitions without news."""
    for value in (b"a", b"b", b"c"):
        pair.write(value)
    pair.rounds()
    pair.target.high_watermark = 1
    pair.source.log.truncator.delete_records_before(2)
    pair.round()
    assert pair.target.log.log_start_offset == 1
    pair.target.high_watermark = 3
    pair.copy.follow_start()
    assert pair.target.log.log_start_offset == 2


def test_the_high_watermark_stays_if_a_copy_starts_again_inside_of_a_batch(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    pair.write(b"b")
    pair.write(b"c", b"d", b"e")
    pair.source.log.truncator.delete_records_before(3)
    marks = []
    for _ in range(4):
        pair.round()
        marks.append(pair.target.high_watermark)
    assert marks == sorted(marks)
    assert (pair.target.log.log_start_offset, pair.target.log.log_end_offset, marks[-1]) == (3, 5, 5)
    assert pair.differences() == []


def test_a_copy_begins_where_the_source_begins(pair: Pair) -> None:
    for value in (b"a", b"b", b"c"):
        pair.write(value)
    pair.source.log.truncator.delete_records_before(2)
    pair.rounds()
    assert (pair.target.log.log_start_offset, pair.target.log.log_end_offset) == (2, 3)
    assert pair.differences() == []


def test_a_copy_of_an_emptied_source_continues_at_its_end(pair: Pair) -> None:
    """Otherwise a promoted topic would use offsets again that its consumers have passed."""
    for value in (b"a", b"b", b"c"):
        pair.write(value)
    pair.source.log.truncator.delete_records_before(3)
    pair.rounds()
    log = pair.target.log
    assert (log.log_start_offset, log.log_end_offset, pair.target.high_watermark) == (3, 3, 3)
    pair.write(b"d")
    pair.rounds()
    assert pair.differences() == []


def test_retention_that_overtakes_the_copy_leaves_a_gap(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    for value in (b"b", b"c", b"d"):
        pair.write(value)
    pair.source.log.truncator.delete_records_before(3)
    pair.rounds()
    assert (pair.target.log.log_start_offset, pair.target.log.log_end_offset) == (3, 4)


def test_a_copy_goes_on_after_another_broker_leads_it(pair: Pair) -> None:
    pair.write(b"a", b"b")
    pair.rounds()
    pair.restart_copy()
    pair.write(b"c")
    pair.rounds()
    assert pair.differences() == []
    assert pair.target.log.epoch_entries == [(2, 0), (3, 2)]


def test_one_answer_may_have_batches_of_several_leader_epochs(pair: Pair) -> None:
    """The next fetch names the epoch of the last of them; with that of the first, the source would see records that it never had."""
    pair.write(b"a")
    pair.restart_source()
    pair.write(b"b")
    pair.write(b"c")
    pair.round()
    assert pair.copy.source_epoch == pair.source.leader_epoch
    pair.restart_source()
    pair.write(b"d")
    pair.rounds()
    assert pair.differences() == []


def test_a_source_that_deleted_records_in_later_epochs_does_not_stop_the_copy(pair: Pair) -> None:
    pair.write(b"a")
    pair.rounds()
    for value in (b"b", b"c"):
        pair.restart_source()
        pair.write(value)
    pair.source.log.truncator.delete_records_before(2)
    pair.rounds()
    pair.source.log.truncator.delete_records_before(3)
    pair.rounds()
    assert (pair.target.log.log_start_offset, pair.target.log.log_end_offset) == (3, 3)


def test_a_transaction_whose_marker_was_deleted_before_it_was_copied_holds_no_reader_back(pair: Pair) -> None:
    pair.write(b"a", producer_id=9, sequence=0, transactional=True)
    pair.rounds()
    pair.end(9, commit=True)
    pair.write(b"b")
    pair.source.log.truncator.delete_records_before(2)
    pair.rounds()
    pair.round()
    assert pair.target.last_stable_offset == 3
    assert pair.copy.status(NOW_MS).state == "mirroring"


def test_a_transaction_with_records_past_the_start_stays_open(pair: Pair) -> None:
    pair.write(b"a", producer_id=9, sequence=0, transactional=True)
    pair.write(b"b", producer_id=9, sequence=1, transactional=True)
    pair.write(b"c")
    pair.rounds()
    pair.source.log.truncator.delete_records_before(1)
    pair.rounds()
    pair.round()
    assert pair.target.last_stable_offset == 1
    pair.end(9, commit=False)
    pair.rounds()
    assert pair.target.last_stable_offset == 4
    assert [each.producer_id for each in pair.target.log.reader.aborted_transactions(0, 4)] == [9]


def test_a_source_with_other_records_stops_the_copy(pair: Pair) -> None:
    pair.write(b"a", b"b")
    pair.rounds()
    pair.lose(0)
    pair.write(b"x", b"y")
    pair.restart_copy()
    assert pair.round() is Step.STOP
    assert pair.copy.reason == "the source has other records at offset 1"
    assert pair.copy.wants_records  # to find out from where on
    for _ in range(3):
        pair.round()
    assert pair.copy.reason.endswith("; the source does not have 2 offsets here, from 0 on")
    assert not pair.copy.wants_records
    assert pair.target.log.log_end_offset == 2  # nothing is cut


def test_a_compacted_source_with_a_batch_of_another_producer_stops_the_copy(tmp_path: Path) -> None:
    """Compaction changes the content of a batch, and neither its offsets nor its producer."""
    pair = Pair(tmp_path, cleanup_policy=frozenset({"compact"}))

    def write(producer_id: int) -> None:
        made = build_batch([(b"k", b"v")], timestamp_ms=NOW_MS, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        pair.source.append_as_leader(memoryview(bytearray(made)), NOW_MS)

    write(1)
    pair.rounds()
    pair.lose(0)
    write(2)
    pair.restart_copy()
    assert pair.round() is Step.STOP
    assert pair.copy.reason == "the source has other batches at offset 0"
    pair.close()


def test_a_source_that_ends_before_the_copy_stops_it(pair: Pair) -> None:
    pair.write(b"a")
    pair.write(b"b")
    pair.rounds()
    pair.lose(1)
    assert pair.round() is Step.STOP
    assert pair.copy.reason.startswith("the source ends at 1, before the copy")


def test_a_damaged_batch_is_not_taken(pair: Pair) -> None:
    pair.write(b"aaaa")
    answer = pair.answer(0)
    damaged = bytearray(answer.records)
    damaged[-3] ^= 1
    with pytest.raises(KafkaError) as refused:
        list(pair.copy.take(memoryview(damaged), NOW_MS))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert pair.target.log.log_end_offset == 0


def test_errors_of_the_source_are_told(pair: Pair) -> None:
    lost = SourceAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, b"")
    assert pair.copy.receive(0, lost, NOW_MS) is Step.FIND_LEADER
    assert pair.copy.status(NOW_MS).reason == "the source answers NOT_LEADER_OR_FOLLOWER"
    pair.rounds()
    assert pair.copy.status(NOW_MS).reason == ""


def test_a_promoted_copy_takes_the_rest_and_aborts_open_transactions(pair: Pair) -> None:
    pair.write(b"a", producer_id=9, sequence=0, transactional=True)
    pair.rounds()
    pair.write(b"b", producer_id=9, sequence=1, transactional=True)
    pair.set_state("promoting")
    assert pair.copy.end_transactions(NOW_MS) == 0  # it does not have everything yet
    pair.rounds()
    assert pair.copy.end_transactions(NOW_MS) == 1
    assert pair.target.last_stable_offset == pair.target.log.log_end_offset == 3
    assert pair.copy.is_ready
    assert pair.copy.status(NOW_MS).state == "ready"
    assert pair.copy.status(NOW_MS).producer_id_end == 10
    pair.write(b"c", producer_id=9, sequence=2, transactional=True)
    assert not pair.copy.wants_records


def test_a_promotion_ends_at_the_end_that_the_source_tells_after_its_begin(pair: Pair) -> None:
    """An answer to a fetch may be late, or tell an older high watermark: that of a broker that has just begun to lead."""
    pair.write(b"a")
    asked, late = pair.copy.position, pair.answer(0)
    pair.write(b"b")
    pair.set_state("promoting")
    assert pair.copy.wants_records
    assert pair.copy.receive(asked, late, NOW_MS) is Step.TAKE
    for _ in pair.copy.take(memoryview(bytearray(late.records)), NOW_MS):
        pass
    assert pair.copy.source_end == pair.target.log.log_end_offset == 1
    assert (pair.copy.must_ask_end, pair.copy.is_at_source_end) == (True, False)
    pair.copy.receive_end(2)
    assert pair.copy.receive(1, pair.answer(1)._replace(records=b"", high_watermark=1), NOW_MS) is Step.FETCH
    assert (pair.copy.must_ask_end, pair.copy.is_at_source_end) == (False, False)
    assert pair.copy.end_transactions(NOW_MS) == 0
    assert not pair.copy.is_ready
    pair.rounds()
    assert (pair.copy.is_at_source_end, pair.target.log.log_end_offset) == (True, 2)


def test_a_copy_that_is_promoted_now_does_not_wait_for_its_source(pair: Pair) -> None:
    pair.write(b"a")
    pair.write(b"b", producer_id=9, sequence=0, transactional=True)
    pair.round(max_bytes=1)
    pair.set_state("promoting-now")
    assert not pair.copy.wants_records
    pair.copy.end_transactions(NOW_MS)
    assert pair.copy.is_ready
    assert pair.target.log.log_end_offset == 1
    assert pair.copy.status(NOW_MS).lag == 1


def test_pieces_are_whole_batches() -> None:
    batch = build_batch([(None, bytes(200_000))], timestamp_ms=NOW_MS)
    data = memoryview(bytearray(batch) * 5 + bytes(batch[:100]))
    assert [len(piece) // len(batch) for piece in pieces(data)] == [3, 2]


WRITES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 3)),
        st.tuples(st.just("transaction"), st.booleans()),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("fetch"), st.sampled_from([1, 200, 2**20])),
        st.tuples(st.just("elect"), st.none()),
        st.tuples(st.just("elect in the source"), st.none()),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=WRITES)
def test_whatever_happens_the_copy_becomes_equal(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    sequences = SimpleNamespace(next=0)
    for step, number in steps:
        if step == "write":
            pair.write(*[b"v"] * number)
        elif step == "transaction":
            pair.write(b"t", producer_id=4, sequence=sequences.next, transactional=True)
            sequences.next += 1
            pair.end(4, commit=bool(number))
        elif step == "delete":
            log = pair.source.log
            log.truncator.delete_records_before(min(log.log_start_offset + number, pair.source.high_watermark))
        elif step == "fetch":
            pair.round(number)
        elif step == "elect":
            pair.restart_copy()
        else:
            pair.restart_source()
    pair.rounds()
    pair.round()
    assert pair.copy.reason == ""
    assert pair.target.log.log_start_offset == pair.source.log.log_start_offset
    assert pair.target.last_stable_offset == pair.source.last_stable_offset
    assert pair.differences() == []
    pair.close()


def test_an_answer_without_room_for_a_partition_shows_nothing_about_it(pair: Pair) -> None:
    """Records of other partitions may fill an answer. That the last batch is missing then does not mean that the source has removed it."""
    pair.write(b"a")
    pair.write(b"b")
    pair.rounds()
    pair.restart_copy()
    empty = pair.answer(1)._replace(records=b"", is_limited=True)
    assert pair.copy.receive(1, empty, NOW_MS) is Step.FETCH
    assert pair.copy.position == 1  # the last batch is still to be compared
    assert pair.round() is Step.FETCH
    assert pair.copy.position == 2
