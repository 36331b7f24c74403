"""The assumptions of the controller of several brokers: eligible replicas, and brokers that may have lost records."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerState, Kept
from barnabas.cluster.planning.alter_partition import InSyncChange
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.partitions import ElectionType, InSyncRequest
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import Put, StoreConflict
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import NO_LEADER, ResourceType
from tests.cluster.controller.controllers import Cluster, alter, code

UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def set_minimum(cluster: Cluster, kind: ResourceType, name: str, minimum: str | None) -> KafkaError | None:
    operation = AlterOperation.DELETE if minimum is None else AlterOperation.SET
    change = ResourceChange(kind, name, [("min.insync.replicas", operation, minimum)])
    (outcome,), plan = cluster.controller.core.alter_configs([change])
    cluster.controller.commit(plan)
    return outcome


@pytest.mark.parametrize(("minimum", "eligible"), [("1", ()), ("2", (2,)), ("3", (2,))])
def test_eligible_replicas_are_forgotten_when_the_minimum_lets_others_acknowledge(
    cluster: Cluster, minimum: str, eligible: tuple[int, ...]
) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2, 3))], configs=[("min.insync.replicas", "2")]))
    cluster.kill(3)
    cluster.kill(2)
    assert cluster.controller.state().eligible == (2,)
    cluster.check()
    assert set_minimum(cluster, ResourceType.TOPIC, "t", minimum) is None
    assert cluster.controller.state().eligible == eligible
    cluster.check()


@pytest.mark.parametrize(("minimum", "eligible"), [("1", ()), ("2", (2,)), ("3", (2,))])
def test_a_minimum_of_all_brokers_counts_for_topics_that_have_none_of_their_own(
    cluster: Cluster, minimum: str, eligible: tuple[int, ...]
) -> None:
    assert set_minimum(cluster, ResourceType.BROKER, "", "2") is None
    own = [("min.insync.replicas", "2")]
    cluster.create(NewTopic("t", assignments=[(0, (1, 2, 3))]), NewTopic("own", assignments=[(0, (1, 2, 3))], configs=own))
    cluster.kill(3)
    cluster.kill(2)
    assert set_minimum(cluster, ResourceType.BROKER, "", minimum) is None
    assert (cluster.controller.state().eligible, cluster.controller.state("own").eligible) == (eligible, (2,))
    assert set_minimum(cluster, ResourceType.TOPIC, "own", None) is None
    assert cluster.controller.state("own").eligible == eligible
    cluster.check()


def test_brokers_of_a_cluster_have_one_minimum(cluster: Cluster) -> None:
    """One that acknowledges with fewer than the controller knows of would lose records to an eligible replica."""
    node = cluster.controller
    node.commit(node.core.set_minimum())
    assert node.core.image.config(ResourceType.BROKER, "") == {"min.insync.replicas": "1"}
    assert node.core.set_minimum() == Plan()
    assert set_minimum(cluster, ResourceType.BROKER, "", "2") is None
    assert node.core.set_minimum() == Plan()
    for name, minimum in (("2", "1"), ("", None)):
        refused = set_minimum(cluster, ResourceType.BROKER, name, minimum)
        assert refused is not None
        assert refused.code is ErrorCode.INVALID_CONFIG
    assert node.core.image.config(ResourceType.BROKER, "") == {"min.insync.replicas": "2"}


def test_a_broker_that_may_have_lost_records_is_in_sync_nowhere_when_it_is_active(cluster: Cluster) -> None:
    synced = [("flush.messages", "1")]
    cluster.create(
        NewTopic("t", assignments=[(0, (3, 2, 1)), (1, (3,))]), NewTopic("s", assignments=[(0, (3, 2))], configs=synced)
    )
    cluster.kill(3)
    cluster.kill(2)  # s has no leader, and its in-sync set has broker 2
    cluster.restart(3, Kept.SYNCED)
    state = cluster.controller.state("t", 0)
    assert (state.leader, state.isr) == (1, (1,))
    state = cluster.controller.state("t", 1)
    assert (state.leader, state.isr, state.is_lost) == (3, (3,), False)  # broker 3 is the only replica
    cluster.restart(2, Kept.SYNCED)
    assert cluster.controller.state("s").leader == 2  # broker 2 kept all acknowledged records: s syncs each of them
    cluster.check()


def test_a_partition_whose_last_replica_in_sync_lost_records_waits_for_an_unclean_election(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (3, 2))]))
    cluster.kill(2)
    cluster.kill(3)
    cluster.restart(2)
    node = cluster.start(3, Kept.UNKNOWN)
    assert node.core.has_old_duties
    cluster.controller.settle()
    node.reload()
    assert not node.core.has_old_duties
    node.commit(node.core.change_own_state(BrokerState.ACTIVE))
    cluster.controller.settle()
    state = cluster.controller.state("t")
    assert (state.leader, state.isr, state.is_lost) == (NO_LEADER, (3,), True)
    cluster.check()
    cluster.kill(3)
    cluster.restart(3)  # broker 3 kept its log this time, but the partition stays lost
    assert cluster.controller.state("t").leader == NO_LEADER
    core = cluster.controller.core
    (outcome,), plan = core.elect_leaders(ElectionType.UNCLEAN, [("t", 0)])
    assert outcome.error is None
    cluster.controller.commit(plan)
    state = cluster.controller.state("t")
    assert (state.leader, state.isr, state.is_lost) == (3, (3,), False)
    cluster.check()


def test_nobody_comes_into_sync_that_has_begun_anew_unnoticed(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2))]))
    cluster.kill(2)
    cluster.restart(2)
    controller = cluster.controller
    state, young = controller.state("t"), controller.core.image.brokers
    assert state.isr == (1,)
    change = InSyncChange(state.leader_epoch, state.partition_epoch, ((1, young[1].epoch), (2, young[2].epoch)))
    request = InSyncRequest(controller.core.image.topics["t"].topic_id, 0, change)
    _, plan = controller.core.alter_partitions(1, young[1].epoch, [request])
    cluster.nodes.pop(2).store.close()
    cluster.start(2, Kept.UNKNOWN)
    with pytest.raises(StoreConflict) as caught:
        controller.commit(plan)
    assert caught.value.path == store_entries.BROKER_EPOCH


def test_a_broker_that_comes_back_unnoticed_leads_in_an_epoch_of_its_own(cluster: Cluster) -> None:
    """It died and registered again between two looks of the controller, whose partitions still count on its former self."""
    cluster.create(NewTopic("t", assignments=[(0, (2, 1)), (1, (2,))]))
    old = cluster.controller.core.image.brokers[2]
    cluster.nodes.pop(2).store.close()
    node = cluster.start(2)
    assert node.core.has_old_duties
    cluster.controller.settle()
    young = cluster.controller.core.image.brokers[2]
    assert young.epoch > old.epoch
    assert young.state is BrokerState.FENCED
    assert (cluster.controller.state("t", 0).leader, cluster.controller.state("t", 0).isr) == (1, (1,))
    assert (cluster.controller.state("t", 1).leader, cluster.controller.state("t", 1).isr) == (NO_LEADER, (2,))
    node.reload()
    assert not node.core.has_old_duties
    node.commit(node.core.change_own_state(BrokerState.ACTIVE))
    cluster.controller.settle()
    assert (cluster.controller.state("t", 1).leader, cluster.controller.state("t", 1).leader_epoch) == (2, 2)
    stale = InSyncChange(1, 1, ((1, 1), (2, old.epoch)))
    topic_id = cluster.controller.core.image.topics["t"].topic_id
    outcomes, _ = cluster.controller.core.alter_partitions(1, 1, [InSyncRequest(topic_id, 0, stale)])
    assert code(outcomes[0]) is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_is_gone_for_partitions_whose_log_is_on_a_disk_that_failed(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (2, 1, 3)), (1, (2, 1, 3)), (2, (2,))]))
    controller, second = cluster.controller, cluster.nodes[2]
    topic_id = controller.core.image.topics["t"].topic_id
    second.reload()
    second.commit(second.core.say_offline({topic_id: (0, 2), UUID(int=99): (5,)}))
    controller.settle()
    assert [(state.leader, state.isr) for state in controller.core.image.topics["t"].partitions] == [
        (1, (1, 3)),
        (2, (2, 1, 3)),
        (NO_LEADER, (2,)),  # only broker 2 has all acknowledged records
    ]
    assert code(alter(cluster, 1, 3, 2)) is ErrorCode.INELIGIBLE_REPLICA
    controller.commit(controller.core.balance_leaders(10)[1])
    assert controller.state("t", 0).leader == 1
    for kind, partition in ((ElectionType.PREFERRED, 0), (ElectionType.UNCLEAN, 2)):
        outcomes, _ = controller.core.elect_leaders(kind, [("t", partition)])
        assert outcomes[0].error is not None
    cluster.check()
    cluster.kill(2)
    cluster.restart(2, Kept.UNKNOWN)
    assert controller.state("t", 2).leader == 2  # broker 2 is the only replica
    assert code(alter(cluster, 1, 3, 2)) is None
    cluster.check()


@pytest.mark.parametrize(("kind", "name"), [(ResourceType.TOPIC, "t"), (ResourceType.BROKER, "")])
def test_an_unclean_election_that_settings_allow_is_held_at_once(cluster: Cluster, kind: ResourceType, name: str) -> None:
    cluster.create(
        NewTopic("t", assignments=[(0, (3, 2))]), NewTopic("other", assignments=[(0, (3, 2))], configs=[(UNCLEAN, "false")])
    )
    cluster.kill(2)
    cluster.kill(3)
    cluster.restart(2)
    controller = cluster.controller
    assert (controller.state("t").leader, controller.state("t").isr) == (NO_LEADER, (3,))
    assert not controller.core.is_unsettled
    (outcome,), plan = controller.core.alter_configs([ResourceChange(kind, name, [(UNCLEAN, AlterOperation.SET, "true")])])
    assert outcome is None
    controller.commit(plan)
    assert controller.core.is_unsettled
    controller.settle()
    assert (controller.state("t").leader, controller.state("t").isr) == (2, (2,))
    assert controller.state("other").leader == NO_LEADER
    cluster.check()


@pytest.mark.parametrize(("kind", "name"), [(ResourceType.TOPIC, "t"), (ResourceType.BROKER, "")])
def test_an_unclean_election_is_held_where_another_wrote_that_it_may_be(cluster: Cluster, kind: ResourceType, name: str) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (3, 2))]))
    cluster.kill(2)
    cluster.kill(3)
    cluster.restart(2)
    controller = cluster.controller
    path = store_entries.config_path((kind, name))
    controller.store.commit([Put(path, store_entries.encode({UNCLEAN: "true"}), controller.core.versions.expected(path))])
    controller.settle()
    assert controller.state("t").leader == 2
    cluster.check()
