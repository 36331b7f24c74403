"""A topic over the wire behaves as every source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from barnabas.client.config import ClientConfig
from barnabas.tables.client_source import ClientSource
from barnabas.testing import Broker
from tests.retention import NO_RETENTION_CHECKS
from tests.tables.sources import SourceConformance
from tests.tables.writing import BrokerWriter


class ClientHouse(BrokerWriter):
    """Topics of a broker, read over the wire."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._bootstrap_servers = bootstrap_servers

    def source(self, topic: str) -> ClientSource:
        return ClientSource(topic, ClientConfig.from_options({"bootstrap.servers": self._bootstrap_servers}))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(NO_RETENTION_CHECKS) as running:
        yield running


class TestClientSource(SourceConformance):
    @pytest.fixture
    def house(self, broker: Broker) -> Iterator[ClientHouse]:
        house = ClientHouse(broker.bootstrap_servers)
        yield house
        house.close()


def test_epochs_of_a_snapshot_come_from_the_leaders_and_not_from_old_metadata(broker: Broker) -> None:
    house = ClientHouse(broker.bootstrap_servers)
    topic = "with-epochs"
    house.create(topic)
    source = house.source(topic)
    epochs = source.snapshot().epochs
    (client,) = source._idle
    known = client.cluster.topics[topic]
    old = {index: replace(each, leader_epoch=-1) for index, each in known.partitions.items()}
    client.cluster.topics[topic] = replace(known, partitions=old)
    assert source.snapshot().epochs == epochs == dict.fromkeys(known.partitions, 0)
    source.close()
    house.close()
