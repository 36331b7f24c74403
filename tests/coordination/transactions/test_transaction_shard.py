"""The allowed requests of a transactional id, and the ends of its transactions: each rule once, by name."""

from __future__ import annotations

import pytest

from barnabas.coordination.transactions.data_types import EndCounts, Initialised
from barnabas.coordination.transactions.transaction import LAST_EPOCH, NEVER_TIMES_OUT_MS, Owner, State, Transaction
from barnabas.coordination.transactions.transaction_log_records import read_record, transaction_record
from barnabas.errors import ErrorCode, KafkaError, MalformedMessage
from tests.coordination.transactions.driver import TIMEOUT_MS, A, B, C, Config, Driver


def with_epoch(driver: Driver, epoch: int) -> Owner:
    """The id `t`, as if it had been initialised that often."""
    found = driver.shard.describe("t")
    stored = Transaction(
        "t", producer_id=found.producer_id, producer_epoch=epoch, timeout_ms=TIMEOUT_MS, last_update_ms=driver.clock.wall
    )
    driver.log.append(transaction_record(stored))
    driver.load()
    return Owner(found.producer_id, epoch)


def test_a_transaction_from_its_beginning_to_its_end() -> None:
    driver = Driver()
    owner = driver.owner()
    assert owner.epoch == 0
    assert driver.state() == "Empty"
    assert driver.add(owner, A) is ErrorCode.NONE
    assert driver.add(owner, B, C) is ErrorCode.NONE
    assert driver.state() == "Ongoing"
    following = driver.end(owner)
    assert following == Owner(owner.producer_id, 1)
    assert driver.state() == "PrepareCommit"
    assert driver.add(Owner(owner.producer_id, 1), A) is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.write_markers([A, C])
    assert driver.state() == "PrepareCommit"
    driver.write_markers()
    assert driver.state() == "CompleteCommit"
    assert driver.markers_of(A) == driver.markers_of(B) == driver.markers_of(C) == [(following, True)]
    assert driver.end(owner) == following  # a retry after a lost answer
    assert driver.end(owner, commit=False) is ErrorCode.INVALID_TXN_STATE
    assert driver.add(owner, A) is ErrorCode.PRODUCER_FENCED


def test_the_next_transaction_is_aborted_before_the_last_one_is_complete() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    following = driver.end(owner)
    assert isinstance(following, Owner)
    assert driver.state() == "PrepareCommit"
    assert driver.end(following, commit=False) is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.write_markers()
    assert driver.end(following, commit=False) == Owner(owner.producer_id, following.epoch + 1)


