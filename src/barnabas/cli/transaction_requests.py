"""Requests about transactions: to coordinators, which decide their end, and to leaders of the partitions with open records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.offsets import Partition
from barnabas.error_codes import ErrorCode, code_name
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

LIST_TRANSACTIONS, INIT_PRODUCER_ID = 66, 22
PATTERN_VERSION, TWO_PHASE_VERSION = 2, 6
NEVER_TIMES_OUT_MS = 2**31 - 1  # the timeout of two-phase commit transactions
AGAIN = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
PAUSE_S = 0.05
OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
Row = dict[str, Any]


class Filter(Struct, frozen=True):
    """The filter for a list of transactions."""

    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    pattern: str | None = None
    longer_than_ms: int = -1


def listed(brokers: Brokers, wanted: Filter) -> list[Row]:
    """The transactional ids of all coordinators; raises Failure if one does not answer, BadInput for a wrong pattern."""
    request = ListTransactionsRequest(
        state_filters=list(wanted.states),
        producer_id_filters=list(wanted.producer_ids),
        duration_filter=wanted.longer_than_ms,
        transactional_id_pattern=wanted.pattern,
    )
    rows = []
    for broker_id, wire in brokers:
        if wanted.pattern is not None and wire.versions.get(LIST_TRANSACTIONS, (0, 0))[1] < PATTERN_VERSION:
            raise Failure(f"{wire.name} does not support patterns of transactional ids")
        answer = wire.request(request)
        if answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
            raise BadInput(f"{wanted.pattern!r} is not a regular expression")
        if answer.error_code:
            raise Failure(f"broker {broker_id}: {code_name(answer.error_code)}")
        rows += [
            {"id": e.transactional_id, "coordinator": broker_id, "producer_id": e.producer_id, "state": e.transaction_state}
            for e in answer.transaction_states
        ]
    return sorted(rows, key=lambda row: str(row["id"]))


def described(brokers: Brokers, name: str) -> Row:
    """One transactional id; raises Failure, also if no coordinator knows it."""
    coordinator, wire = brokers.coordinator_of(name)
    (found,) = wire.request(DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
    if found.error_code:
        raise Failure(f"transactional id {name}: {code_name(found.error_code)}")
    is_open = found.transaction_state in OPEN
    started_ms = found.transaction_start_time_ms if is_open and found.transaction_start_time_ms >= 0 else None
    return {
        "id": name,
        "coordinator": coordinator,
        "state": found.transaction_state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.transaction_timeout_ms,
        "two_phase": found.transaction_timeout_ms == NEVER_TIMES_OUT_MS,
        "started_ms": started_ms,
        "age_s": None if started_ms is None else round(time.time() - started_ms / 1000, 1),
        "partitions": sorted(f"{topic.topic}:{index}" for topic in found.topics for index in topic.partitions),
    }


def open_in_partitions(brokers: Brokers, leaders: dict[Partition, int]) -> list[Row]:
    """Every open transaction in each of the partitions, as the leaders report it."""
    by_leader: dict[int, dict[str, list[int]]] = {}
    for (topic, index), leader in leaders.items():
        by_leader.setdefault(leader, {}).setdefault(topic, []).append(index)
    rows = []
    for leader, topics in by_leader.items():
        asked = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        answer = brokers.broker(leader).request(DescribeProducersRequest(topics=asked))
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code:
                    raise Failure(f"{topic.name}:{each.partition_index}: {code_name(each.error_code)}")
                rows += [
                    _open_row(topic.name, each.partition_index, p)
                    for p in each.active_producers
                    if p.current_txn_start_offset >= 0
                ]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["start_offset"]))


def _open_row(topic: str, partition: int, producer: Any) -> Row:
    return {
        "topic": topic,
        "partition": partition,
        "start_offset": producer.current_txn_start_offset,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_write_ms": producer.last_timestamp,
        "silent_s": round(max(time.time() - producer.last_timestamp / 1000, 0.0), 1),
    }


def named(brokers: Brokers, rows: Sequence[Row]) -> list[Row]:
    """The rows of `open_in_partitions` with the transactional ids of their producers, None if no coordinator has one."""
    producer_ids = tuple(sorted({row["producer_id"] for row in rows}))
    names = (
        {each["producer_id"]: each["id"] for each in listed(brokers, Filter(producer_ids=producer_ids))} if producer_ids else {}
    )
    return [{**row, "id": names.get(row["producer_id"])} for row in rows]


def hanging(brokers: Brokers, rows: Iterable[Row]) -> list[Row]:
    """Those of the rows of `named` that no coordinator is going to end (KIP-664)."""
    found, known = [], dict[str, Row]()
    for row in rows:
        name = row["id"]
        if name is not None and name not in known:
            known[name] = described(brokers, name)
        owner = known.get(name) if name is not None else None
        where = f"{row['topic']}:{row['partition']}"
        is_coordinated = owner is not None and owner["state"] in OPEN and where in owner["partitions"]
        if not is_coordinated:
            found.append(row)
    return found


def write_abort_marker(brokers: Brokers, leader: int, row: Row) -> None:
    """End a transaction in one partition without its coordinator; raises Failure."""
    epoch = row["coordinator_epoch"]
    marker = WritableTxnMarker(
        producer_id=row["producer_id"],
        producer_epoch=row["producer_epoch"],
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=row["topic"], partition_indexes=[row["partition"]])],
        coordinator_epoch=max(epoch, 0),  # a producer has no coordinator epoch before its first marker
    )
    (answer,) = brokers.broker(leader).request(WriteTxnMarkersRequest(markers=[marker])).markers
    code = answer.topics[0].partitions[0].error_code
    if code:
        raise Failure(f"{row['topic']}:{row['partition']}: {code_name(code)}")


def abort(brokers: Brokers, name: str, timeout_s: float) -> Row:
    """Take the transactional id from its producer, which aborts its open transaction; returns the state after that.

    Raises:
        Failure: no transaction is open, or the broker refuses.
    """
    before = described(brokers, name)
    if before["state"] not in OPEN:
        raise Failure(f"transactional id {name} has no open transaction (it is {before['state']})")
    if before["state"] == "Ongoing":
        _init(brokers, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1), timeout_s)
    return _settled(brokers, name, timeout_s)


def commit(brokers: Brokers, name: str, expected: tuple[int, int] | None, timeout_s: float) -> Row:
    """Commit a prepared transaction (KIP-939); returns the state after that.

    Args:
        expected: the producer id and epoch that the writer of the transaction recorded; commits no other transaction.

    Raises:
        Failure: there is no prepared transaction, or another one, or the broker refuses.
    """
    before = described(brokers, name)
    if before["state"] != "Ongoing" or not before["two_phase"]:
        raise Failure(f"transactional id {name} has no open transaction of two-phase commit (it is {before['state']})")
    open_now = before["producer_id"], before["producer_epoch"]
    if expected is not None and expected != open_now:
        raise Failure(f"the open transaction of {name} is {open_now[0]}:{open_now[1]}, not {expected[0]}:{expected[1]}")
    taken = _init(
        brokers,
        InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1, enable2_pc=True, keep_prepared_txn=True),
        timeout_s,
    )
    if open_now != (taken.ongoing_txn_producer_id, taken.ongoing_txn_producer_epoch):
        raise Failure(f"the transaction of {name} was ended meanwhile")
    _, wire = brokers.coordinator_of(name)
    ending = EndTxnRequest(
        transactional_id=name, producer_id=taken.producer_id, producer_epoch=taken.producer_epoch, committed=True
    )
    _until_done(lambda: wire.request(ending), name, timeout_s)
    return _settled(brokers, name, timeout_s)


def _init(brokers: Brokers, request: InitProducerIdRequest, timeout_s: float) -> Any:
    name = request.transactional_id or ""
    _, wire = brokers.coordinator_of(name)
    if request.enable2_pc and wire.versions.get(INIT_PRODUCER_ID, (0, 0))[1] < TWO_PHASE_VERSION:
        raise Failure(f"{wire.name} does not support two-phase commit")
    return _until_done(lambda: wire.request(request), name, timeout_s)


def _until_done(ask: Any, name: str, timeout_s: float) -> Any:
    """Repeats the request while its error is retriable; returns the first other response."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if not answer.error_code:
            return answer
        if answer.error_code not in AGAIN or time.monotonic() > deadline:
            raise Failure(f"transactional id {name}: {code_name(answer.error_code)}")
        time.sleep(PAUSE_S)


def _settled(brokers: Brokers, name: str, timeout_s: float) -> Row:
    """The state of the id after every partition has the marker."""
    deadline = time.monotonic() + timeout_s
    while (found := described(brokers, name))["state"] in OPEN:
        if time.monotonic() > deadline:
            raise Failure(
                f"transactional id {name}: the end is decided, but some partitions have no marker after {timeout_s:g} s"
            )
        time.sleep(PAUSE_S)
    return found
