"""A topic that was deleted stays deleted, whatever the moment of a crash."""

from __future__ import annotations

from uuid import uuid4

from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.config.broker import BrokerConfig
from barnabas.protocol.message import ZERO_UUID
from barnabas.testing import Broker


def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def test_a_crash_between_the_decision_and_the_folders_is_made_good_at_the_next_start() -> None:
    with Broker() as broker:
        client = admin(broker)
        for future in client.create_topics([NewTopic("kept", 1, 1), NewTopic("gone", 2, 1)]).values():
            future.result(10)
        broker.kill()
        store = EmbeddedStore(broker.data_dir)
        config, _ = BrokerConfig.from_properties({})
        _, plan = Controller(config, store.list("/"), new_id=uuid4).delete_topics([("gone", ZERO_UUID)])
        store.commit(plan.operations)
        store.close()
        assert (broker.data_dir / "gone-1").exists()

        broker.start()

        assert set(admin(broker).list_topics(timeout=10).topics) == {"kept"}
        assert [path.name for path in broker.data_dir.iterdir() if path.name.startswith("gone")] == []
        broker.stop()
        store = EmbeddedStore(broker.data_dir)
        assert list(store.list("/deleted-topics/")) == []
        store.close()


def test_a_log_that_no_topic_explains_is_left_alone() -> None:
    with Broker() as broker:
        client = admin(broker)
        client.create_topics([NewTopic("mine", 1, 1)])["mine"].result(10)
        broker.stop()
        (broker.data_dir / "mine-0").rename(broker.data_dir / "stranger-0")
        broker.start()
        assert (broker.data_dir / "stranger-0").exists()
        assert (broker.data_dir / "mine-0").exists()
        assert "event=unknown-log-left-alone" in broker.log
