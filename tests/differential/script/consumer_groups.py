"""The consumer protocol (KIP-848): heartbeats, what they are refused with, and what else is asked about such groups.

Which member gets which partitions is an assignor's to choose, so where there are several the script notes how many.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedPartitions
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.differential.script.common import subscription
from tests.differential.talk import Talk
from tests.waiting import wait_until

GROUP_RESOURCE, SET, DELETE = 32, 0, 1
JOIN, LEAVE, LEAVE_STATIC = 0, -1, -2


class Consumer:
    """A member of a consumer group, as far as the script moves it."""

    def __init__(self, talk: Talk, group: str, member_id: str, *topics: str, instance_id: str | None = None) -> None:
        self.talk, self.group, self.member_id, self.topics, self.instance_id = talk, group, member_id, list(topics), instance_id
        self.epoch = JOIN
        self.owned: dict[Any, list[int]] = {}

    def request(self, epoch: int | None = None, **changes: Any) -> ConsumerGroupHeartbeatRequest:
        """All that there is to say."""
        joins = (self.epoch if epoch is None else epoch) == JOIN
        owned = [RequestTopicPartitions(topic_id=t, partitions=p) for t, p in self.owned.items()]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=self.topics,
            topic_partitions=[] if joins else owned,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def nudge(self, epoch: int | None = None) -> ConsumerGroupHeartbeatRequest:
        """Nothing new."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self.instance_id,
            topic_partitions=None,
        )

    def learn(self, answer: Any) -> Any:
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {t.topic_id: list(t.partitions) for t in answer.assignment.topic_partitions}
        return answer

    def send(self, request: ConsumerGroupHeartbeatRequest | None = None) -> Any:
        """Without a record."""
        return self.learn(self.talk.do(request or self.request(), 1))

    def counted(self, step: str, request: ConsumerGroupHeartbeatRequest) -> None:
        """Note how many partitions the answer gives, not which."""
        answer = self.learn(self.talk.do(request, 1))
        told = None if answer.assignment is None else sum(len(t.partitions) for t in answer.assignment.topic_partitions)
        self.talk.note(step, {"error_code": answer.error_code, "epoch": answer.member_epoch, "partitions": told})


def _group(talk: Talk, suffix: str) -> str:
    """The name of a group whose assignments follow each other at once."""
    name = talk.name(suffix)
    talk.do(_interval(name, SET, "0"), 1)
    talk.afterwards(_interval(name, DELETE, None), 1)
    talk.settle()
    return name


def _interval(group: str, operation: int, value: str | None) -> IncrementalAlterConfigsRequest:
    setting = AlterableConfig(name="consumer.assignment.interval.ms", config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[setting])
    return IncrementalAlterConfigsRequest(resources=[resource])


def _ask(talk: Talk, step: str, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Any:
    """The answer, and the words of a refusal."""
    answer = talk.ask(step, request, version)
    if answer is not None and answer.error_message is not None:
        talk.note(f"{step} v{version}: in words", answer.error_message.replace(talk.prefix, ""))
    return answer


def heartbeat_refused(talk: Talk) -> None:
    """Requests that make no sense whatever the group."""
    member = Consumer(talk, talk.name("g"), "m", "t")
    for version in talk.versions_of("ConsumerGroupHeartbeat"):
        cases = {
            "no group": member.request(group_id=""),
            "a blank group": member.request(group_id=" "),
            "no member id": member.request(member_id="", member_epoch=1),
            "no member id when leaving": member.request(member_id="", member_epoch=-1),
            "an empty instance": member.request(instance_id=""),
            "an empty rack": member.request(rack_id=""),
            "no rebalance timeout": member.request(rebalance_timeout_ms=-1),
            "partitions when joining": member.request(topic_partitions=[RequestTopicPartitions(partitions=[0])]),
            "null partitions when joining": member.request(topic_partitions=None),
            "no subscription": member.request(subscribed_topic_names=None),
            "another assignor": member.request(server_assignor="strange"),
            "a static leave without an instance": member.request(member_epoch=-2),
            "an epoch below": member.request(member_epoch=-3),
            "no such group": member.request(member_epoch=1),
            "leaving no such group": member.request(member_epoch=-1),
        }
        for case, request in cases.items():
            _ask(talk, case, request, version)
    talk.ask("not an expression", member.request(subscribed_topic_names=None, subscribed_topic_regex="("), 1)
    talk.ask("nothing was made", ListGroupsRequest(), 5, only_mine=True)


def one_member(talk: Talk) -> None:
    """From the first heartbeat to the last."""
    topic = talk.create("t", 3)
    group = _group(talk, "g")
    for version in talk.versions_of("ConsumerGroupHeartbeat"):
        member = Consumer(talk, group, f"m{version}", topic)
        member.learn(talk.ask("joins", member.request(), version))
        talk.ask("says nothing new", member.nudge(), version)
        talk.ask("says all", member.request(), version)
        talk.ask("says the epoch before", member.request(epoch=member.epoch - 1, topic_partitions=[]), version)
        _ask(talk, "is too early", member.nudge(member.epoch + 1), version)
        _ask(talk, "is too late", member.nudge(-1 if member.epoch < 2 else member.epoch - 2), version)
        for described in talk.versions_of("ConsumerGroupDescribe"):
            talk.ask(f"m{version} is there", ConsumerGroupDescribeRequest(group_ids=[group]), described)
        talk.ask("subscribes to less", member.request(subscribed_topic_names=[]), version)
        member.owned = {}
        member.learn(talk.ask("has nothing", member.request(subscribed_topic_names=[]), version))
        talk.ask("leaves", member.nudge(LEAVE), version)
        talk.ask(f"m{version} is gone", ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), 1)
        _ask(talk, "is unknown", member.nudge(5), version)
        _ask(talk, "is unknown when leaving", member.nudge(LEAVE), version)


