"""Requests in one write: each sees the changes of the earlier ones.

Every API that changes something comes before each API that shows it. Some effects come later than Kafka's answer, because its brokers learn
of topics from their log. They are not compared here: `tests/server/test_request_order.py` checks them on our broker.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.differential.batch import Batch, values
from tests.differential.script.common import Member, fetch, join, produce, sync
from tests.differential.talk import Talk

LATEST, EARLIEST = -1, -2
TRANSACTIONAL = 0x10
Asked = tuple[Message, int]


def _offsets(topic: str, timestamp: int = LATEST, isolation_level: int = 0) -> Asked:
    places = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    return ListOffsetsRequest(isolation_level=isolation_level, topics=[ListOffsetsTopic(name=topic, partitions=places)]), 7


def _epoch_end(topic: str) -> Asked:
    places = [OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=places)]), 4


def _producers(topic: str) -> Asked:
    return DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])]), 0


def _delete_records(topic: str, before: int) -> Asked:
    places = [DeleteRecordsPartition(partition_index=0, offset=before)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=places)], timeout_ms=30_000), 2


def pipelined_records(talk: Talk) -> None:
    """Behind Produce and DeleteRecords."""
    readings: dict[str, Callable[[str], Asked]] = {
        "its end": _offsets,
        "its records": lambda topic: (fetch(topic), 12),
        "what comes next": lambda topic: (fetch(topic, 3, max_wait_ms=300), 12),
        "the end of its epoch": _epoch_end,
        "once more": lambda topic: (produce(topic, Batch(values("d"))), 9),
    }
    for acks in (-1, 1):
        for what, reading in readings.items():
            topic = talk.create(f"acks-{acks}-{what.replace(' ', '-')}")
            written = produce(topic, Batch(values("a", "b", "c")), acks=acks)
            talk.ask_together(f"with acks {acks}, then {what}", (written, 9), reading(topic))
    readings["its beginning"] = lambda topic: _offsets(topic, EARLIEST)
    for what, reading in readings.items():
        topic = talk.create(f"deleted-{what.replace(' ', '-')}")
        talk.do(produce(topic, Batch(values("a", "b", "c"))), 9)
        talk.ask_together(f"deleted, then {what}", _delete_records(topic, 2), reading(topic))
    topic = talk.create("chain")
    talk.ask_together(
        "written, deleted, written, deleted",
        (produce(topic, Batch(values("a", "b"))), 9),
        _delete_records(topic, 1),
        _offsets(topic, EARLIEST),
        (produce(topic, Batch(values("c"))), 9),
        _delete_records(topic, -1),
        _offsets(topic, EARLIEST),
        _offsets(topic),
        (fetch(topic), 12),
    )


def pipelined_producers(talk: Talk) -> None:
    """Behind Produce with a producer id, and behind markers."""
    topic = talk.create("topic")
    given = talk.do(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    owner = given.producer_id, given.producer_epoch
    batch = Batch(values("a"), producer_id=owner[0], producer_epoch=owner[1], base_sequence=0)
    answers = talk.ask_together("written", (produce(topic, batch), 9), _producers(topic))
    assert answers


def _commit(group: str, topic: str, offset: int, member: Member | None = None) -> Asked:
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="", committed_leader_epoch=-1
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation if member else -1,
        member_id=member.member_id if member else "",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[place])],
    )
    return request, 8


def _committed(group: str, topic: str) -> Asked:
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted)]), 8


def pipelined_offsets(talk: Talk) -> None:
    """Behind OffsetCommit, OffsetDelete and DeleteGroups."""
    topic, group = talk.create("topic"), talk.name("group")
    places = [OffsetDeleteRequestPartition(partition_index=0)]
    delete = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=places)]), 0
    described, gone = (DescribeGroupsRequest(groups=[group]), 5), (DeleteGroupsRequest(groups_names=[group]), 2)
    committed = _committed(group, topic)
    talk.ask_together("committed", _commit(group, topic, 5), committed)
    talk.ask_together("committed twice", _commit(group, topic, 6), _commit(group, topic, 7), committed)
    talk.ask_together("deleted", delete, committed)
    talk.ask_together("deleted, then described", _commit(group, topic, 8), delete, described)
    talk.ask_together("the group deleted", _commit(group, topic, 9), gone, committed)
    talk.ask_together("the group deleted, then listed", _commit(group, topic, 9), gone, (ListGroupsRequest(), 4), only_mine=True)


def pipelined_members(talk: Talk) -> None:
    """A member's life in one write; its first join waits for others."""
    topic, line = talk.create("topic"), talk.connect()
    member = Member(line, talk.name("group"), "member")
    member.member_id = talk.do(join(member), 5, on=line).member_id  # the member id that the coordinator assigned
    member.generation = 1
    described = DescribeGroupsRequest(groups=[member.group])
    heartbeat = HeartbeatRequest(group_id=member.group, generation_id=1, member_id=member.member_id)
    leave = LeaveGroupRequest(group_id=member.group, members=[MemberIdentity(member_id=member.member_id)])
    talk.ask_together(
        "joins, syncs, commits and leaves",
        (join(member), 5),
        (described, 5),
        (sync(member, {member.member_id: b"all"}), 5),
        (described, 5),
        (heartbeat, 4),
        _commit(member.group, topic, 5, member),
        _committed(member.group, topic),
        (leave, 5),
        (described, 5),
        (heartbeat, 4),
        on=line,
    )


