"""Transactions: every API of them in every version, from the first id to the markers, and what readers are told."""

from __future__ import annotations

from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.differential.batch import Batch, values
from tests.differential.script.common import Member, fetch, join, produce, sync
from tests.differential.talk import Talk
from tests.waiting import wait_until

TRANSACTIONAL = 0x10
TIMEOUT_MS = 60_000
STRANGER = 987_654_321  # a producer id that no broker assigned
BUSY = 51  # CONCURRENT_TRANSACTIONS
Owner = tuple[int, int]


def _init(name: str | None, owner: Owner = (-1, -1), timeout_ms: int = TIMEOUT_MS) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=owner[0], producer_epoch=owner[1]
    )


def _owner(talk: Talk, name: str, owner: Owner = (-1, -1)) -> Owner:
    """The new owner of the id, when the earlier transaction is over."""
    found: list[Owner] = []

    def is_given() -> bool:
        answer = talk.do(_init(name, owner), 4)
        found[:] = [(answer.producer_id, answer.producer_epoch)]
        assert answer.error_code in (0, BUSY), answer.error_code
        return bool(answer.error_code == 0)

    wait_until(is_given)
    return found[0]


def _add(name: str, owner: Owner, topic: str, *partitions: int, verify: bool = False) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
    asked = AddPartitionsToTxnTransaction(
        transactional_id=name, producer_id=owner[0], producer_epoch=owner[1], verify_only=verify, topics=topics
    )
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=owner[0],
        v3_and_below_producer_epoch=owner[1],
        v3_and_below_topics=topics,
        transactions=[asked],
    )