def member_id_by_broker(talk: Talk) -> None:
    topic = talk.create("t")
    member = Consumer(talk, _group(talk, "g"), "", topic)
    answer = talk.ask("joins without an id", member.request(), 0)
    talk.note("length of the id", len(answer.member_id))


def nothing_subscribed(talk: Talk) -> None:
    """A member of a new group that reads no topic, and another of the same group."""
    group = _group(talk, "g")
    for name in ("a", "b"):
        member = Consumer(talk, group, name)
        talk.ask(f"{name} joins", member.request(), 1)
    answer = talk.do(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    talk.note("the group", [answer.group_state, answer.group_epoch, answer.assignment_epoch, len(answer.members)])


def same_id_again(talk: Talk) -> None:
    """A member that joins under an id that is a member's."""
    topic = talk.create("t")
    group = _group(talk, "g")
    for name, instance_id in (("dynamic", None), ("static", "i")):
        member = Consumer(talk, group, name, topic, instance_id=instance_id)
        member.send()
        _ask(talk, f"{name} again", member.request(epoch=JOIN, topic_partitions=[]))
        member.send(member.request(subscribed_topic_names=[topic, talk.name("none")]))
        _ask(talk, f"{name} once more", member.request(epoch=JOIN, topic_partitions=[]))
        if instance_id:
            member.send(member.nudge(LEAVE_STATIC))
            _ask(talk, f"{name} back", member.request(epoch=JOIN, topic_partitions=[]))
            _ask(talk, "instance gone", member.request(epoch=JOIN, topic_partitions=[], instance_id=None))
            _ask(talk, "another instance", member.request(epoch=JOIN, topic_partitions=[], instance_id="j"))


def two_members(talk: Talk) -> None:
    """The second gets what the first gives up, and not before."""
    topic = talk.create("t", 4)
    group = _group(talk, "g")
    first, second = (Consumer(talk, group, name, topic) for name in ("a", "b"))
    first.counted("a joins", first.request())
    second.counted("b joins", second.request())
    had = dict(first.owned)
    first.counted("a is to give up", first.nudge())
    kept, first.owned = first.owned, had
    first.counted("a clings", first.request())
    second.counted("b waits", second.nudge())
    first.owned = kept
    first.counted("a has given up", first.request())
    second.counted("b has its share", second.nudge())
    first.counted("a is at rest", first.nudge())
    second.counted("b tells all", second.request())
    first.counted("a leaves", first.nudge(LEAVE))
    second.counted("b has all", second.nudge())
    second.counted("b is at rest", second.nudge())


def static_members(talk: Talk) -> None:
    topic = talk.create("t", 4)
    group = _group(talk, "g")
    static, other = Consumer(talk, group, "a", topic, instance_id="i"), Consumer(talk, group, "b", topic)
    for _ in range(3):
        static.send()
        other.send()
    rival = Consumer(talk, group, "a2", topic, instance_id="i")
    _ask(talk, "the instance is taken", rival.request())
    _ask(talk, "fenced", rival.nudge(static.epoch))
    stranger = Consumer(talk, group, "x", topic, instance_id="unknown")
    _ask(talk, "no such instance", stranger.nudge(static.epoch))
    _ask(talk, "no such instance leaves", stranger.nudge(LEAVE))
    _ask(talk, "no such instance leaves for now", stranger.nudge(LEAVE_STATIC))
    talk.ask("goes for now", static.nudge(LEAVE_STATIC), 1)
    other.counted("the other one keeps its share", other.request())
    rival.counted("is back under another id", rival.request())
    _ask(talk, "the former id is fenced", static.nudge(static.epoch))
    other.counted("no rebalance", other.nudge())
    talk.ask("the new one leaves for good", rival.nudge(LEAVE), 1)
    other.counted("all is its own", other.nudge())


def topics_change(talk: Talk) -> None:
    """A name that is subscribed to before there is a topic."""
    group = _group(talk, "g")
    topic, later = talk.create("t"), talk.name("later")
    member = Consumer(talk, group, "m", topic, later)
    member.counted("joins", member.request())
    talk.create("later", 2)

    def has_seen() -> bool:
        member.send(member.nudge())
        return sum(map(len, member.owned.values())) == 3

    wait_until(has_seen)
    member.counted("has both", member.request())


def regular_expressions(talk: Talk) -> None:
    """Kafka resolves them beside the heartbeat, so what counts is where it ends."""
    group = _group(talk, "g")
    talk.create("re-one")
    talk.create("else")
    member = Consumer(talk, group, "m")
    asked = member.request(subscribed_topic_names=None, subscribed_topic_regex=talk.name("re-.*"))
    member.learn(talk.do(asked, 1))

    def has_one() -> bool:
        member.send(member.nudge())
        return len(member.owned) == 1

    wait_until(has_one)
    talk.ask("described", ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    member.learn(talk.do(member.request(subscribed_topic_names=None, subscribed_topic_regex=""), 1))
    wait_until(
        lambda: (
            not member.send(member.request(subscribed_topic_names=None, subscribed_topic_regex="")).assignment.topic_partitions
        )
    )
    talk.ask("without", ConsumerGroupDescribeRequest(group_ids=[group]), 1)


def consumer_offsets(talk: Talk) -> None:
    """Commits have to come from a member in its epoch."""
    topic = talk.create("t")
    topic_id = talk.wait_for_topic(topic)
    group = _group(talk, "g")
    member = Consumer(talk, group, "m", topic)
    member.send()

    def commit(member_id: str, epoch: int) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=epoch + 10, committed_metadata="")
        places = [OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[partition])]
        return OffsetCommitRequest(group_id=group, member_id=member_id, generation_id_or_member_epoch=epoch, topics=places)

    def fetch(member_id: str | None, epoch: int) -> OffsetFetchRequest:
        places = [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])]
        wanted = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=places)
        return OffsetFetchRequest(groups=[wanted])

    for version in talk.versions_of("OffsetCommit"):
        for case, member_id, epoch in (
            ("the epoch", "m", 1),
            ("an older epoch", "m", 0),
            ("a newer epoch", "m", 2),
            ("a stranger", "x", 1),
            ("nobody", "", -1),
        ):
            talk.ask(case, commit(member_id, epoch), version)
    for version in talk.versions_of("OffsetFetch")[8:]:
        for case, who, epoch in (
            ("the epoch", "m", 1),
            ("an older epoch", "m", 0),
            ("a newer epoch", "m", 2),
            ("a stranger", "x", 1),
            ("an administrator", None, -1),
        ):
            talk.ask(case, fetch(who, epoch), version)
    for version in talk.versions_of("TxnOffsetCommit"):
        for case, member_id, epoch in (("a newer epoch", "m", 2), ("a stranger", "x", 1)):
            partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
            places = [TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])]
            request = TxnOffsetCommitRequest(
                transactional_id=talk.name("x"),
                group_id=group,
                producer_id=1,
                generation_id=epoch,
                member_id=member_id,
                topics=places,
            )
            talk.ask(case, request, version)
    deleted = OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    talk.ask("subscribed", OffsetDeleteRequest(group_id=group, topics=[deleted]), 0)
    talk.ask("not empty", DeleteGroupsRequest(groups_names=[group]), 2)
    member.send(member.nudge(LEAVE))
    talk.ask("nobody at an empty group", commit("", -1), 9)
    talk.ask("who has left", commit("m", 1), 9)
    talk.ask("not subscribed", OffsetDeleteRequest(group_id=group, topics=[deleted]), 0)
    talk.ask("empty", DeleteGroupsRequest(groups_names=[group]), 2)
    talk.ask("gone", ConsumerGroupDescribeRequest(group_ids=[group]), 1)


