"""The effect of paths that a watcher was notified of."""

from __future__ import annotations

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import MetadataImage
from barnabas.cluster.metadata.observation import observe
from barnabas.cluster.store.interface import ABSENT, Put
from barnabas.cluster.store.memory import MemoryStore
from barnabas.protocol.values import ResourceType

OF_ALL = (ResourceType.BROKER, "")


def test_a_parent_of_settings_is_not_the_settings_of_all_brokers() -> None:
    """ZooKeeper tells of nodes that it makes on the way, in events of their own that may come last."""
    store, settings = MemoryStore(), {"log.retention.ms": "7"}
    store.commit([Put(store_entries.config_path(OF_ALL), store_entries.encode(settings), ABSENT)])
    image = MetadataImage("")
    found = observe(store, image, {"/configs", "/configs/broker", store_entries.config_path(OF_ALL)})
    assert found.delta.configs == {OF_ALL: settings}
    image = image.apply(found.delta)
    assert observe(store, image, {"/configs", "/configs/broker"}).delta.configs == {}
    assert image.config(*OF_ALL) == settings