def _offsets(name: str, owner: Owner, group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(transactional_id=name, producer_id=owner[0], producer_epoch=owner[1], group_id=group)


def _end(name: str, owner: Owner, *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=name, producer_id=owner[0], producer_epoch=owner[1], committed=commit)


def _batch(owner: Owner, *items: str, sequence: int = 0, attributes: int = TRANSACTIONAL) -> Batch:
    return Batch(values(*items), producer_id=owner[0], producer_epoch=owner[1], base_sequence=sequence, attributes=attributes)


def _ended(talk: Talk, name: str) -> None:
    """Until every marker of the last transaction is written."""
    asked = DescribeTransactionsRequest(transactional_ids=[name])
    wait_until(lambda: talk.do(asked, 0).transaction_states[0].transaction_state.startswith("Complete"))


def _open(talk: Talk, name: str, topic: str, *items: str) -> Owner:
    """A transaction of an older client that has written `items` to partition 0."""
    owner = _owner(talk, name)
    talk.do(_add(name, owner, topic, 0), 3)
    if items:
        talk.do(produce(topic, _batch(owner, *items), transactional_id=name), 9)
    return owner


def transactional_ids(talk: Talk) -> None:
    for version in talk.versions_of("InitProducerId"):
        name = talk.name(f"v{version}")
        first = talk.ask("first", _init(name), version)
        owner = first.producer_id, first.producer_epoch
        talk.ask("again", _init(name), version)
        talk.ask("empty", _init(""), version)
        talk.ask("no transactional id", _init(None), version)
        for timeout_ms in (0, -1, 900_000, 900_001):
            talk.ask(f"timeout {timeout_ms}", _init(talk.name(f"v{version}-{timeout_ms}"), timeout_ms=timeout_ms), version)
        if version >= 3:
            now = owner[0], owner[1] + 1
            talk.ask("as its owner", _init(name, now), version)
            talk.ask("as its owner, once more", _init(name, now), version)
            talk.ask("as its owner before", _init(name, owner), version)
            talk.ask("with an epoch to come", _init(name, (now[0], 99)), version)
            talk.ask("as a stranger", _init(name, (STRANGER, 0)), version)
            talk.ask("as a stranger, of nothing", _init(talk.name(f"v{version}-new"), (STRANGER, 3)), version)
            talk.ask("an id without an epoch", _init(name, (now[0], -1)), version)
            talk.ask("an epoch without an id", _init(name, (-1, 3)), version)


def partitions_of_transactions(talk: Talk) -> None:
    topic = talk.create("topic", 3)
    for version in talk.versions_of("AddPartitionsToTxn"):
        name = talk.name(f"v{version}")
        former = _owner(talk, name)
        owner = _owner(talk, name)
        cases = {
            "one": _add(name, owner, topic, 0),
            "once more": _add(name, owner, topic, 0),
            "two more": _add(name, owner, topic, 1, 2),
            "absent partition": _add(name, owner, topic, 0, 9),
            "absent topic": _add(name, owner, talk.name("absent"), 0),
            "none": _add(name, owner, topic),
            "an epoch before": _add(name, former, topic, 0),
            "an epoch to come": _add(name, (owner[0], 99), topic, 0),
            "a stranger": _add(name, (STRANGER, 0), topic, 0),
            "an absent id": _add(talk.name("nobody"), owner, topic, 0),
            "an empty id": _add("", owner, topic, 0),
        }
        for case, request in cases.items():
            talk.ask(case, request, version)
        talk.ask(f"v{version}", DescribeTransactionsRequest(transactional_ids=[name]), 0)
        if version >= 4:
            _verified(talk, version, name, owner, topic)
        talk.do(_end(name, owner, commit=False), 3)
        _ended(talk, name)


def _verified(talk: Talk, version: int, name: str, owner: Owner, topic: str) -> None:
    other = talk.name(f"v{version}-other")
    idle = _owner(talk, other)
    talk.ask("is it there", _add(name, owner, topic, 0, verify=True), version)
    talk.ask("is it there, of nothing", _add(other, idle, topic, 0, verify=True), version)
    talk.ask("is it there, an epoch before", _add(name, (owner[0], owner[1] - 1), topic, 0, verify=True), version)
    talk.ask("is it there, a stranger", _add(name, (STRANGER, 0), topic, 0, verify=True), version)
    talk.ask("is it there, an absent id", _add(talk.name("nobody"), owner, topic, 0, verify=True), version)
    both = [*_add(name, owner, topic, 0).transactions, *_add(other, idle, topic, 1, verify=True).transactions]
    talk.ask("two transactions", AddPartitionsToTxnRequest(transactions=both), version)


def groups_of_transactions(talk: Talk) -> None:
    for version in talk.versions_of("AddOffsetsToTxn"):
        name, group = talk.name(f"v{version}"), talk.name("group")
        former = _owner(talk, name)
        owner = _owner(talk, name)
        talk.ask("one", _offsets(name, owner, group), version)
        talk.ask("once more", _offsets(name, owner, group), version)
        talk.ask("an empty group", _offsets(name, owner, ""), version)
        talk.ask("an epoch before", _offsets(name, former, group), version)
        talk.ask("a stranger", _offsets(name, (STRANGER, 0), group), version)
        talk.ask("an absent id", _offsets(talk.name("nobody"), owner, group), version)
        talk.ask("an empty id", _offsets("", owner, group), version)


def _committing(
    name: str, owner: Owner, group: str, topic: str, offset: int, partition: int = 0, member: Member | None = None
) -> TxnOffsetCommitRequest:
    place = TxnOffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_leader_epoch=0, committed_metadata="note"
    )
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=owner[0],
        producer_epoch=owner[1],
        generation_id=-1 if member is None else member.generation,
        member_id="" if member is None else member.member_id,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
    )


def _committed(talk: Talk, step: str, group: str, topic: str) -> None:
    groups = [OffsetFetchRequestGroup(group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])])]
    for stable in (False, True):
        talk.ask(f"{step}{', stable' if stable else ''}", OffsetFetchRequest(groups=groups, require_stable=stable), 9)


def offsets_in_transactions(talk: Talk) -> None:
    topic = talk.create("topic", 2)
    for version in talk.versions_of("TxnOffsetCommit"):
        name, group = talk.name(f"v{version}"), talk.name(f"group-v{version}")
        former = _owner(talk, name)
        owner = _owner(talk, name)
        if version < 5:
            talk.ask("before the group joins", _committing(name, owner, group, topic, 5), version)
            talk.do(_offsets(name, owner, group), 3)
        talk.ask("five", _committing(name, owner, group, topic, 5), version)
        talk.ask("absent topic", _committing(name, owner, group, talk.name("absent"), 5), version)
        talk.ask("absent partition", _committing(name, owner, group, topic, 5, partition=9), version)
        talk.ask("an epoch before", _committing(name, former, group, topic, 5), version)
        talk.ask("a stranger", _committing(name, (STRANGER, 0), group, topic, 5), version)
        talk.ask("an empty group", _committing(name, owner, "", topic, 5), version)
        _committed(talk, f"v{version} open", group, topic)
        talk.do(_end(name, owner), 3)
        _ended(talk, name)
        _committed(talk, f"v{version} committed", group, topic)
        owner = _owner(talk, name)
        talk.do(_offsets(name, owner, group), 3)
        talk.ask("nine", _committing(name, owner, group, topic, 9), version)
        talk.do(_end(name, owner, commit=False), 3)
        _ended(talk, name)
        _committed(talk, f"v{version} aborted", group, topic)


