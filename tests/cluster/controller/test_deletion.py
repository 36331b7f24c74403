"""Topics that are deleted while brokers are down."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import Entry
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from tests.cluster.controller.controllers import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_deletion_waits_for_brokers_that_are_down(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 3, 3))
    cluster.kill(3)
    core = cluster.controller.core
    topic_id = core.image.topics["t"].topic_id
    outcomes, plan = core.delete_topics([("t", ZERO_UUID)])
    assert outcomes[0].error is None
    cluster.controller.commit(plan)
    for broker_id, left in ((1, (2, 3)), (2, (3,))):
        node = cluster.nodes[broker_id]
        node.reload()
        node.commit(node.core.forget_deleted_topics())
        core.load(cluster.controller.store.list("/"))
        assert core.image.deletions == {topic_id: left}
    cluster.create(NewTopic("t", 1, 2))  # the name is free during the deletion
    cluster.check()
    cluster.restart(3)
    third = cluster.nodes[3]
    assert third.core.deleted_topics == {topic_id}
    third.commit(third.core.forget_deleted_topics())
    core.load(cluster.controller.store.list("/"))
    assert core.image.deletions == {}
    cluster.check()


@pytest.mark.parametrize("away", [None, 1, 2, 3])
def test_brokers_that_live_do_not_write_the_same_deletion_at_once(cluster: Cluster, away: int | None) -> None:
    cluster.create(*(NewTopic(f"t-{number}", 3, 2 + number % 2) for number in range(20)))
    if away is not None:
        cluster.kill(away)
    core = cluster.controller.core
    cluster.controller.commit(core.delete_topics([(name, ZERO_UUID) for name in core.image.topics])[1])
    for _ in cluster.nodes:
        for node in cluster.nodes.values():
            node.reload()
        for node, plan in [(node, node.core.forget_deleted_topics()) for node in cluster.nodes.values()]:
            node.commit(plan)  # the store would refuse a plan that is based on an older version
    core.load(cluster.controller.store.list("/"))
    assert {broker for left in core.image.deletions.values() for broker in left} == ({away} if away else set())
    cluster.check()


def test_a_broker_that_is_gone_for_good_is_waited_for_no_more(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 3))
    core = cluster.controller.core
    for broker_id, expected in ((3, ErrorCode.INVALID_REQUEST), (9, ErrorCode.BROKER_ID_NOT_REGISTERED)):
        with pytest.raises(KafkaError) as caught:
            core.unregister(broker_id)
        assert caught.value.code is expected
    cluster.kill(3)
    cluster.controller.commit(core.delete_topics([("t", ZERO_UUID)])[1])
    cluster.controller.commit(core.unregister(3))
    assert list(core.image.deletions.values()) == [(1, 2)]


def test_a_broker_without_replicas_is_known_until_it_is_unregistered(cluster: Cluster) -> None:
    core = cluster.controller.core
    for _ in range(2):
        cluster.kill(3)
        cluster.restart(3)
        with pytest.raises(KafkaError) as alive:
            core.unregister(3)
        assert alive.value.code is ErrorCode.INVALID_REQUEST
    cluster.kill(3)
    assert core.unregister(3) == Plan()
    with pytest.raises(KafkaError) as twice:
        core.unregister(3)
    assert twice.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_deletion_left_by_a_broker_without_a_cluster_is_anyones() -> None:
    path = store_entries.deleted_topic_path(UUID(int=9))
    config, _ = BrokerConfig.from_properties({"node.id": "4"})
    core = Controller(config, [Entry(path, store_entries.encode("orders"), 0)], new_id=UUID)
    assert core.deleted_topics == {UUID(int=9)}
    core.committed(core.forget_deleted_topics())
    assert core.deleted_topics == set()
