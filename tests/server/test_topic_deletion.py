"""A topic that was deleted stays deleted, whatever the moment of a crash."""

from __future__ import annotations

from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.metadata.store_entries import deleted_topic_path, encode
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import Put
from barnabas.config.broker import BrokerConfig
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.storage.checkpoints import read_partition_metadata
from barnabas.storage.files import OsFiles
from barnabas.testing import Broker
from tests.waiting import WITHIN_S


def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def produce(broker: Broker, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce("t", value)
    assert producer.flush(WITHIN_S) == 0


def test_a_crash_between_the_decision_and_the_folders_is_made_good_at_the_next_start() -> None:
    with Broker() as broker:
        client = admin(broker)
        for future in client.create_topics([NewTopic("kept", 1, 1), NewTopic("gone", 2, 1)]).values():
            future.result(WITHIN_S)
        broker.kill()
        store = EmbeddedStore(broker.data_dir)
        config, _ = BrokerConfig.from_properties({})
        _, plan = Controller(config, store.list("/"), new_id=uuid4).delete_topics([("gone", ZERO_UUID)])
        store.commit(plan.operations)
        store.close()
        assert (broker.data_dir / "gone-1").exists()

        broker.start()

        assert set(admin(broker).list_topics(timeout=WITHIN_S).topics) == {"kept"}
        assert [path.name for path in broker.data_dir.iterdir() if path.name.startswith("gone")] == []
        broker.stop()
        store = EmbeddedStore(broker.data_dir)
        assert list(store.list("/deleted-topics/")) == []
        store.close()


def test_a_log_of_a_topic_that_was_deleted_goes_though_its_name_is_in_use_again() -> None:
    with Broker() as broker:
        client = admin(broker)
        client.create_topics([NewTopic("t", 1, 1)])["t"].result(WITHIN_S)
        produce(broker, b"deleted")
        topic_id = read_partition_metadata(OsFiles(), broker.data_dir / "t-0" / "partition.metadata")
        assert topic_id is not None
        broker.stop()
        saved = {path.name: path.read_bytes() for path in (broker.data_dir / "t-0").iterdir()}
        broker.start()
        client = admin(broker)
        client.delete_topics(["t"])["t"].result(WITHIN_S)
        client.create_topics([NewTopic("t", 1, 1)])["t"].result(WITHIN_S)
        broker.kill()
        for name, data in saved.items():  # as if a power failure had brought the folder back
            (broker.data_dir / "t-0" / name).write_bytes(data)
        store = EmbeddedStore(broker.data_dir)
        store.commit([Put(deleted_topic_path(topic_id), encode("t"))])
        store.close()

        broker.start()

        assert [path.name for path in broker.data_dir.glob("t-0*")] == ["t-0"]
        assert (broker.data_dir / "t-0" / f"{0:020d}.log").stat().st_size == 0


def test_a_log_that_older_metadata_does_not_know_is_set_aside() -> None:
    with Broker() as broker:
        client = admin(broker)
        client.create_topics([NewTopic("t", 1, 1)])["t"].result(WITHIN_S)
        broker.stop()
        saved = {path: path.read_bytes() for path in broker.data_dir.glob("metadata.db*")}
        broker.start()
        client = admin(broker)
        client.delete_topics(["t"])["t"].result(WITHIN_S)
        client.create_topics([NewTopic("t", 1, 1)])["t"].result(WITHIN_S)
        produce(broker, b"wanted")
        broker.stop()
        for path in broker.data_dir.glob("metadata.db*"):
            path.unlink()
        for path, data in saved.items():
            path.write_bytes(data)

        broker.start()

        (stray,) = broker.data_dir.glob("t-0.*-stray")
        assert b"wanted" in (stray / f"{0:020d}.log").read_bytes()
        assert f"event=log-set-aside directory={broker.data_dir / 't-0'} as={stray.name}" in broker.log
        produce(broker, b"of the older topic")


def test_a_log_that_no_topic_explains_is_left_alone() -> None:
    with Broker() as broker:
        client = admin(broker)
        client.create_topics([NewTopic("mine", 1, 1)])["mine"].result(WITHIN_S)
        broker.stop()
        (broker.data_dir / "mine-0").rename(broker.data_dir / "stranger-0")
        broker.start()
        assert (broker.data_dir / "stranger-0").exists()
        assert (broker.data_dir / "mine-0").exists()
        assert "event=unknown-log-left-alone" in broker.log