def offsets_of_members_in_transactions(talk: Talk) -> None:
    topic = talk.create("topic", 2)
    for version in talk.versions_of("TxnOffsetCommit"):
        name, group = talk.name(f"v{version}"), talk.name(f"group-v{version}")
        owner = _owner(talk, name)
        member = Member(talk.connect(), group, "member")
        member.learn(talk.do(join(member), 3, on=member.line))
        talk.do(sync(member, {member.member_id: b"all"}), 3, on=member.line)
        talk.do(_offsets(name, owner, group), 3)
        if version >= 3:
            talk.ask("as the member", _committing(name, owner, group, topic, 5, member=member), version)
            member.generation += 1
            talk.ask("a generation to come", _committing(name, owner, group, topic, 5, member=member), version)
            member.generation -= 1
            member.member_id, right = "stranger", member.member_id
            talk.ask("a stranger", _committing(name, owner, group, topic, 5, member=member), version)
            member.member_id = right
            absent = _committing(name, owner, talk.name(f"absent-v{version}"), topic, 5, member=member)
            talk.ask("a group that is not there", absent, version)
        talk.ask("as nobody", _committing(name, owner, group, topic, 6), version)
        talk.do(_end(name, owner), 3)
        _ended(talk, name)
        _committed(talk, f"v{version}", group, topic)


def ends(talk: Talk) -> None:
    topic = talk.create("topic")
    for version in talk.versions_of("EndTxn"):
        name = talk.name(f"v{version}")
        former = _owner(talk, name)
        owner = _owner(talk, name)
        if version < 5:
            talk.ask("of nothing", _end(name, owner), version)
            talk.ask("of nothing, abort", _end(name, owner, commit=False), version)
        talk.ask("a stranger", _end(name, (STRANGER, 0)), version)
        talk.ask("an absent id", _end(talk.name("nobody"), owner), version)
        talk.ask("an empty id", _end("", owner), version)
        for commit in (True, False):
            way = "commit" if commit else "abort"
            talk.do(_add(name, owner, topic, 0), 3)
            talk.ask(f"{way}, an epoch before", _end(name, former, commit=commit), version)
            talk.ask(f"{way}, an epoch to come", _end(name, (owner[0], 99), commit=commit), version)
            talk.ask(way, _end(name, owner, commit=commit), version)
            _ended(talk, name)
            talk.ask(f"{way} once more", _end(name, owner, commit=commit), version)
            talk.ask(f"{way}, then the other", _end(name, owner, commit=not commit), version)
            _ended(talk, name)
            talk.ask(f"v{version} {way}", DescribeTransactionsRequest(transactional_ids=[name]), 0)
            if version >= 5:
                owner = _owner(talk, name)
                former = owner[0], owner[1] - 1


def ends_of_nothing(talk: Talk) -> None:
    """A client of transactions version 2 that has not written, or does not know whether it has."""
    name = talk.name("id")
    owner = _owner(talk, name)
    talk.ask("commit", _end(name, owner), 5)
    aborted = talk.ask("abort", _end(name, owner, commit=False), 5)
    _ended(talk, name)
    talk.ask("abort once more", _end(name, owner, commit=False), 5)
    following = aborted.producer_id, aborted.producer_epoch
    _ended(talk, name)
    talk.ask("abort by the next", _end(name, following, commit=False), 5)


def writes_of_older_clients(talk: Talk) -> None:
    for version in (each for each in talk.versions_of("Produce") if each < 12):
        topic, name = talk.create(f"v{version}", 2), talk.name(f"v{version}")
        former = _owner(talk, name)
        owner = _owner(talk, name)
        talk.ask("before the partition joins", produce(topic, _batch(owner, "a"), transactional_id=name), version)
        talk.do(_add(name, owner, topic, 0), 3)
        talk.ask("first", produce(topic, _batch(owner, "a", "b"), transactional_id=name), version)
        talk.ask("first, once more", produce(topic, _batch(owner, "a", "b"), transactional_id=name), version)
        talk.ask("second", produce(topic, _batch(owner, "c", sequence=2), transactional_id=name), version)
        talk.ask("with a gap", produce(topic, _batch(owner, "d", sequence=9), transactional_id=name), version)
        talk.ask("another partition", produce(topic, _batch(owner, "a"), partition=1, transactional_id=name), version)
        talk.ask("an epoch before", produce(topic, _batch(former, "x"), transactional_id=name), version)
        talk.ask("a stranger", produce(topic, _batch((STRANGER, 0), "x"), transactional_id=name), version)
        talk.ask("without a transactional id", produce(topic, _batch(owner, "d", sequence=3)), version)
        plain = _batch(owner, "plain", sequence=3, attributes=0)
        talk.ask("a batch outside", produce(topic, plain, transactional_id=name), version)
        talk.do(_end(name, owner), 3)
        _ended(talk, name)
        talk.ask("after the end", produce(topic, _batch(owner, "late", sequence=3), transactional_id=name), version)