def described_and_listed(talk: Talk) -> None:
    """The differences between groups of one type and of the other."""
    topic = talk.create("t", 2)
    group, offsets = _group(talk, "g"), talk.name("offsets")
    member = Consumer(talk, group, "m", topic)
    member.send()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    places = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    talk.do(OffsetCommitRequest(group_id=offsets, member_id="", generation_id_or_member_epoch=-1, topics=places), 9)
    for version in talk.versions_of("ConsumerGroupDescribe"):
        request = ConsumerGroupDescribeRequest(group_ids=[group, offsets, talk.name("missing"), ""])
        answer = talk.ask("of all kinds", request, version)
        for described in answer.groups:
            if described.error_message is not None:
                words = described.error_message.replace(talk.prefix, "")
                talk.note(f"v{version} in words: {described.group_id.replace(talk.prefix, '')}", words)
    for version in talk.versions_of("DescribeGroups"):
        answer = talk.ask("a consumer group", DescribeGroupsRequest(groups=[group]), version)
    talk.note("DescribeGroups in words", answer.groups[0].error_message.replace(talk.prefix, ""))
    for version in talk.versions_of("ListGroups"):
        talk.ask("all", ListGroupsRequest(), version, only_mine=True)
    for kinds in (["consumer"], ["Consumer"], ["classic"], ["consumer", "classic"], ["share"], ["strange"]):
        talk.ask(f"of types {kinds}", ListGroupsRequest(types_filter=kinds), 5, only_mine=True)
    for states in (["Stable"], ["stable"], ["Empty"], ["Reconciling", "Assigning"], ["Dead"]):
        talk.ask(f"in states {states}", ListGroupsRequest(states_filter=states), 5, only_mine=True)


