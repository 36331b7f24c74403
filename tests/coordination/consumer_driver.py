"""Members of a consumer group that do as real ones do, over the driver of a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

import pytest

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.interfaces import GroupSettings
from barnabas.coordination.result import MayDescribe, may_describe_all
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from barnabas.server.patterns import matcher
from tests.coordination.driver import GROUP, Driver
from tests.coordination.support import NAMESPACE, caller

Partition = tuple[str, int]
JOIN, LEAVE, LEAVE_STATIC = 0, -1, -2
OUT = {  # errors after which a member joins again
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


@dataclass
class TopicTable:
    """`Topics` in memory. A topic that is made again has another id."""

    counts: dict[str, int] = field(default_factory=dict)
    settings: GroupSettings = field(default_factory=lambda: GroupSettings(assignment_interval_ms=0))
    born: dict[str, int] = field(default_factory=dict)
    state: object = field(default_factory=object)
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.names = frozenset(self.counts)

    def set(self, name: str, count: int) -> None:
        """Make a topic, grow it, or with no partitions delete it."""
        if count:
            if name not in self.counts:
                self.born[name] = self.born.get(name, 0) + 1
            self.counts[name] = count
        else:
            self.counts.pop(name, None)
        self.state = object()
        if self.names != self.counts.keys():
            self.names = frozenset(self.counts)

    def topic_id(self, name: str) -> UUID | None:
        return uuid5(NAMESPACE, f"{name}/{self.born.get(name, 0)}") if name in self.counts else None

    def topic_name(self, topic_id: UUID) -> str | None:
        return next((name for name in self.counts if self.topic_id(name) == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self.counts.get(name, 0)

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        return matcher(pattern)

    def settings_of(self, group_id: str) -> GroupSettings:
        return self.settings


@dataclass
class Client:
    """One consumer. It gives up at once what is taken from it, and owns what it was last told."""

    driver: Driver
    member_id: str
    topics: Iterable[str] | None = ("t",)
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = 60_000
    epoch: int = JOIN
    owned: dict[UUID, frozenset[int]] = field(default_factory=dict)
    clings: bool = False  # keeps partitions that it must give up
    told: ConsumerGroupHeartbeatResponse | None = None
    may_describe: MayDescribe = may_describe_all

    def request(self, epoch: int | None = None, **changes: Any) -> ConsumerGroupHeartbeatRequest:
        """A full request."""
        joins = (self.epoch if epoch is None else epoch) == JOIN
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": self.member_id,
            "member_epoch": self.epoch if epoch is None else epoch,
            "instance_id": self.instance_id,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": None if self.topics is None else list(self.topics),
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            "topic_partitions": [] if joins else partitions_of(self.owned),
        }
        return ConsumerGroupHeartbeatRequest(**{**fields, **changes})

    def send(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> ConsumerGroupHeartbeatResponse:
        """Have the shard answer, and take over what it says."""
        driver = self.driver
        sender = caller(version, f"made-{self.member_id}")._replace(may_describe=self.may_describe)
        outcome = driver.shard.consumer_heartbeat(request, sender, driver.clock.now())
        refused = bool(outcome.records) and driver.refusal is not None
        answer = driver.carry_out(outcome)
        if refused:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        self.told, self.epoch = answer, answer.member_epoch
        if answer.assignment is not None:
            told = {t.topic_id: frozenset(t.partitions) for t in answer.assignment.topic_partitions}
            if self.clings:
                told = {t: told.get(t, frozenset()) | self.owned.get(t, frozenset()) for t in told.keys() | self.owned.keys()}
            self.owned = told
        return answer

    def beat(self, **changes: Any) -> ConsumerGroupHeartbeatResponse:
        """Send all there is to say."""
        return self.send(self.request(**changes))

    def nudge(self) -> ConsumerGroupHeartbeatResponse:
        """Send that nothing is new."""
        return self.send(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                member_epoch=self.epoch,
                instance_id=self.instance_id,
                topic_partitions=None,
            )
        )

    def leave(self, epoch: int = LEAVE) -> None:
        self.send(ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=self.member_id, member_epoch=epoch,
                                                instance_id=self.instance_id, topic_partitions=None))  # fmt: skip
        self.lose()

    def go_on(self, *, full: bool) -> ErrorCode:
        """A heartbeat, and what a client does about its answer; NONE or what else it was refused with than being out."""
        try:
            self.beat() if full or self.epoch == JOIN else self.nudge()
        except KafkaError as error:
            if error.code not in OUT:
                return error.code
            self.lose()
        return ErrorCode.NONE

    def lose(self) -> None:
        """It is out, and knows it."""
        self.epoch, self.owned = JOIN, {}

    def error(self, **changes: Any) -> ErrorCode:
        """The refusal of a request."""
        try:
            self.beat(**changes)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    @property
    def partitions(self) -> set[Partition]:
        topics = self.driver.topics
        assert topics is not None
        return {(topics.topic_name(t) or "?", p) for t, partitions in self.owned.items() for p in partitions}


def partitions_of(owned: dict[UUID, frozenset[int]]) -> list[RequestTopicPartitions]:
    return [RequestTopicPartitions(topic_id=t, partitions=sorted(p)) for t, p in owned.items()]


def refusal(request: ConsumerGroupHeartbeatRequest, client: Client, version: int = 1) -> tuple[ErrorCode, str | None]:
    with pytest.raises(KafkaError) as caught:
        client.send(request, version)
    return caught.value.code, caught.value.message


def all_of(name: str, count: int) -> set[Partition]:
    return {(name, p) for p in range(count)}


def consumer_driver(**counts: int) -> Driver:
    """A driver whose broker has topics of these names and numbers of partitions."""
    return Driver(topics=TopicTable(counts))


def let_pass(driver: Driver, passed_ms: int, clients: Iterable[Client]) -> frozenset[str]:
    """Time in which clients without an answer give up their partitions as their sessions must be over; the members that are left."""
    driver.advance(passed_ms)
    group = driver.shard.groups.get(GROUP)
    members = frozenset(group.members if isinstance(group, ClassicGroup | ConsumerGroup) else ())
    for client in clients:
        if client.member_id not in members:
            client.lose()
    return members


def consumer_group(driver: Driver) -> ConsumerGroup:
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


def settle(*clients: Client, rounds: int = 12) -> None:
    """Have all members send heartbeats until the group is stable."""
    for _ in range(rounds):
        for client in clients:
            client.beat()
        if consumer_group(clients[0].driver).state == "Stable":
            break
    else:
        raise AssertionError("the group does not come to rest")
    for client in clients:
        client.beat()