def writes_of_newer_clients(talk: Talk) -> None:
    for version in (12, 13):
        _write_like_newer_clients(talk, version)


def _write_like_newer_clients(talk: Talk, version: int) -> None:
    topic, name = talk.create(f"v{version}", 2), talk.name(f"v{version}")
    topic_id = talk.wait_for_topic(topic, 2)
    former = _owner(talk, name)
    owner = _owner(talk, name)

    def write(step: str, batch: Batch, partition: int = 0) -> None:
        request = produce(topic, batch, partition=partition, topic_id=topic_id, transactional_id=name)
        talk.ask(step, request, version)

    write("an epoch before", _batch(former, "x"))
    write("a stranger", _batch((STRANGER, 0), "x"))
    write("first", _batch(owner, "a", "b"))
    talk.ask(f"v{version}", DescribeTransactionsRequest(transactional_ids=[name]), 0)
    write("another partition", _batch(owner, "a"), partition=1)
    write("second", _batch(owner, "c", sequence=2))
    write("an epoch before, again", _batch(former, "x"))
    write("an epoch before, elsewhere", _batch(former, "x"), partition=1)
    ended = talk.ask(f"v{version}", _end(name, owner), 5)
    _ended(talk, name)
    write("after the end", _batch(owner, "late", sequence=3))
    following = ended.producer_id, ended.producer_epoch
    write("the next transaction", _batch(following, "n"))
    talk.ask(f"v{version} next", _end(name, following, commit=False), 5)
    _ended(talk, name)
    talk.ask(f"v{version} all", fetch(topic, isolation_level=1), 11)


def readers_of_committed_records(talk: Talk) -> None:
    topic = talk.create("topic")
    first, second = talk.name("first"), talk.name("second")
    owner = _open(talk, first, topic, "a", "b")
    other = _open(talk, second, topic, "c")
    talk.do(produce(topic, Batch(values("plain"))), 9)
    _read(talk, "open", topic)
    talk.do(_end(second, other, commit=False), 3)
    _ended(talk, second)
    _read(talk, "the second aborted", topic)
    talk.do(_end(first, owner), 3)
    _ended(talk, first)
    _read(talk, "both ended", topic)
    for offset in (1, 2, 3, 4, 5, 6):
        talk.ask(f"from {offset}", fetch(topic, offset, isolation_level=1), 11)
    for version in talk.versions_of("Fetch"):
        if version < 13:
            talk.ask("every version", fetch(topic, isolation_level=1), version)


def _read(talk: Talk, step: str, topic: str) -> None:
    for isolation in (0, 1):
        talk.ask(f"{step}, isolation {isolation}", fetch(topic, isolation_level=isolation), 11)
        place = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[place])
        talk.ask(f"{step}, isolation {isolation}", request, 7)
    producers = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    talk.ask(step, producers, 0)


def fetch_session_that_changes_its_parameters(talk: Talk) -> None:
    """A session is told other things under another isolation level, and as a follower instead of a consumer."""
    topic, line = talk.create("topic"), talk.connect()
    talk.do(produce(topic, Batch(values("plain"))), 9)
    owner = _open(talk, talk.name("name"), topic, "open")
    session, epoch = 0, 0

    def ask(step: str, offset: int | None = None, *, isolation: int = 0, replica_id: int = -1, rack: str = "") -> None:
        nonlocal session, epoch
        request = fetch(topic, offset or 0, isolation_level=isolation)
        request.session_id, request.session_epoch = session, epoch
        request.replica_id, request.rack_id = replica_id, rack
        if offset is None:
            request.topics = []
        session, epoch = talk.ask(step, request, 11, on=line).session_id, epoch + 1

    ask("committed, from the start", 0, isolation=1)
    ask("committed, to its end", 1, isolation=1)
    ask("committed, nothing new", isolation=1)
    ask("uncommitted")
    ask("uncommitted, to its end", 2)
    ask("uncommitted, nothing new")
    ask("committed again", isolation=1)
    ask("uncommitted again")
    ask("with a rack", rack="r")
    ask("as a replica that is none", replica_id=99)
    ask("as a consumer again")
    ask("as a consumer, nothing new")
    ask("committed, back", 1, isolation=1)
    talk.do(_end(talk.name("name"), owner), 3)
    _ended(talk, talk.name("name"))
    ask("committed, at the end of the transaction", isolation=1)


