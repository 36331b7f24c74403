"""Groups of the consumer protocol with a real client, on a broker of its own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from barnabas.cli.group import describe_group, is_missing
from barnabas.cli.main import run
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.testing import Broker
from tests.server.clients import alter
from tests.server.wire import Line
from tests.waiting import wait_until

WAIT_S = 60.0
GROUP = 32  # a resource type that has settings
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.assignment.interval.ms": 0,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 4,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(QUICK) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


@pytest.fixture
def name() -> str:
    return f"n{uuid4().hex[:10]}"


def create(admin: AdminClient, *topics: str, partitions: int = 4) -> None:
    for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
        future.result(WAIT_S)


class Member:
    """A consumer that is polled by a thread of its own, as an application does."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **config: object) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
                **{key.replace("_", "."): value for key, value in config.items()},
            }
        )
        self.values: list[bytes] = []
        self.owned: set[tuple[str, int]] = set()  # a copy: calls to the consumer from another thread wait for its callbacks
        self.losses = 0
        self._stop = threading.Event()
        self.consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked)
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned = self.owned | {(p.topic, p.partition) for p in partitions}

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.losses += len(partitions)
        self.owned = self.owned - {(p.topic, p.partition) for p in partitions}

    def _poll(self) -> None:
        while not self._stop.is_set():
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append(message.value() or b"")

    def stop(self) -> None:
        """Stop polling; the consumer is still a member."""
        self._stop.set()
        self._thread.join()

    def close(self) -> None:
        self.stop()
        self.consumer.close()


@contextmanager
def members(bootstrap: str, group: str, *each: Sequence[str], **config: object) -> Iterator[list[Member]]:
    made = [Member(bootstrap, group, topics, **config) for topics in each]
    try:
        yield made
    finally:
        for member in made:
            member.close()


def places(topic: str, count: int) -> set[tuple[str, int]]:
    return {(topic, p) for p in range(count)}


def shared(each: Sequence[Member], whole: set[tuple[str, int]]) -> bool:
    owned = [member.owned for member in each]
    loads = [len(o) for o in owned]
    return set().union(*owned) == whole and sum(loads) == len(whole) and max(loads) - min(loads) <= 1


def produce(bootstrap: str, topic: str, values: Sequence[bytes], partitions: int = 4) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for index, value in enumerate(values):
        producer.produce(topic, value, partition=index % partitions)
    assert producer.flush(WAIT_S) == 0


def test_members_share_the_partitions_as_they_come_and_go(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, name)
    with members(broker.bootstrap_servers, name, [name]) as first:
        wait_until(lambda: shared(first, places(name, 4)))
        with members(broker.bootstrap_servers, name, [name], [name]) as more:
            wait_until(lambda: shared([*first, *more], places(name, 4)))
            kept = first[0].owned
            assert first[0].losses == 4 - len(kept), "it gave up what others got, and nothing else"
        wait_until(lambda: shared(first, places(name, 4)))
    described = admin.describe_consumer_groups([name])[name].result(WAIT_S)
    assert described.state is ConsumerGroupState.EMPTY


def test_everything_is_read_once_and_commits_count(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, name)
    sent = [b"%d" % n for n in range(40)]
    with members(broker.bootstrap_servers, name, [name], [name]) as both:
        wait_until(lambda: shared(both, places(name, 4)))  # a member without records commits nothing
        produce(broker.bootstrap_servers, name, sent)
        wait_until(lambda: sorted(both[0].values + both[1].values) == sorted(sent))
        for member in both:
            member.stop()
            member.consumer.commit(asynchronous=False)
    produce(broker.bootstrap_servers, name, [b"later"])
    with members(broker.bootstrap_servers, name, [name]) as again:
        wait_until(lambda: again[0].values == [b"later"])
        again[0].stop()
        again[0].consumer.seek(TopicPartition(name, 1, 8))
        message = again[0].consumer.poll(WAIT_S)
        assert message is not None
        assert (message.partition(), message.offset(), message.value()) == (1, 8, b"33")


def test_a_static_member_bounces_without_a_rebalance(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, name)
    with members(broker.bootstrap_servers, name, [name]) as other:
        static = Member(broker.bootstrap_servers, name, [name], group_instance_id="i")
        wait_until(lambda: shared([*other, static], places(name, 4)))
        had, lost = static.owned, other[0].losses
        static.close()
        static = Member(broker.bootstrap_servers, name, [name], group_instance_id="i")
        wait_until(lambda: static.owned == had)
        assert other[0].losses == lost
        static.close()


def test_a_regular_expression_is_resolved_by_the_broker(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, f"{name}-a", f"other-{name}", partitions=1)
    with members(broker.bootstrap_servers, name, [f"^{name}-.*"]) as (member,):
        wait_until(lambda: member.owned == places(f"{name}-a", 1))
        create(admin, f"{name}-b", partitions=2)
        wait_until(lambda: member.owned == places(f"{name}-a", 1) | places(f"{name}-b", 2))
        admin.delete_topics([f"{name}-a"])[f"{name}-a"].result(WAIT_S)
        wait_until(lambda: member.owned == places(f"{name}-b", 2))
        assert member.losses == 1, "the partition of the topic that is gone"


