"""A link between two clusters: copies with their offsets, what may not be written, failures of the source, promotion."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from barnabas.cli.errors import Failure
from barnabas.client.blocking import BlockingClient
from barnabas.mirror.topics import NOT_A_COPY
from barnabas.testing import Broker
from tests.server.mirroring.clusters import (
    commit,
    committed,
    create,
    create_link,
    ends,
    link,
    promote,
    status_of,
    wait_equal,
    wait_for_reason,
    write,
    write_in_transaction,
)
from tests.waiting import wait_until


def delete(servers: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([name])[name].result()


def read(servers: str, topic: str, count: int) -> list[str]:
    """The first committed records of partition 0."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, found
        assert message.error() is None
        found.append((message.value() or b"").decode())
    consumer.close()
    return found


def test_topics_are_copied_with_their_batches_settings_and_partitions(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders", 3, retention_ms="123456789")
    create(theirs, "other")
    write(theirs, "orders", (f"before-{number}" for number in range(200)), **{"compression.type": "lz4"})
    create_link(ours, theirs, topics="ord.*")
    wait_equal(theirs, ours, "orders")
    write_in_transaction(theirs, "orders", "kept", commit=True)
    write_in_transaction(theirs, "orders", "dropped", commit=False)
    admin = AdminClient({"bootstrap.servers": theirs})
    admin.create_partitions([NewPartitions("orders", 4)])["orders"].result()
    write(theirs, "orders", (f"after-{number}" for number in range(200)))
    wait_until(lambda: len(ends(ours, "orders")) == 4, "the partition was not added", within_s=30)
    wait_equal(theirs, ours, "orders")
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    admin = AdminClient({"bootstrap.servers": ours})
    found = admin.describe_configs([resource])[resource].result()
    assert found["retention.ms"].value == "123456789"
    assert ends(ours, "other") == {}
    assert link(ours).errors == []


def test_nobody_changes_a_copy(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", ["a"])
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    admin = AdminClient({"bootstrap.servers": ours})
    codes = []
    producer = Producer({"bootstrap.servers": ours})
    producer.produce("orders", b"x", on_delivery=lambda error, _: codes.append(None if error is None else error.name()))
    producer.flush(30)
    assert codes == ["POLICY_VIOLATION"]
    for refused in (
        lambda: admin.create_partitions([NewPartitions("orders", 2)])["orders"].result(),
        lambda: admin.delete_records([TopicPartition("orders", 0, 1)])[TopicPartition("orders", 0)].result(),
        lambda: create(ours, "mine", mirror_link="link"),
    ):
        with pytest.raises(KafkaException) as error:
            refused()
        assert error.value.args[0].name() in {"POLICY_VIOLATION", "INVALID_CONFIG"}
    assert ends(ours, "orders") == {0: 1}


def test_a_transaction_with_a_copy_ends(source: Broker, target: Broker) -> None:
    """The copy refuses the record; the coordinator must not wait for a marker in the copy."""
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    producer = Producer({"bootstrap.servers": ours, "transactional.id": "t"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"x")
    producer.flush(30)
    producer.abort_transaction(30)
    producer.begin_transaction()  # waits until the markers of the one before are written
    producer.produce("mine", b"y")
    producer.commit_transaction(30)
    assert read(ours, "mine", 1) == ["y"]
    assert ends(ours, "orders") == {0: 0}


def test_a_source_that_is_away_is_told_and_copied_from_again(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", ["a"])
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    source.kill()
    wait_until(lambda: link(ours).errors, "the loss of the source was not told", within_s=30)
    source.start()
    write(theirs, "orders", ["b"])
    wait_equal(theirs, ours, "orders")
    wait_until(lambda: not link(ours).errors, within_s=30)
    assert read(ours, "orders", 2) == ["a", "b"]


def test_a_target_that_was_killed_goes_on(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders", 2)
    write(theirs, "orders", map(str, range(100)))
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    target.kill()
    write(theirs, "orders", map(str, range(100)))
    target.start()
    wait_equal(theirs, ours, "orders")
    assert sum(ends(ours, "orders").values()) == 200


def test_a_topic_that_was_made_again_is_not_appended_to_the_copy(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", ["a"])
    create_link(ours, theirs, refresh_topics_interval_seconds="1")
    wait_equal(theirs, ours, "orders")
    delete(theirs, "orders")
    create(theirs, "orders")
    write(theirs, "orders", ["x", "y"])
    wait_for_reason(ours, "orders", "was deleted and made again in the source")
    assert read(ours, "orders", 1) == ["a"]
    delete(ours, "orders")  # as the reason says
    wait_equal(theirs, ours, "orders")


def test_a_topic_that_is_no_copy_is_left_alone(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    create(ours, "orders")
    write(theirs, "orders", ["a"])
    create_link(ours, theirs)
    wait_until(lambda: link(ours).refused == {"orders": NOT_A_COPY}, within_s=30)
    assert ends(ours, "orders") == {0: 0}


def test_a_promoted_topic_is_an_ordinary_one(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write_in_transaction(theirs, "orders", "a", commit=True)
    hanging = Producer({"bootstrap.servers": theirs, "transactional.id": "hanging"})
    hanging.init_transactions(30)
    hanging.begin_transaction()
    hanging.produce("orders", b"never committed")
    hanging.flush(30)
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    with pytest.raises(Failure, match="Promote or delete them first"):
        promote_link_away(ours)
    promote(ours, ["orders"])
    write_in_transaction(ours, "orders", "b", commit=True)
    write(ours, "orders", ["c"], **{"enable.idempotence": True})
    assert read(ours, "orders", 3) == ["a", "b", "c"]
    promote_link_away(ours)
    hanging.abort_transaction(30)


def promote_link_away(servers: str) -> None:
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.connection import Connection
    from barnabas.cli.mirror_requests import delete_link

    with Brokers(Connection(servers)) as brokers:
        delete_link(brokers, "link")


def test_leader_epochs_of_a_promoted_topic_are_above_those_of_the_source(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", ["a", "b"])
    source.kill()
    source.start()  # begins a leader epoch
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    before = leader_epoch(theirs, "orders")
    assert before > leader_epoch(ours, "orders")
    assert promote(ours, ["orders"])[0].source_leader_epoch == before
    assert leader_epoch(ours, "orders") > before
    with BlockingClient.to(ours) as client:  # a consumer that has read in the source's epoch asks for its end
        assert client.end_of_epoch("orders", 0, before) == 2


def leader_epoch(servers: str, topic: str) -> int:
    with BlockingClient.to(servers) as client:
        return client.topics_by_name([topic])[topic].partitions[0].leader_epoch


def test_producers_get_no_ids_that_the_copy_has(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(ours, "mine", ["x"], **{"enable.idempotence": True})  # the target has given ids already
    for number in range(3):
        write(theirs, "orders", [str(number)], **{"enable.idempotence": True})
    create_link(ours, theirs, topics="orders")
    wait_equal(theirs, ours, "orders")
    ready = promote(ours, ["orders"])
    assert ready[0].producer_id_end > 0
    for number in range(3):
        write(ours, "orders", [str(number)], **{"enable.idempotence": True})
    assert ends(ours, "orders") == {0: 6}


def test_a_copy_is_promoted_without_its_source(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", ["a"])
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    source.kill()
    with pytest.raises(Failure, match="--now"):
        promote(ours, ["orders"], wait_s=1)
    assert (found := status_of(ours, "orders")) is not None
    assert found.state == "promoting"
    promote(ours, ["orders"], now=True)
    write(ours, "orders", ["b"])
    assert read(ours, "orders", 2) == ["a", "b"]


def test_groups_go_on_where_they_were(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", map(str, range(10)))
    commit(theirs, "billing", "orders", 4)
    commit(theirs, "private", "orders", 5)
    create_link(ours, theirs, groups_exclude="priv.*", sync_group_offsets_interval_seconds="1")
    wait_equal(theirs, ours, "orders")
    wait_until(lambda: committed(ours, "billing", "orders") == 4, "the offset was not copied", within_s=30)
    commit(theirs, "billing", "orders", 6)
    wait_until(lambda: committed(ours, "billing", "orders") == 6, "the offset did not follow", within_s=30)
    assert committed(ours, "private", "orders") == OFFSET_INVALID
    promote(ours, ["orders"])
    commit(ours, "billing", "orders", 8)
    commit(theirs, "billing", "orders", 7)
    commit(theirs, "later", "orders", 1)
    create(theirs, "more")  # a copy of this link goes on
    commit(theirs, "later", "more", 0)
    wait_until(lambda: committed(ours, "later", "more") == 0, within_s=30)
    assert committed(ours, "billing", "orders") == 8
    assert committed(ours, "later", "orders") == OFFSET_INVALID


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_moves_to_the_target_with_its_group(source: Broker, target: Broker, protocol: str) -> None:
    """Also its stored text is there, and an offset that goes back in the source goes back here."""
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", map(str, range(10)))
    settings = {"group.id": "billing", "group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": theirs, **settings})
    consumer.subscribe(["orders"])
    assert (message := consumer.poll(30)) is not None
    assert message.value() == b"0"
    consumer.commit(offsets=[TopicPartition("orders", 0, 6, metadata="half past")], asynchronous=False)
    create_link(ours, theirs, sync_group_offsets_interval_seconds="1")
    wait_until(lambda: committed_with_text(ours, "billing", "orders") == (6, "half past"), "not copied", within_s=30)
    consumer.commit(offsets=[TopicPartition("orders", 0, 4)], asynchronous=False)
    consumer.close()
    wait_until(lambda: committed_with_text(ours, "billing", "orders") == (4, ""), "it did not go back", within_s=30)
    consumer = Consumer({"bootstrap.servers": ours, **settings})
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.value() == b"4"
    assert link(ours).not_followed == {}


def committed_with_text(servers: str, group: str, topic: str) -> tuple[int, str]:
    with BlockingClient.to(servers) as client:
        found = client.committed_offsets(group, [(topic, 0)])[topic, 0]
    return found.offset, found.metadata.rstrip("\0")  # librdkafka sends the end of its string too


def test_a_promotion_copies_the_offsets_of_groups_a_last_time(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "last")
    write(theirs, "last", map(str, range(10)))
    create_link(ours, theirs, topics="last", sync_group_offsets_interval_seconds="3600")
    wait_until(lambda: ends(ours, "last") == {0: 10}, within_s=30)
    commit(theirs, "late", "last", 7)
    promote(ours, ["last"])
    assert committed(ours, "late", "last") == 7


def test_a_group_with_members_here_keeps_its_offsets_and_is_told(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "followed")
    create(ours, "own")
    write(theirs, "followed", map(str, range(5)))
    consumer = Consumer({"bootstrap.servers": ours, "group.id": "busy", "session.timeout.ms": 6000})
    consumer.subscribe(["own"])
    wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment())
    create_link(ours, theirs, topics="followed", sync_group_offsets_interval_seconds="1")
    commit(theirs, "busy", "followed", 3)
    told = {"groups (busy)": "they have members here, and keep their own offsets"}
    wait_until(lambda: link(ours).not_followed == told, within_s=30)
    consumer.close()
    wait_until(lambda: committed(ours, "busy", "followed") == 3, within_s=30)
    wait_until(lambda: link(ours).not_followed == {}, within_s=30)
    assert link(ours).group_rounds[0] > 0


def test_a_group_that_is_deleted_in_the_source_stays(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", map(str, range(10)))
    commit(theirs, "billing", "orders", 4)
    create_link(ours, theirs, sync_group_offsets_interval_seconds="1")
    wait_until(lambda: committed(ours, "billing", "orders") == 4, "the offset was not copied", within_s=30)
    admin = AdminClient({"bootstrap.servers": theirs})
    admin.delete_consumer_groups(["billing"])["billing"].result(30)
    commit(theirs, "later", "orders", 1)
    wait_until(lambda: committed(ours, "later", "orders") == 1, within_s=30)  # a round after the deletion
    assert committed(ours, "billing", "orders") == 4


def test_a_topic_that_is_deleted_in_the_source_stays_here(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    for name in ("orders", "other"):
        create(theirs, name)
        write(theirs, name, ["a"])
    create_link(ours, theirs, refresh_topics_interval_seconds="1")
    wait_equal(theirs, ours, "orders")
    delete(theirs, "orders")
    wait_for_reason(ours, "orders", "was deleted in the source; its records stay here")
    assert (found := status_of(ours, "orders")) is not None
    assert found.state == "stopped"
    write(theirs, "other", ["b"])
    wait_equal(theirs, ours, "other")  # other topics go on
    assert read(ours, "orders", 1) == ["a"]
    promote(ours, ["orders"], now=True)
    write(ours, "orders", ["mine"])
    assert read(ours, "orders", 2) == ["a", "mine"]


def test_a_topic_that_may_not_be_described_is_not_taken_for_a_deleted_one(target: Broker) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    admin_users = {"authorizer.class.name": authorizer, "super.users": "User:admin"}
    with Broker(admin_users, users={"admin": "a", "mirror": "m"}) as source:
        theirs, ours = source.bootstrap_servers, target.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": theirs, **source.login("admin")})
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
        rights = [
            AclBinding(
                ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:mirror", "*", operation, AclPermissionType.ALLOW
            )
            for operation in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
        ]
        for made in admin.create_acls(rights).values():
            made.result(30)
        login = {key.replace(".", "_"): value for key, value in source.login("mirror").items()}
        create_link(ours, theirs, refresh_topics_interval_seconds="1", **login)
        wait_until(lambda: (found := status_of(ours, "orders")) is not None and found.lag == 0, "not copied", within_s=30)
        write(theirs, "orders", ["a"], **source.login("admin"))
        wait_until(lambda: ends(ours, "orders") == {0: 1}, "not copied", within_s=30)
        everything: Any = None
        wanted = AclBindingFilter(
            ResourceType.TOPIC, "orders", ResourcePatternType.ANY, everything, everything, AclOperation.ANY, AclPermissionType.ANY
        )
        for gone in admin.delete_acls([wanted]).values():
            gone.result(30)
        wait_for_reason(ours, "orders", "TOPIC_AUTHORIZATION_FAILED")
        assert (found := status_of(ours, "orders")) is not None
        assert found.state == "mirroring"
        for made in admin.create_acls(rights).values():
            made.result(30)
        write(theirs, "orders", ["b"], **source.login("admin"))
        wait_until(lambda: ends(ours, "orders") == {0: 2}, "it did not go on", within_s=30)