def classic_requests(talk: Talk) -> None:
    """Members of a classic group that come to one of consumers."""
    topic = talk.create("t", 2)
    group = _group(talk, "g")
    member = Consumer(talk, group, "m", topic)
    member.send()
    for version in (4, 9):
        for case, kind, names in (
            ("of another type", "connect", ["range"]),
            ("without a protocol", "consumer", []),
        ):
            protocols = [JoinGroupRequestProtocol(name=name, metadata=subscription(topic, b"")) for name in names]
            request = JoinGroupRequest(
                group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type=kind, protocols=protocols
            )
            talk.ask(case, request, version)
    for member_id in ("m", "x"):
        talk.ask(f"of {member_id}", HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id), 4)
        sync = SyncGroupRequest(
            group_id=group, generation_id=1, member_id=member_id, protocol_type="consumer", protocol_name="range"
        )
        talk.ask(f"of {member_id}", sync, 5)
        leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
        talk.ask(f"of {member_id}", leave, 5)
    talk.ask("who is there", ConsumerGroupDescribeRequest(group_ids=[group]), 1)


class Classic:
    """A member of the classic protocol that balances cooperatively."""

    def __init__(self, talk: Talk, group: str, topic: str) -> None:
        self.talk, self.group, self.topic = talk, group, topic
        self.member_id, self.generation = "", -1
        self.owned: list[int] = []

    def subscription(self) -> bytes:
        owned = [(self.topic, self.owned)] if self.owned else []
        message = ConsumerProtocolSubscription(
            topics=[self.topic], owned_partitions=[OwnedPartitions(topic=t, partitions=p) for t, p in owned]
        )
        return b"\0\1" + encode(message, 1)

    def join(self, step: str) -> None:
        for attempt in ("", " with its id"):
            protocols = [JoinGroupRequestProtocol(name="cooperative-sticky", metadata=self.subscription())]
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=protocols,
            )
            answer = self.talk.do(request, 9)
            self.talk.note(step + attempt, [answer.error_code, answer.generation_id, answer.protocol_name, len(answer.members)])
            self.member_id, self.generation = answer.member_id or self.member_id, answer.generation_id
            if not answer.error_code:
                return

    def sync(self, step: str, assigned: list[int] | None = None) -> None:
        shares = []
        if assigned is not None:
            message = ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic=self.topic, partitions=assigned)])
            shares = [SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"\0\1" + encode(message, 1))]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
            assignments=shares,
        )
        answer = self.talk.do(request, 5)
        if not answer.error_code:
            told = decode(ConsumerProtocolAssignment, 1, answer.assignment, 2)
            self.owned = [p for each in told.assigned_partitions for p in each.partitions]
        self.talk.note(step, [answer.error_code, len(self.owned)])

    def heartbeat(self, step: str, generation: int | None = None) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
        )
        self.talk.note(step, self.talk.do(request, 4).error_code)


