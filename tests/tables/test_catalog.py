"""The topics that can be read as tables."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.protocol.values import NO_LEADER
from barnabas.tables import TableError
from barnabas.tables.catalog import Topic, topics_of_cluster, topics_of_folder
from barnabas.testing import Broker


def test_a_partition_without_a_leader_holds_up_no_other_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        with BlockingClient.to(broker.bootstrap_servers) as client:
            client.create_topics([NewTopic("led", 2, 1), NewTopic("left", 2, 1)])
        real = BlockingClient.topics

        def topics(client: BlockingClient) -> dict[str, Any]:
            found = real(client)
            partitions = {**found["left"].partitions, 1: replace(found["left"].partitions[1], leader=NO_LEADER)}
            return {**found, "left": replace(found["left"], partitions=partitions)}

        monkeypatch.setattr(BlockingClient, "topics", topics)
        found = topics_of_cluster({"bootstrap.servers": broker.bootstrap_servers})
        assert [each for each in found if not each.is_internal] == [Topic("led", 2, 0), Topic("left", 2, None)]
        assert [each for each in topics_of_folder(broker.data_dir) if not each.is_internal] == [
            Topic("led", 2, 0),
            Topic("left", 2, 0),
        ]
    with pytest.raises(TableError, match="there is no data folder"):
        topics_of_folder("/no such folder")