def test_a_client_of_version_1_keeps_its_epoch() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A, version=0)
    assert driver.end(owner, version=0) == owner
    assert driver.end(owner, version=0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.end(owner, commit=False, version=0) is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.write_markers()
    assert driver.markers_of(A) == [(owner, True)]
    assert driver.end(owner, version=0) == owner
    assert driver.add(owner, A, version=0) is ErrorCode.NONE
    assert driver.end(owner, commit=False, version=0) == owner
    driver.write_markers()
    assert driver.state() == "CompleteAbort"


def test_the_end_of_a_fenced_producer_is_no_retry_of_its_successors_end() -> None:
    """A client of version 1 keeps its epoch, so the epoch before it is that of the producer which it fenced.

    Seeds 455 and 1059 of the simulator's profile `transactions`: both were told that they own the id.
    """
    coordinator = Driver()
    fenced, owner = coordinator.owner(), coordinator.owner()
    assert coordinator.add(owner, A, version=1) == ErrorCode.NONE
    assert coordinator.end(owner, commit=False, version=1) == owner
    for _ in range(2):  # before and after the markers are complete
        assert coordinator.end(fenced, commit=False, version=2) == ErrorCode.PRODUCER_FENCED
        coordinator.write_markers()


def test_nothing_to_end() -> None:
    driver = Driver()
    owner = driver.owner()
    assert driver.end(owner, version=0) is ErrorCode.INVALID_TXN_STATE
    assert driver.end(owner, commit=False, version=0) is ErrorCode.INVALID_TXN_STATE
    assert driver.end(owner) is ErrorCode.INVALID_TXN_STATE
    following = driver.end(owner, commit=False)  # a client of version 2 cannot know that the transaction is empty
    assert following == Owner(owner.producer_id, 1)
    assert driver.state() == "CompleteAbort"
    assert driver.marked == []
    assert driver.end(owner, commit=False) == following


def test_another_who_takes_the_id_fences_and_aborts() -> None:
    driver = Driver()
    zombie = driver.owner()
    driver.add(zombie, A)
    assert driver.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.state() == "PrepareAbort"
    assert driver.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.end(zombie, commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.write_markers()
    assert driver.markers_of(A) == [(Owner(zombie.producer_id, 1), False)]
    owner = driver.owner()
    assert owner == Owner(zombie.producer_id, 2)
    assert driver.add(zombie, A) is ErrorCode.PRODUCER_FENCED
    assert driver.end(zombie) is ErrorCode.PRODUCER_FENCED
    assert driver.add(owner, A) is ErrorCode.NONE


def test_a_producer_that_had_the_id_and_asks_again() -> None:
    driver = Driver()
    first = driver.owner()
    second = driver.owner(expected=first)
    assert second == Owner(first.producer_id, 1)
    assert driver.owner(expected=first) == second  # a retry after a lost answer
    third = driver.owner()
    assert driver.init(expected=second) is ErrorCode.PRODUCER_FENCED
    assert driver.init(expected=Owner(77, third.epoch)) is ErrorCode.PRODUCER_FENCED
    assert driver.owner(expected=third) == Owner(first.producer_id, 3)


def test_who_lost_the_answer_to_an_end_may_ask_for_the_id() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    following = driver.end(owner)
    driver.write_markers()
    assert driver.owner(expected=owner) == following


def test_epochs_do_not_overflow() -> None:
    driver = Driver()
    old = driver.owner()
    last = with_epoch(driver, LAST_EPOCH - 1)
    fresh = driver.owner(expected=last)
    assert fresh.epoch == 0
    assert fresh.producer_id != old.producer_id
    assert driver.owner(expected=last) == fresh  # a retry after a lost answer
    assert driver.init(expected=old) is ErrorCode.PRODUCER_FENCED


def test_another_owner_gets_no_producer_id_that_a_promoted_copy_has() -> None:
    driver = Driver()
    old = driver.owner()
    driver.least_id = old.producer_id + 1
    assert driver.owner(expected=old) == Owner(old.producer_id, old.epoch + 1)  # the producer goes on
    following = driver.owner()
    assert (following.producer_id >= driver.least_id, following.epoch) == (True, 0)
    assert driver.owner() == Owner(following.producer_id, 1)
    assert driver.add(old, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_end_at_the_last_epoch_gives_a_new_producer_id() -> None:
    driver = Driver()
    driver.owner()
    last = with_epoch(driver, LAST_EPOCH - 1)
    driver.add(last, A)
    following = driver.end(last)
    assert isinstance(following, Owner)
    assert following.epoch == 0
    assert following.producer_id != last.producer_id
    assert driver.add(following, A) is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.load()
    driver.write_markers()
    assert driver.markers_of(A) == [(Owner(last.producer_id, LAST_EPOCH), True)]
    assert driver.end(last) == following
    assert driver.add(following, A) is ErrorCode.NONE
    assert driver.add(last, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_unknown_ids_and_wrong_requests() -> None:
    driver = Driver()
    assert driver.add(Owner(1, 0), A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.end(Owner(1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.add(Owner(1, 0), A, name="") is ErrorCode.INVALID_REQUEST
    assert driver.init("") is ErrorCode.INVALID_REQUEST
    for timeout_ms in (0, -1, 900_001):
        assert driver.init(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
        driver.shard.describe("t")
    assert driver.log == []


def test_what_produce_requests_are_verified_by() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    assert driver.shard.verify("t", owner, [A, B]) == {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}
    with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
        driver.shard.verify("t", Owner(owner.producer_id, 7), [A])
    driver.end(owner)
    with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
        driver.shard.verify("t", Owner(owner.producer_id, 1), [A])
    driver.write_markers()
    assert driver.shard.verify("t", Owner(owner.producer_id, 1), [A]) == {A: ErrorCode.TRANSACTION_ABORTABLE}


def test_a_transaction_past_its_time_is_aborted() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    driver.pass_time(TIMEOUT_MS - 1)
    driver.add(owner, B)
    assert driver.state() == "Ongoing"
    driver.pass_time(1)
    assert driver.state() == "PrepareAbort"
    driver.write_markers()
    assert driver.markers_of(B) == [(Owner(owner.producer_id, 1), False)]
    assert driver.end(owner) is ErrorCode.INVALID_TXN_STATE


def test_an_abort_that_the_log_refused_is_tried_again() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    driver.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.pass_time(TIMEOUT_MS)
    driver.pass_time(1_000)
    assert driver.state() == "Ongoing"
    assert driver.counts == EndCounts()
    driver.refuse = None
    driver.pass_time(1_000)
    assert driver.state() == "PrepareAbort"
    assert driver.counts == EndCounts(aborted=1, timed_out=1)


def test_an_end_that_the_log_refused_takes_no_time_away() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    driver.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.end(owner) is ErrorCode.NOT_ENOUGH_REPLICAS
    driver.refuse = None
    driver.pass_time(TIMEOUT_MS - 1)
    assert driver.state() == "Ongoing"
    assert driver.end(owner) == Owner(owner.producer_id, 1)
    assert driver.state() == "PrepareCommit"
    assert driver.counts == EndCounts(committed=1)


def test_a_refused_record_changes_nothing() -> None:
    driver = Driver()
    owner = driver.owner()
    before = driver.shard.describe("t")
    driver.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.add(owner, A) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.init() is ErrorCode.NOT_ENOUGH_REPLICAS
    driver.refuse = None
    assert driver.shard.describe("t") == before
    assert driver.add(owner, A) is ErrorCode.NONE


def test_markers_wait_for_the_decision_to_be_committed() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    driver.hold = True
    driver.end(owner)
    assert len(driver.shard.markers) == 0
    driver.commit()
    driver.write_markers()
    assert driver.state() == "CompleteCommit"


def test_a_new_coordinator_carries_out_what_was_decided() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A, B)
    driver.end(owner)
    (marker, _), *_ = driver.shard.markers
    driver.write_markers([A])
    driver.load()
    assert driver.state() == "PrepareCommit"
    driver.write_markers()
    assert driver.state() == "CompleteCommit"
    assert len(driver.markers_of(A)) == 2  # written again: a duplicate marker does no harm
    driver.told(marker, [A, B])  # an answer to the former coordinator comes late
    assert driver.state() == "CompleteCommit"


def test_an_open_transaction_times_out_after_a_failover_too() -> None:
    driver = Driver()
    driver.add(driver.owner(), A)
    driver.pass_time(TIMEOUT_MS // 2)
    driver.clock.steady = 5  # the clock of another machine
    driver.load()
    driver.pass_time(TIMEOUT_MS // 2 - 1)
    assert driver.state() == "Ongoing"
    driver.pass_time(1)
    assert driver.state() == "PrepareAbort"


def test_a_step_of_the_wall_clock_aborts_nothing() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A)
    driver.clock.wall += 10 * TIMEOUT_MS
    driver.add(owner, B)
    driver.pass_time(1)
    assert driver.state() == "Ongoing"
    driver.pass_time(TIMEOUT_MS)
    assert driver.state() == "PrepareAbort"


def test_a_deleted_topic_needs_no_marker() -> None:
    driver = Driver()
    owner = driver.owner()
    driver.add(owner, A, B, C)
    driver.end(owner)
    driver.write_markers([A])
    driver.carry_out(driver.shard.delete_topic("b", driver.clock.now()))
    assert driver.state() == "CompleteCommit"


def test_unused_ids_are_forgotten() -> None:
    driver = Driver()
    driver.owner("unused")
    driver.pass_time(Config.transactional_id_expiration_ms // 2)
    busy = driver.owner("busy", two_phase=True)
    driver.add(busy, A, name="busy")
    driver.pass_time(Config.transactional_id_expiration_ms // 2 + 1)
    assert list(driver.shard.transactions) == ["busy"]
    driver.pass_time(Config.transactional_id_expiration_ms * 2)
    driver.load()
    assert list(driver.shard.transactions) == ["busy"]


# -- two-phase commit ---------------------------------------------------------------------------------------------------------


def test_two_phase_commit_has_to_be_allowed() -> None:
    driver = Driver(Config(transaction_two_phase_commit_enable=False))
    assert driver.init(two_phase=True) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert driver.init(keep=True) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert driver.init() == Initialised(Owner(1000, 0))


@pytest.mark.parametrize("prepared", [True, False])
def test_a_transaction_is_kept_for_an_owner_who_decides_himself(*, prepared: bool) -> None:
    driver = Driver()
    writer = driver.owner(two_phase=prepared)
    driver.add(writer, A)
    found = driver.init(keep=True, timeout_ms=1_000)
    assert found == Initialised(Owner(writer.producer_id, writer.epoch + 1), writer)
    assert driver.shard.describe("t").timeout_ms == (NEVER_TIMES_OUT_MS if prepared else 1_000)
    driver.pass_time(2_000)
    assert driver.state() == ("Ongoing" if prepared else "PrepareAbort")


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("failover", [True, False])
def test_a_prepared_transaction_waits_for_who_comes_to_end_it(*, commit: bool, failover: bool) -> None:
    driver = Driver()
    writer = driver.owner(two_phase=True)
    assert driver.shard.describe("t").timeout_ms == NEVER_TIMES_OUT_MS
    driver.add(writer, A)
    driver.pass_time(10**9)
    found = driver.init(two_phase=True, keep=True)
    assert found == Initialised(Owner(writer.producer_id, writer.epoch + 1), writer)
    again = driver.init(two_phase=True, keep=True)
    assert again == Initialised(Owner(writer.producer_id, writer.epoch + 2), writer)
    assert isinstance(again, Initialised)
    if failover:
        driver.load()
    assert driver.end(writer, commit=commit) is ErrorCode.PRODUCER_FENCED
    assert driver.add(writer, B) is ErrorCode.PRODUCER_FENCED
    assert driver.add(again.owner, A) is ErrorCode.INVALID_TXN_STATE
    assert driver.add(again.owner, B) is ErrorCode.INVALID_TXN_STATE
    following = driver.end(again.owner, commit=commit)
    assert following == Owner(writer.producer_id, writer.epoch + 3)
    driver.write_markers()
    assert driver.markers_of(A) == [(following, commit)]
    assert driver.add(following, A) is ErrorCode.NONE


def test_a_prepared_transaction_is_taken_over_with_a_new_producer_id_when_epochs_run_out() -> None:
    driver = Driver()
    driver.owner()
    with_epoch(driver, LAST_EPOCH - 2)
    writer = driver.owner(two_phase=True)
    assert writer.epoch == LAST_EPOCH - 1
    driver.add(writer, A)
    found = driver.init(two_phase=True, keep=True)
    assert isinstance(found, Initialised)
    assert found.ongoing == writer
    assert found.owner.epoch == 0
    assert found.owner.producer_id != writer.producer_id
    following = driver.end(found.owner)
    assert following == Owner(found.owner.producer_id, 1)
    driver.write_markers()
    assert driver.markers_of(A) == [(Owner(writer.producer_id, LAST_EPOCH), True)]
    assert driver.add(following, A) is ErrorCode.NONE


def test_nothing_was_prepared() -> None:
    driver = Driver()
    found = driver.init(two_phase=True, keep=True)
    assert found == Initialised(Owner(1000, 0))


# -- records ------------------------------------------------------------------------------------------------------------------


def test_records_say_all_that_matters() -> None:
    before = Transaction(
        "t", 7, 3, previous_producer_id=6, next_producer_id=8, next_producer_epoch=0, timeout_ms=5, state=State.PREPARE_ABORT,
        partitions=frozenset({A, B, C}), start_ms=10, last_update_ms=11, client_version=2,
    )  # fmt: skip
    assert read_record(transaction_record(before)) == ("t", before)


def test_the_bytes_of_a_record() -> None:
    """By Kafka's schema: a transaction that is open in orders-0 and orders-2."""
    key = bytes.fromhex("00000003") + b"t-1"
    value = bytes.fromhex(
        "0001" "0000000000000005" "0002" "0000ea60" "01" "02" "07" "6f7264657273" "03" "00000000" "00000002" "00"
        "0000019a00000000" "0000019900000000" "01" "02" "02" "0002"
    )  # fmt: skip
    expected = Transaction(
        "t-1", 5, 2, timeout_ms=60_000, state=State.ONGOING, partitions=frozenset({("orders", 0), ("orders", 2)}),
        start_ms=0x19900000000, last_update_ms=0x19A00000000, client_version=2,
    )  # fmt: skip
    assert read_record((key, value)) == ("t-1", expected)
    assert transaction_record(expected) == (key, value)


@pytest.mark.parametrize(
    "record", [(b"", None), (b"\0\0\0\1t", b""), (b"\0\0\0\1t", b"\0\7"), (b"\0\0\0\1t", b"\0\0" + b"\x09" * 60)]
)
def test_bytes_that_are_no_record(record: tuple[bytes, bytes | None]) -> None:
    with pytest.raises(MalformedMessage):
        read_record(record)


def test_other_records_are_left_alone() -> None:
    assert read_record((b"\0\1whatever", b"x")) is None
