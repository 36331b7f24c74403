"""Idempotent and transactional producers against a log: sequences, epochs, retries, markers, snapshots."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptLog, ErrorCode, KafkaError
from barnabas.protocol.records.batch import AppendOrigin, Record, build_batch, read_header
from barnabas.protocol.records.batch_header import CRC_POSITION, CRC_START, HEADER_SIZE, MAX_SEQUENCE
from barnabas.storage import producer_state
from barnabas.storage.log import Log
from barnabas.storage.producer_state import KEPT_BATCHES, ProducerEntry, ProducerStates
from barnabas.storage.segment import ABORTED_SUFFIX, LOG_SUFFIX, file_name
from barnabas.storage.snapshot import ENTRY, HEAD, OLDER, decode_snapshot, encode_snapshot
from tests.storage.support import NOW, CountingFiles, UnsyncedFiles, append, open_log

PRODUCER = 7


def produce(
    log: Log,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    producer: int = PRODUCER,
    transactional: int = 0,
    leader_epoch: int = 0,
) -> int:
    values = [b"v"] * count
    fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence, "transactional": transactional}
    result = append(log, *values, epoch=leader_epoch, **fields)
    return -result.first_offset - 1 if result.duplicate else result.first_offset


def end_transaction(
    log: Log, *, abort: bool, epoch: int = 0, coordinator_epoch: int = 0, producer: int = PRODUCER, leader_epoch: int = 0
) -> None:
    marker = Record(0, NOW, struct.pack(">hh", 0, 0 if abort else 1), struct.pack(">hi", 0, coordinator_epoch))
    data = build_batch([marker], producer_id=producer, producer_epoch=epoch, transactional=True, control=True)
    log.appender.append_as_leader(data, leader_epoch=leader_epoch, now_ms=NOW, origin=AppendOrigin.COORDINATOR)


def refused(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, transactional: int = 0) -> ErrorCode:
    before = log.log_end_offset
    with pytest.raises(KafkaError) as error:
        produce(log, sequence, count, epoch=epoch, transactional=transactional)
    assert log.log_end_offset == before
    return error.value.code


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path)


def test_a_retry_gets_the_first_answer(log: Log) -> None:
    offsets = [produce(log, sequence, 2) for sequence in range(0, 20, 2)]
    kept = range(20 - 2 * KEPT_BATCHES, 20, 2)
    assert [-1 - produce(log, sequence, 2) for sequence in kept] == offsets[-KEPT_BATCHES:]
    assert refused(log, 0, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 18, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.close()


@pytest.mark.parametrize("restarted", [True, False])
def test_a_batch_of_an_ended_transaction_is_not_taken_for_a_retry(tmp_path: Path, *, restarted: bool) -> None:
    """A producer that repeats its sequence numbers has new records under them. They would be lost."""
    log = open_log(tmp_path)
    produce(log, 0, 2, transactional=1)
    end_transaction(log, abort=True)
    if restarted:
        log.close()
        log = open_log(tmp_path)
    assert refused(log, 0, 2, transactional=1) == ErrorCode.UNKNOWN_PRODUCER_ID
    assert produce(log, 2, 2, transactional=1) == 3
    assert produce(log, 2, 2, transactional=1) == -1 - 3
    assert refused(log, 0, 2, transactional=1) == ErrorCode.UNKNOWN_PRODUCER_ID
    log.close()


def test_a_batch_outside_of_the_open_transaction_is_refused(log: Log) -> None:
    produce(log, 0, 2, transactional=1)
    assert refused(log, 2, 1) == ErrorCode.INVALID_TXN_STATE
    assert refused(log, 0, 1, epoch=1) == ErrorCode.INVALID_TXN_STATE
    end_transaction(log, abort=False)
    assert produce(log, 2, 1) == 3
    log.close()


def test_a_gap_is_refused(log: Log) -> None:
    produce(log, 0, 3)
    assert refused(log, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 3) == 3
    log.close()


def test_an_unknown_producer_may_begin_anywhere(log: Log) -> None:
    assert produce(log, 100) == 0
    assert produce(log, 101) == 1
    log.close()


def test_a_new_epoch_begins_at_zero_and_fences_the_old(log: Log) -> None:
    produce(log, 0, epoch=1)
    assert refused(log, 1, epoch=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 0, epoch=2) == 1
    assert refused(log, 1, epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    log.close()


def test_sequences_wrap(log: Log) -> None:
    produce(log, MAX_SEQUENCE - 1, 2)
    assert produce(log, 0) == 2
    assert produce(log, 1) == 3
    log.close()


def test_a_batch_across_the_wrap_is_known_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, MAX_SEQUENCE - 1, 4)
    assert produce(log, MAX_SEQUENCE - 1, 4) == -1
    log.close()
    log = open_log(tmp_path)
    assert produce(log, MAX_SEQUENCE - 1, 4) == -1
    assert produce(log, 2) == 4
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_the_state_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, TopicConfig(segment_bytes=400))
    for sequence in range(20):
        produce(log, sequence)
    known = log.reader.producers()
    log.close() if clean else log.abandon()
    log = open_log(tmp_path, clean=clean)
    assert log.reader.producers() == known
    assert produce(log, 19) == -20
    assert refused(log, 21) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 20) == 20
    log.close()


def test_truncation_takes_the_state_back(log: Log) -> None:
    for sequence in range(10):
        produce(log, sequence)
    log.truncator.truncate_to(4)
    assert [producer.last_sequence for producer in log.reader.producers()] == [3]
    assert produce(log, 4) == 4
    log.truncator.truncate_fully_and_start_at(50)
    assert log.reader.producers() == []
    assert produce(log, 9) == 50
    log.close()


@pytest.mark.parametrize("loses", ["nothing", "snapshot", "segment"])
def test_what_was_found_out_before_a_truncation_is_what_the_truncation_finds_out(tmp_path: Path, loses: str) -> None:
    log = open_log(tmp_path, TopicConfig(segment_bytes=400))
    for sequence in range(10):
        produce(log, sequence, transactional=1)
    end_transaction(log, abort=True)
    produce(log, 0, producer=8)
    produce(log, 10)
    rewind = log.truncator.plan_truncation(11, at_once_bytes=0)
    assert rewind is not None
    assert log.truncator.still_holds(rewind)
    if loses == "snapshot":
        for path in log.directory.glob("*.snapshot"):
            path.write_bytes(b"")
    elif loses == "segment":
        path = log.directory / file_name(log.active_base_offset, LOG_SUFFIX)
        path.rename(path.with_suffix(".away"))
    rewind.run()
    if loses == "segment":
        path.with_suffix(".away").rename(path)
    assert (rewind.producers is None) == (loses != "nothing")
    log.truncator.truncate_to(11, rewind)
    assert [(p.producer_id, p.last_sequence, p.current_txn_start_offset) for p in log.reader.producers()] == [(PRODUCER, 9, -1)]
    assert len(log.reader.aborted_transactions(0, log.log_end_offset)) == 1
    log.close()


def test_what_was_found_out_holds_for_a_log_that_has_not_changed(log: Log) -> None:
    for sequence in range(10):
        produce(log, sequence)
    assert log.truncator.plan_truncation(4) is None, "so little is found out at once"
    assert log.truncator.plan_truncation(10, at_once_bytes=0) is None
    rewind = log.truncator.plan_truncation(4, at_once_bytes=0)
    assert rewind is not None
    assert log.truncator.still_holds(rewind)
    produce(log, 10)
    assert not log.truncator.still_holds(rewind)
    log.close()


def test_silent_producers_expire_but_for_open_transactions(log: Log) -> None:
    produce(log, 0)
    produce(log, 0, producer=8, transactional=1)
    assert log.reader.expire_producers(NOW + log.producer_id_expiration_ms - 1) == 0
    assert log.reader.expire_producers(NOW + log.producer_id_expiration_ms) == 1
    assert [producer.producer_id for producer in log.reader.producers()] == [8]
    log.close()


@pytest.mark.parametrize("abort", [True, False])
def test_transactions_open_and_end(tmp_path: Path, abort: bool) -> None:
    log = open_log(tmp_path)
    append(log, b"before")
    produce(log, 0, 3, transactional=1)
    produce(log, 0, 1, producer=8, transactional=1)
    assert log.reader.first_unstable_offset(log.log_end_offset) == 1
    end_transaction(log, abort=abort)
    assert log.reader.first_unstable_offset(0) == 1  # ended, but not replicated to all in-sync replicas
    assert log.reader.first_unstable_offset(log.log_end_offset) == 4
    found = log.reader.aborted_transactions(0, log.log_end_offset)
    assert [entry[:3] for entry in found] == ([(PRODUCER, 1, 5)] if abort else [])
    assert [entry.last_stable_offset for entry in found] == ([4] if abort else [])
    assert log.reader.aborted_transactions(6, 10) == []
    log.abandon()
    log = open_log(tmp_path, clean=False)
    assert log.reader.first_unstable_offset(log.log_end_offset) == 4
    assert len(log.reader.aborted_transactions(0, log.log_end_offset)) == abort
    log.truncator.truncate_to(5)
    assert log.reader.aborted_transactions(0, log.log_end_offset) == []
    assert log.reader.first_unstable_offset(log.log_end_offset) == 1
    log.close()


def test_a_marker_that_a_loss_of_power_took_has_no_entry_left(tmp_path: Path) -> None:
    """Else a transaction that commits afterwards would be taken for an aborted one."""
    log = open_log(tmp_path)
    produce(log, 0, 3, transactional=1)
    size = log.size_bytes
    end_transaction(log, abort=True)
    log.abandon()
    newest = tmp_path / "topic-0" / f"{0:020d}.log"
    newest.write_bytes(newest.read_bytes()[:size])
    log = open_log(tmp_path, clean=False)
    assert log.reader.aborted_transactions(0, 100) == []
    end_transaction(log, abort=False)
    assert log.reader.aborted_transactions(0, log.log_end_offset) == []
    log.close()


class AskedFiles(UnsyncedFiles):
    """Counts who asks whether there are aborted transactions."""

    def __init__(self) -> None:
        self.asked = 0

    def exists(self, path: Path) -> bool:
        self.asked += path.suffix == ABORTED_SUFFIX
        return super().exists(path)


def test_where_no_transaction_was_aborted_the_disk_is_asked_once(tmp_path: Path) -> None:
    files = AskedFiles()
    log = open_log(tmp_path, files=files)
    produce(log, 0, transactional=1)
    files.asked = 0
    assert [log.reader.aborted_transactions(0, 1) for _ in range(3)] == [[], [], []]
    assert files.asked == 1
    end_transaction(log, abort=True)
    assert [each.first_offset for each in log.reader.aborted_transactions(0, 2)] == [0]
    log.close()
    log = open_log(tmp_path)
    assert [each.first_offset for each in log.reader.aborted_transactions(0, 2)] == [0]
    log.close()


def test_many_producers_are_forgotten_in_parts_between_which_they_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "LOOKED_AT_AT_ONCE", 3)
    states = ProducerStates(ProducerEntry(number, last_timestamp=NOW) for number in range(10))
    parts = states.expire_in_parts(NOW + 10, 10)
    assert next(parts) == 3
    assert len([*states]) == 7
    header = read_header(build_batch([(b"k", b"v")], timestamp_ms=NOW + 9, producer_id=5, producer_epoch=0, base_sequence=0))
    states.update(header, 0)
    assert [*parts] == [3, 3, 1]
    assert [entry.producer_id for entry in states] == [5]


def test_a_producer_takes_little_memory() -> None:
    header = read_header(build_batch([(b"k", b"v")], timestamp_ms=NOW, producer_id=5, producer_epoch=0, base_sequence=1000))
    states = ProducerStates()
    tracemalloc.start()
    try:
        for number in range(1000):
            at = number + 1_000_000
            states.update(header._replace(producer_id=at, base_sequence=at, max_timestamp=NOW + number), at)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / 1000 < 600


def test_of_many_aborted_transactions_those_alone_are_read_that_are_asked_for(tmp_path: Path) -> None:
    """Neither a reader nor the next abort goes over all the others of the segment."""
    files = CountingFiles()
    log = open_log(tmp_path, files=files)
    for number in range(600):
        produce(log, number, transactional=1)
        end_transaction(log, abort=number % 3 != 2)
    every = log.reader.aborted_transactions(0, log.log_end_offset)
    assert [each.first_offset for each in every] == [2 * number for number in range(600) if number % 3 != 2]
    for first in (0, 5, 600, 601, 1193, 1198, 1199):
        for end in (first + 1, first + 7, 1200):
            expected = [each for each in every if each.last_offset >= first and each.first_offset < end]
            assert log.reader.aborted_transactions(first, end) == expected
    files.bytes_read = 0
    assert [each.first_offset for each in log.reader.aborted_transactions(1002, 1004)] == [1002]
    produce(log, 600, transactional=1)
    end_transaction(log, abort=True)
    assert files.bytes_read < 6000 < 400 * 34
    assert len(log.reader.aborted_transactions(0, log.log_end_offset)) == 401
    log.close()


@pytest.mark.parametrize("left", [b"", b"\0" * 34 * 3, b"torn", None])
def test_aborted_transactions_past_the_recovery_point_are_found_again(tmp_path: Path, left: bytes | None) -> None:
    """Unsynced files are not believed, whichever snapshot may have reached the disk."""
    small = TopicConfig(segment_bytes=400)
    log = open_log(tmp_path, small)
    for number in range(6):
        produce(log, number, transactional=1)
        end_transaction(log, abort=number % 2 == 0)
    before = log.reader.aborted_transactions(0, log.log_end_offset)
    assert len(before) == 3
    assert len(list((tmp_path / "topic-0").glob("*.snapshot"))) > 1
    log.abandon()
    for path in (tmp_path / "topic-0").glob("*.txnindex"):
        if left is None:
            path.unlink()
        else:
            path.write_bytes(left)
    log = open_log(tmp_path, small, clean=False)
    assert log.reader.aborted_transactions(0, log.log_end_offset) == before
    log.close()


def test_an_index_that_a_loss_of_power_filled_with_zeros_hides_nothing(tmp_path: Path) -> None:
    """They look like an aborted transaction of producer 0 that lies before the recovery point."""
    small = TopicConfig(segment_bytes=400)
    log = open_log(tmp_path, small)
    for number in range(6):
        produce(log, number, transactional=1)
        end_transaction(log, abort=True)
    before = log.reader.aborted_transactions(0, log.log_end_offset)
    newest = sorted((tmp_path / "topic-0").glob("*.txnindex"))[-1]
    recovery_point = int(newest.stem)
    assert recovery_point
    log.abandon()
    newest.write_bytes(b"\0" * newest.stat().st_size)
    log = open_log(tmp_path, small, clean=False, recovery_point=recovery_point)
    assert log.reader.aborted_transactions(0, log.log_end_offset) == before
    log.close()


def test_markers_of_a_replaced_coordinator_are_refused(log: Log) -> None:
    produce(log, 0, transactional=1)
    end_transaction(log, abort=False, coordinator_epoch=3)
    with pytest.raises(KafkaError) as error:
        end_transaction(log, abort=False, coordinator_epoch=2)
    assert error.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end_transaction(log, abort=True, epoch=1, coordinator_epoch=3)
    assert refused(log, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    log.close()


def test_a_follower_takes_the_leaders_batches_without_judging(log: Log) -> None:
    produce(log, 0)
    data = build_batch([(b"k", b"v")], base_offset=1, producer_id=PRODUCER, producer_epoch=0, base_sequence=9, timestamp_ms=NOW)
    log.appender.append_as_follower(memoryview(data), now_ms=NOW)
    assert [producer.last_sequence for producer in log.reader.producers()] == [9]
    log.close()


def test_behind_a_batch_of_the_leader_that_is_not_understood_no_producer_is_missed(log: Log) -> None:
    strange = bytearray(build_batch([(b"no", b"marker")], producer_id=8, producer_epoch=0, transactional=True, control=True))
    strange[HEADER_SIZE] = 0xFF  # an invalid record size
    struct.pack_into(">I", strange, CRC_POSITION, crc32c(strange[CRC_START:]))
    sent = [
        build_batch([(None, b"v")], base_offset=offset, producer_id=PRODUCER, producer_epoch=0, base_sequence=offset)
        for offset in (1, 2)
    ]
    with pytest.raises(KafkaError):
        log.appender.append_as_follower(memoryview(strange + b"".join(sent)), now_ms=NOW)
    assert log.log_end_offset == 1
    log.appender.append_as_follower(memoryview(b"".join(sent)), now_ms=NOW)
    assert [-1 - produce(log, sequence) for sequence in (1, 2)] == [1, 2], "a retry gets the first answer"
    log.close()


@given(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 3), st.integers(0, 2)), max_size=60))
def test_against_a_naive_model(steps: list[tuple[int, int, int, int]]) -> None:
    """Each producer's whole history is kept; an append is right if it continues, repeats one of the last five, or is new."""
    states, offset = ProducerStates(), 0
    history: dict[int, tuple[int, list[tuple[int, int, int]]]] = {}
    for producer, sequence, count, epoch in steps:
        records = [(b"k", b"v")] * count
        header = read_header(build_batch(records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence))
        try:
            duplicate = states.check(header, from_client=True)
            answer = "append" if duplicate is None else str(duplicate.first_offset)
        except KafkaError as error:
            answer = error.code.name
        assert answer == naive(history.get(producer), sequence, count, epoch)
        if answer == "append":
            states.update(header, offset)
            kept = history[producer][1] if producer in history and history[producer][0] == epoch else []
            history[producer] = epoch, [*kept, (sequence, count, offset)]
            offset += count
    assert decode_snapshot(encode_snapshot(states), Path("x")) == list(states)


