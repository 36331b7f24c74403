"""Registrations: ids in use, epochs, a session that expired, what an entry holds."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.controller.registration import BrokerIdInUse, update
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, PartitionState, Topic
from barnabas.cluster.planning.plan import Versions
from barnabas.cluster.store.interface import Entry, StoreConflict, StoreUnavailable
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.protocol.values import NO_LEADER

ENDPOINT = Endpoint("PLAINTEXT", "host-1", 9092, "PLAINTEXT")


def registration(broker_id: int, incarnation: str) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id,
        (ENDPOINT,),
        "rack-1",
        incarnation=incarnation,
        log_dirs=(f"first-dir-of-{incarnation}", f"second-dir-of-{incarnation}"),
    )


def core(store: MemoryStore, broker_id: int, incarnation: str = "first") -> Controller:
    config, _ = BrokerConfig.from_properties({"node.id": str(broker_id)})
    return Controller(config, store.list("/"), new_id=lambda: UUID(int=1), alone=False, incarnation=incarnation)


def register(store: MemoryStore, broker_id: int, incarnation: str = "first") -> BrokerRegistration:
    """Plan on what is there, and commit."""
    controller = core(store, broker_id, incarnation)
    plan = controller.register(registration(broker_id, incarnation))
    store.commit(plan.operations)
    controller.committed(plan)
    entry = store.get(store_entries.broker_path(broker_id))
    assert entry is not None
    found = store_entries.decode_broker(entry)
    assert controller.image.brokers[broker_id] == found
    return found


def test_a_registration_says_who_and_where() -> None:
    with MemoryStore() as store:
        assert register(store, 1) == replace(registration(1, "first"), epoch=1, state=BrokerState.FENCED)


def test_a_registration_says_what_was_kept() -> None:
    for kept in Kept:
        found = replace(registration(1, "first"), kept=kept)
        assert store_entries.decode_broker(Entry(store_entries.broker_path(1), store_entries.encode_broker(found), 0)) == found
    before_it_was_said = store_entries.encode({"endpoints": [], "rack": None, "epoch": 1})
    assert store_entries.decode_broker(Entry(store_entries.broker_path(1), before_it_was_said, 0)).kept is Kept.ALL


def test_a_partition_is_read_as_it_was_written() -> None:
    usual = PartitionState(1, 5, (1, 2, 3), (1, 2), 8)
    lost = replace(usual, leader=NO_LEADER, is_lost=True)
    moving = replace(usual, adding=(3,), removing=(1,))
    states = (usual, replace(usual, eligible=(3,)), moving, lost, replace(lost, adding=(3,)))
    ((_, value),) = store_entries.chunks_of(Topic("t", UUID(int=1), states))
    assert store_entries.decode_chunk(value) == states


def test_every_registration_has_an_epoch_of_its_own() -> None:
    tree = MemoryTree()
    with MemoryStore(tree) as one, MemoryStore(tree) as two:
        epochs = [register(one, 1).epoch, register(two, 2).epoch]
        one.expire()
        epochs.append(register(one, 1).epoch)
        assert epochs == [1, 2, 3]


def test_the_first_becomes_controller_the_second_does_not() -> None:
    tree = MemoryTree()
    with MemoryStore(tree) as one, MemoryStore(tree) as two:
        register(one, 1)
        register(two, 2)
        assert core(two, 2).image.controller_id == 1


def test_the_id_of_a_live_broker_is_refused_by_name() -> None:
    tree = MemoryTree()
    with MemoryStore(tree) as one, MemoryStore(tree) as two:
        register(one, 1)
        with pytest.raises(BrokerIdInUse, match=r"broker id 1 is in use by a live broker at host-1:9092 \(broker epoch 1\)"):
            register(two, 1, "second")
        one.expire()
        assert register(two, 1, "second").epoch == 2


def test_of_two_who_register_at_once_one_is_refused_by_the_store() -> None:
    tree = MemoryTree()
    with MemoryStore(tree) as one, MemoryStore(tree) as two:
        plans = [core(one, 1).register(registration(1, "a")), core(two, 1).register(registration(1, "b"))]
        one.commit(plans[0].operations)
        with pytest.raises(StoreConflict):
            two.commit(plans[1].operations)
        with pytest.raises(BrokerIdInUse):
            register(two, 1, "b")


def test_a_lost_answer_is_made_good_by_registering_again() -> None:
    with MemoryStore() as store:
        store.lose_next_reply(done=True)
        with pytest.raises(StoreUnavailable):
            register(store, 1)
        store.resume()
        assert register(store, 1).epoch == 2


def test_a_state_is_said_under_the_same_epoch() -> None:
    with MemoryStore() as store:
        found = register(store, 1)
        leaving = replace(found, state=BrokerState.SHUTTING_DOWN)
        versions = Versions(store.list("/"))
        store.commit(update(leaving, versions))
        entry = store.get(store_entries.broker_path(1))
        assert entry is not None
        assert store_entries.decode_broker(entry) == leaving
        store.expire()
        with pytest.raises(StoreConflict):
            store.commit(update(found, versions))