def pipelined_consumers(talk: Talk) -> None:
    """A member of a consumer group comes and goes."""
    talk.create("topic")
    group, name = talk.name("group"), "AAAAAAAAAAAAAAAAAAAAAA"
    described = ConsumerGroupDescribeRequest(group_ids=[group])
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=name,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[talk.name("absent")],
        topic_partitions=[],
    )
    leave = ConsumerGroupHeartbeatRequest(group_id=group, member_id=name, member_epoch=-1)
    talk.ask_together("joins and leaves", (request, 1), (described, 1), (leave, 1), (described, 1))


def pipelined_transactions(talk: Talk) -> None:
    """From the transactional id to the end of its transaction."""
    topic, group, name = talk.create("topic"), talk.name("group"), talk.name("name")
    described = DescribeTransactionsRequest(transactional_ids=[name])
    init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    given = talk.ask_together("begins", (init, 4), (described, 0))[0]
    listed = ListTransactionsRequest(producer_id_filters=[given.producer_id])
    again = talk.ask_together("begins again", (init, 4), (described, 0), (listed, 0))[0]
    owner = again.producer_id, again.producer_epoch
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=owner[0],
        v3_and_below_producer_epoch=owner[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    batch = Batch(values("a"), producer_id=owner[0], producer_epoch=owner[1], base_sequence=0, attributes=TRANSACTIONAL)
    add_offsets = AddOffsetsToTxnRequest(transactional_id=name, producer_id=owner[0], producer_epoch=owner[1], group_id=group)
    place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    commit_offsets = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=owner[0],
        producer_epoch=owner[1],
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
    )
    stable = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])])],
        require_stable=True,
    )
    talk.ask_together(
        "writes",
        (add, 3),
        (described, 0),
        (add, 3),
        (produce(topic, batch, transactional_id=name), 9),
        _offsets(topic),
        _offsets(topic, isolation_level=1),
        (add_offsets, 3),
        (described, 0),
        (commit_offsets, 3),
        (stable, 8),
        (listed, 0),
        only_mine=True,
    )
    marker = WritableTxnMarker(
        producer_id=owner[0],
        producer_epoch=owner[1],
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        coordinator_epoch=7,
    )
    talk.ask_together(
        "aborted from outside",
        (WriteTxnMarkersRequest(markers=[marker]), 1),
        _offsets(topic, isolation_level=1),
        (fetch(topic), 12),
    )
