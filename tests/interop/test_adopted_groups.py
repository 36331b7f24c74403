"""Groups of the consumer protocol that change the broker with their folder, in both directions: members and epochs come along."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import KafkaNode

from barnabas.cli.main import run
from barnabas.storage import checkpoints
from barnabas.testing import Broker
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
WAIT_S = 60
CONFIG = {"offsets.topic.num.partitions": "1"}
Groups = dict[str, tuple[str, list[tuple[str | None, int]]]]


def fill(servers: str) -> None:
    """A group with a static member that is away for now, one of a regular expression that is empty, and one that has been both types."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("t", 4, 1)])["t"].result(WAIT_S)
    for group, topic, instance, protocols in (
        ("static", "t", "i", ["consumer"]),
        ("pattern", "^t.*", None, ["consumer"]),
        ("both", "t", None, ["classic", "consumer"]),
    ):
        for protocol in protocols:
            static = {} if instance is None else {"group.instance.id": instance}
            consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "group.protocol": protocol, **static})
            consumer.subscribe([topic])

            def is_assigned(consumer: Consumer = consumer) -> bool:
                consumer.poll(0.1)
                return len(consumer.assignment()) == 4

            wait_until(is_assigned)
            consumer.close()


def seen(servers: str) -> Groups:
    """Type, and the members with how much they have, of every group."""
    admin = AdminClient({"bootstrap.servers": servers})
    found: Groups = {}

    def are_described() -> bool:
        for name, future in admin.describe_consumer_groups(["static", "pattern", "both"]).items():
            with suppress(KafkaException):  # the coordinator is still loading
                group = future.result(WAIT_S)
                members = [(m.group_instance_id, len(m.assignment.topic_partitions)) for m in group.members]
                found[name] = (group.type.name, members)
        return len(found) == 3

    wait_until(are_described)
    return found


def test_barnabas_goes_on_with_groups_of_kafka(tmp_path: Path) -> None:
    with KafkaNode(config=CONFIG, heap="512m", data_dir=tmp_path) as node:
        fill(node.bootstrap)
        before = seen(node.bootstrap)
    assert before["static"] == (ConsumerGroupType.CONSUMER.name, [("i", 4)])
    assert run(["broker", "adopt", "--data-dir", str(tmp_path)]) == 0
    with Broker(CONFIG, data_dir=tmp_path) as broker:
        assert seen(broker.bootstrap_servers) == before


def test_kafka_goes_on_with_groups_of_barnabas(tmp_path: Path) -> None:
    """Its topics have other ids, so members have nothing there that has a name; but the groups are read without a complaint."""
    ours, kafka = tmp_path / "ours", tmp_path / "kafka"
    with Broker(CONFIG, data_dir=ours) as broker:
        fill(broker.bootstrap_servers)
        before = seen(broker.bootstrap_servers)
    with KafkaNode(config=CONFIG, heap="512m", data_dir=kafka) as node:
        fill(node.bootstrap)
    place = kafka / "__consumer_offsets-0"
    metadata = (place / checkpoints.PARTITION_METADATA).read_bytes()
    shutil.rmtree(place)
    shutil.copytree(ours / "__consumer_offsets-0", place)
    (place / checkpoints.PARTITION_METADATA).write_bytes(metadata)
    with KafkaNode(config=CONFIG, heap="512m", data_dir=kafka) as node:
        after = seen(node.bootstrap)
        log = node.log
    assert {name: (kind, [instance for instance, _ in members]) for name, (kind, members) in after.items()} == {
        name: (kind, [instance for instance, _ in members]) for name, (kind, members) in before.items()
    }
    assert not re.search(r"ERROR.*GroupCoordinator|IllegalState", log), log[-3000:]