def naive(known: tuple[int, list[tuple[int, int, int]]] | None, sequence: int, count: int, epoch: int) -> str:
    if known is None:
        return "append"
    last_epoch, batches = known
    if epoch < last_epoch:
        return "INVALID_PRODUCER_EPOCH"
    if epoch > last_epoch:
        return "append" if sequence == 0 else "OUT_OF_ORDER_SEQUENCE_NUMBER"
    if sequence == batches[-1][0] + batches[-1][1]:
        return "append"
    for first, size, offset in batches[-KEPT_BATCHES:]:
        if (first, size) == (sequence, count):
            return str(offset)
    return "OUT_OF_ORDER_SEQUENCE_NUMBER"


@pytest.mark.parametrize("clean", [True, False])
def test_a_retry_of_any_of_the_last_five_batches_is_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    """A snapshot is written when the log rolls and when it is closed."""
    small = TopicConfig(segment_bytes=300)
    log = open_log(tmp_path, small)
    for number in range(12):
        append(log, b"value", producer_id=7, producer_epoch=0, base_sequence=number)
        append(log, b"value", producer_id=8, producer_epoch=3, base_sequence=number)
    assert len(log.segments) > 5
    if clean:
        log.close()
    else:
        log.abandon()
    log = open_log(tmp_path, small, clean=clean)
    for number in range(7, 12):
        first = append(log, b"value", producer_id=7, producer_epoch=0, base_sequence=number)
        second = append(log, b"value", producer_id=8, producer_epoch=3, base_sequence=number)
        assert (first.duplicate, first.first_offset) == (second.duplicate, second.first_offset - 1) == (True, 2 * number)
    assert refused(log, 6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.close()


def test_older_batches_stand_where_kafka_does_not_look() -> None:
    """The bytes in front of them are a whole snapshot of Kafka's, but for the CRC."""
    states = ProducerStates()
    for number in range(3):
        states.update(read_header(build_batch([(b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=number)), number)
    data = encode_snapshot(states)
    assert data[HEAD.size + ENTRY.size :].startswith(b"older" + (2).to_bytes(4, "big"))
    assert len(data) == HEAD.size + ENTRY.size + len(b"older") + 4 + 2 * OLDER.size
    (entry,) = decode_snapshot(data, Path("x"))
    assert [batch.last_offset for batch in entry.batches] == [0, 1, 2]
    body = data[6 : HEAD.size + ENTRY.size]
    (alone,) = decode_snapshot(data[:2] + crc32c(body).to_bytes(4, "big") + body, Path("x"))
    assert [batch.last_offset for batch in alone.batches] == [2]
    for end in (len(data) - 1, HEAD.size + ENTRY.size + 3):
        body = data[6:end]
        with pytest.raises(CorruptLog, match="are no batches of theirs"):
            decode_snapshot(data[:2] + crc32c(body).to_bytes(4, "big") + body, Path("x"))


@pytest.mark.parametrize("damage", [0, 3, 7, 20, -1])
def test_a_damaged_snapshot_is_corrupt(damage: int) -> None:
    data = bytearray(encode_snapshot(ProducerStates([ProducerEntry(1, 0), ProducerEntry(2, 5, transaction_first_offset=9)])))
    assert [entry.producer_id for entry in decode_snapshot(bytes(data), Path("x"))] == [1, 2]
    data[damage] ^= 0x10
    with pytest.raises(CorruptLog):
        decode_snapshot(bytes(data), Path("x"))
    with pytest.raises(CorruptLog):
        decode_snapshot(bytes(data[:5]), Path("x"))