def markers_from_outside(talk: Talk) -> None:
    """The requests of kafka-transactions that abort a transaction without a coordinator."""
    for version in talk.versions_of("WriteTxnMarkers"):
        _mark_from_outside(talk, version)


def _mark_from_outside(talk: Talk, version: int) -> None:
    topic, name = talk.create(f"v{version}"), talk.name(f"v{version}")
    owner = _open(talk, name, topic, "a")

    def mark(step: str, place: str, owner: Owner, partition: int = 0, coordinator_epoch: int = 7, level: int = 0) -> None:
        marker = WritableTxnMarker(
            producer_id=owner[0],
            producer_epoch=owner[1],
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=place, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=level,
        )
        talk.ask(step, WriteTxnMarkersRequest(markers=[marker]), version)

    mark("absent topic", talk.name("absent"), owner)
    mark("absent partition", topic, owner, partition=9)
    mark("a stranger", topic, (STRANGER, 0))
    if version >= 2:
        mark("version 2, the epoch of the transaction", topic, owner, level=2)
    mark("abort", topic, owner)
    mark("abort once more", topic, owner)
    mark("an older coordinator", topic, owner, coordinator_epoch=6)
    mark("an epoch before", topic, (owner[0], owner[1] - 1))
    if version >= 2:
        following = owner[0], owner[1] + 1
        mark("version 2", topic, following, level=2)
        mark("version 2 once more", topic, following, level=2)
    talk.ask("no marker", WriteTxnMarkersRequest(markers=[]), version)
    talk.ask(f"v{version}", fetch(topic, isolation_level=1), 11)


def descriptions_of_transactions(talk: Talk) -> None:
    topic = talk.create("topic", 2)
    idle, opened, done = talk.name("idle"), talk.name("open"), talk.name("done")
    idle_owner = _owner(talk, idle)
    _open(talk, opened, topic, "a")
    owner = _open(talk, done, topic, "a")
    talk.do(_end(done, owner), 3)
    _ended(talk, done)
    for names in ([idle], [opened], [done], [idle, opened, done], [talk.name("absent")], [""], []):
        talk.ask(f"{len(names)} {','.join(names)}", DescribeTransactionsRequest(transactional_ids=names), 0)
    for version in talk.versions_of("ListTransactions"):
        mine = [idle_owner[0], owner[0]]
        questions = {
            "by producer": ListTransactionsRequest(producer_id_filters=mine),
            "by producer and state": ListTransactionsRequest(producer_id_filters=mine, state_filters=["Empty"]),
            "an unknown state": ListTransactionsRequest(producer_id_filters=mine, state_filters=["Empty", "Asleep"]),
            "only unknown states": ListTransactionsRequest(producer_id_filters=mine, state_filters=["Asleep", "ongoing"]),
            "a stranger": ListTransactionsRequest(producer_id_filters=[STRANGER]),
        }
        if version >= 1:
            questions["an hour long"] = ListTransactionsRequest(producer_id_filters=mine, duration_filter=3_600_000)
            questions["of any length"] = ListTransactionsRequest(producer_id_filters=mine, duration_filter=-1)
        if version >= 2:
            questions |= {f"by pattern {pattern}": ListTransactionsRequest(transactional_id_pattern=pattern)
                          for pattern in _patterns(talk)}  # fmt: skip
        for step, request in questions.items():
            talk.ask(step, request, version)


def _patterns(talk: Talk) -> list[str]:
    prefix = talk.prefix
    return [
        f"{prefix}.*",
        f"{prefix}(idle|done)",
        f"{prefix}id",
        f"^{prefix}i[a-e]l\\w$",
        f"(?i){prefix.upper()}DONE",
        f"{prefix}d{{1,2}}one",
        f"{prefix}[^\\d]{{4}}",
        "[",
        "a**",
        "(?<",
        "(a)\\1",
    ]