def test_partitions_that_a_topic_gets_are_assigned(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, name, partitions=1)
    with members(broker.bootstrap_servers, name, [name], [name]) as both:
        wait_until(lambda: set().union(*(m.owned for m in both)) == places(name, 1))
        admin.create_partitions([NewPartitions(name, 4)])[name].result(WAIT_S)
        wait_until(lambda: shared(both, places(name, 4)))
        assert sorted(len(member.owned) for member in both) == [2, 2]


def test_people_see_the_group(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, name)
    with members(broker.bootstrap_servers, name, [name], client_id="c") as (member,):
        wait_until(lambda: member.owned == places(name, 4))
        (described,) = [future.result(WAIT_S) for future in admin.describe_consumer_groups([name]).values()]
        assert described.state is ConsumerGroupState.STABLE
        (seen,) = described.members
        assert seen.client_id == "c"
        assert {(p.topic, p.partition) for p in seen.assignment.topic_partitions} == places(name, 4)
        listed = admin.list_consumer_groups().result(WAIT_S).valid
        assert [(g.type.name, g.state) for g in listed if g.group_id == name] == [("CONSUMER", ConsumerGroupState.STABLE)]
        with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([name])[name].result(WAIT_S)
    admin.delete_consumer_groups([name])[name].result(WAIT_S)
    assert name not in {g.group_id for g in admin.list_consumer_groups().result(WAIT_S).valid}


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_group_is_upgraded_and_downgraded_while_it_works(broker: Broker, admin: AdminClient, name: str, strategy: str) -> None:
    create(admin, name)
    classic = {"group_protocol": "classic", "partition_assignment_strategy": strategy, "session_timeout_ms": 6_000,
               "heartbeat_interval_ms": 100}  # fmt: skip

    def type_of_group() -> str:
        listed = admin.list_consumer_groups().result(WAIT_S).valid
        return next(str(g.type.name) for g in listed if g.group_id == name)

    with members(broker.bootstrap_servers, name, [name], [name], **classic) as old:
        wait_until(lambda: shared(old, places(name, 4)))
        assert type_of_group() == "CLASSIC"
        with members(broker.bootstrap_servers, name, [name]) as new:
            wait_until(lambda: new[0].owned and shared([*old, *new], places(name, 4)))
            assert type_of_group() == "CONSUMER"
            sent = [b"%d" % n for n in range(40)]
            produce(broker.bootstrap_servers, name, sent)
            wait_until(lambda: sorted(v for m in [*old, *new] for v in m.values) == sorted(sent))
        wait_until(lambda: shared(old, places(name, 4)))
        assert type_of_group() == "CLASSIC"


def test_a_groups_own_settings_count(broker: Broker, admin: AdminClient, name: str) -> None:
    """Within the bounds of the broker, and the broker's where it has none."""
    create(admin, name)
    told = [heartbeat_interval(broker, name, "m")]
    alter(broker, GROUP, name, {"consumer.heartbeat.interval.ms": "700"})
    told.append(heartbeat_interval(broker, name, "n"))
    alter(broker, GROUP, name, {"consumer.heartbeat.interval.ms": None})
    told.append(heartbeat_interval(broker, name, "o"))
    assert told == [100, 700, 100]


def heartbeat_interval(broker: Broker, group: str, member_id: str) -> int:
    """The heartbeat interval that a joining member gets."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id, rebalance_timeout_ms=1_000, subscribed_topic_names=[group]
    )
    with Line(broker) as line:
        answer = line.ask((68, 1), request, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == 0
    return int(answer.heartbeat_interval_ms)


def test_the_command_line_shows_the_group(broker: Broker, admin: AdminClient, name: str) -> None:
    create(admin, name)
    produce(broker.bootstrap_servers, name, [b"x"] * 8)
    with members(broker.bootstrap_servers, name, [name]) as (member,):
        wait_until(lambda: len(member.values) == 8)
        member.stop()
        member.consumer.commit(asynchronous=False)
        described = describe_group(admin, name, WAIT_S)
        assert (described["state"], described["type"], described["lag"]) == ("stable", "consumer", 0)
        assert [len(m["partitions"]) for m in described["members"]] == [4]
    where = ["-b", broker.bootstrap_servers]
    assert run(["group", "reset-offsets", name, "--all-topics", "--to-earliest", "--execute", *where]) == 0
    assert describe_group(admin, name, WAIT_S)["lag"] == 8
    assert run(["group", "delete", name, *where]) == 0
    assert is_missing(describe_group(admin, name, WAIT_S))


def test_members_go_on_over_a_restart_of_the_broker(tmp_path: Path, name: str) -> None:
    with Broker(QUICK, data_dir=tmp_path) as running:
        address = running.bootstrap_servers
        create(AdminClient({"bootstrap.servers": address}), name)
        with members(address, name, [name], [name]) as both:
            wait_until(lambda: shared(both, places(name, 4)))
            had, lost = [m.owned for m in both], [m.losses for m in both]
            running.restart()
            produce(address, name, [b"%d" % n for n in range(8)])
            wait_until(lambda: len(both[0].values + both[1].values) == 8)
            assert [m.owned for m in both] == had
            assert [m.losses for m in both] == lost