def migration(talk: Talk) -> None:
    """A classic group gets a member of the consumer protocol, loses it, and stays at work."""
    topic = talk.create("t", 4)
    group = _group(talk, "g")
    old, fresh = Classic(talk, group, topic), Consumer(talk, group, "m", topic)
    old.join("classic joins")
    old.sync("classic has all", [0, 1, 2, 3])
    fresh.counted("consumer joins", fresh.request())
    talk.ask("upgraded", ListGroupsRequest(), 5, only_mine=True)
    described = talk.do(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    talk.note("members", sorted([m.member_type, m.member_epoch] for m in described.members))
    old.heartbeat("classic is to join")
    old.sync("classic is to join, not to sync")
    old.heartbeat("classic of another generation", 7)
    old.join("classic joins again")
    old.sync("classic is told what it keeps")
    old.heartbeat("classic is to give up")
    fresh.counted("consumer waits", fresh.request())
    old.join("classic has given up")
    old.sync("classic has its share")
    old.heartbeat("classic is at rest")
    fresh.counted("consumer has its share", fresh.nudge())
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    places = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    for generation in (old.generation, 99):
        request = OffsetCommitRequest(
            group_id=group, member_id=old.member_id, generation_id_or_member_epoch=generation, topics=places
        )
        talk.ask(f"of generation {generation}", request, 8)
    fresh.counted("consumer leaves", fresh.nudge(LEAVE))

    def is_classic() -> bool:
        return [g.group_type for g in talk.do(ListGroupsRequest(), 5).groups if g.group_id == group] == ["classic"]

    wait_until(is_classic)
    talk.ask("downgraded", ListGroupsRequest(), 5, only_mine=True)
    old.heartbeat("classic rebalances")
    old.join("classic joins the classic group")
    old.sync("classic has all again", [0, 1, 2, 3])
    old.heartbeat("classic is at rest again")


def not_to_be_migrated(talk: Talk) -> None:
    """A group of another type of members stays what it is."""
    group = _group(talk, "g")
    protocols = [JoinGroupRequestProtocol(name="x", metadata=b"x")]
    request = JoinGroupRequest(
        group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="connect", protocols=protocols
    )
    request.member_id = talk.do(request, 5).member_id
    talk.do(request, 5)
    member = Consumer(talk, group, "m")
    _ask(talk, "joins", member.request())
    _ask(talk, "goes on", member.nudge(1))
    _ask(talk, "leaves", member.nudge(LEAVE))


def offsets_first(talk: Talk) -> None:
    """A group that only stores offsets becomes one of consumers, and keeps them; an empty one of consumers becomes classic again."""
    topic = talk.create("t")
    group = _group(talk, "g")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    places = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    talk.do(OffsetCommitRequest(group_id=group, member_id="", generation_id_or_member_epoch=-1, topics=places), 9)
    member = Consumer(talk, group, "m", topic)
    talk.ask("joins", member.request(), 1)
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    talk.ask("is kept", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted)]), 9)
    talk.ask("leaves", member.nudge(LEAVE), 1)
    talk.ask("in between", ListGroupsRequest(), 5, only_mine=True)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription(topic, b""))]
    request = JoinGroupRequest(
        group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="consumer", protocols=protocols
    )
    talk.ask("of a classic member", request, 9)
    talk.ask("is kept there", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted)]), 9)
    talk.ask("afterwards", ListGroupsRequest(), 5, only_mine=True)
