"""From a broker alone to a cluster: everything comes along, once, however often it was begun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.cluster.membership.standalone_controller import StandaloneController
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration
from barnabas.cluster.offline import migration
from barnabas.cluster.offline.migration import ClusterExists, ForeignEntry, migrate
from barnabas.cluster.planning.instructions import Instruction
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import Operation, Put, StoreUnavailable
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from tests.cluster.members import Members


class Breaking(MemoryStore):
    """Its connection is lost at the commit it is told to."""

    def __init__(self, tree: MemoryTree, at: int) -> None:
        super().__init__(tree)
        self.at = at

    def commit(self, operations: Sequence[Operation]) -> int:
        self.at -= 1
        if self.at < 0:
            raise StoreUnavailable("gone")
        return super().commit(operations)


async def alone(folder: Path) -> None:
    """A broker that stood alone, with topics and settings."""
    config, _ = BrokerConfig.from_properties({"node.id": "1", "log.dirs": str(folder)})
    ids = iter(range(1, 100))
    broker = StandaloneController(EmbeddedStore(folder), config, new_id=lambda: UUID(int=next(ids)), cluster_id="grown")

    async def apply(_: Sequence[Instruction]) -> None:
        """There are no logs."""

    broker.start(BrokerRegistration(1, ()), apply)
    await broker.create_topics([NewTopic(f"t{n}", 300, 1, configs=[("retention.ms", "5")]) for n in range(3)])
    await broker.take_producer_ids()
    await broker.close()


@pytest.mark.parametrize("interrupted_at", [0, 1, 2, 5, 99])
async def test_everything_comes_along(tmp_path: Path, interrupted_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "COMMIT_OPERATIONS", 2)
    await alone(tmp_path)
    tree = MemoryTree()
    with MemoryStore(tree) as other:
        other.commit([Put("/topics/left-over", b"{}")])
    with EmbeddedStore(tmp_path) as source:
        if interrupted_at < 99:
            with pytest.raises(StoreUnavailable):
                migrate(source, Breaking(tree, interrupted_at))
            assert store_entries.CLUSTER not in tree.entries
        done = migrate(source, MemoryStore(tree))
        assert (done.cluster_id, done.topics, done.partitions) == ("grown", 3, 900)
        wanted = {e.path: e.value for e in source.list("/")}
        assert {path: entry.value for path, entry in tree.entries.items()} == wanted
        with pytest.raises(ClusterExists, match="grown"):
            migrate(source, MemoryStore(tree))


@pytest.mark.parametrize("foreign", ["/feature-flags", "/topics/left-over/more", "/brokers/ids", "/other/cluster"])
async def test_what_is_not_ours_is_named_and_nothing_is_changed(tmp_path: Path, foreign: str) -> None:
    await alone(tmp_path)
    tree = MemoryTree()
    with MemoryStore(tree) as other:
        other.commit([Put("/topics/left", b"{}"), Put(foreign, b"theirs"), Put("/zzz", b"theirs")])
    before = dict(tree.entries)
    with EmbeddedStore(tmp_path) as source, pytest.raises(ForeignEntry, match=foreign):
        migrate(source, MemoryStore(tree))
    assert tree.entries == before


async def test_the_broker_leads_in_its_cluster_in_new_epochs(tmp_path: Path) -> None:
    await alone(tmp_path)
    cluster = Members()
    with EmbeddedStore(tmp_path) as source:
        migrate(source, MemoryStore(cluster.tree))
    try:
        for broker_id in (1, 2):
            await cluster.start(broker_id)
        await cluster.until(cluster.is_settled)
        state = cluster.state("t0", 299)
        assert (state.leader, state.leader_epoch, state.replicas) == (1, 2, (1,))
        assert cluster.controller.member.topic_config("t0").retention_ms == 5
        assert (await cluster.nodes[2].member.take_producer_ids()).start == 1000
    finally:
        await cluster.__aexit__()
