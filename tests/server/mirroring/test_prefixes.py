"""Links in both directions, in chains and in circles: copies have names of their own, and no record is copied back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.errors import Failure
from barnabas.cli.mirror_requests import view
from barnabas.client.blocking import BlockingClient
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing import Broker
from tests.server.mirroring.clusters import commit, committed, create, create_link, ends, link, promote, records, write
from tests.waiting import wait_until

FAST = {"refresh_topics_interval_seconds": "1", "sync_group_offsets_interval_seconds": "1"}
CIRCLE = "a copy of one of this cluster, by the mirror link"


@pytest.fixture
def clusters() -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Broker()).bootstrap_servers for _ in range(3)]


def topics(servers: str) -> list[str]:
    with Connection(servers).wire() as wire:
        found = wire.request(MetadataRequest(topics=None, allow_auto_topic_creation=False)).topics
    return sorted(topic.name or "" for topic in found if not topic.is_internal)


def wait_for_topics(servers: str, *names: str) -> None:
    wait_until(lambda: topics(servers) == sorted(names), f"{names} of {topics(servers)}", within_s=30)


def refused(servers: str, name: str) -> dict[str, str]:
    with Brokers(Connection(servers)) as brokers:
        return view(brokers, name).refused


def settings_of(servers: str, topic: str) -> dict[str, str | None]:
    with BlockingClient.to(servers) as client:
        return client.describe_topic_config(topic, only_own=True)


def test_two_clusters_copy_each_other_s_topics(clusters: list[str]) -> None:
    a, b, _ = clusters
    for servers, value in ((a, "of a"), (b, "of b")):
        create(servers, "orders")
        write(servers, "orders", [value])
    create_link(a, b, name="from-b", cluster_link_prefix="b.", **FAST)
    create_link(b, a, name="from-a", cluster_link_prefix="a.", **FAST)
    wait_for_topics(a, "orders", "b.orders")
    wait_for_topics(b, "orders", "a.orders")
    wait_until(lambda: CIRCLE in refused(a, "from-b").get("b.a.orders", ""), str(refused(a, "from-b")), within_s=30)
    wait_until(lambda: CIRCLE in refused(b, "from-a").get("a.b.orders", ""), str(refused(b, "from-a")), within_s=30)
    wait_until(lambda: (ends(a, "b.orders"), ends(b, "a.orders")) == ({0: 1}, {0: 1}), "not copied", within_s=30)
    assert (records(a, "b.orders"), records(b, "a.orders")) == ([b"of b"], [b"of a"])
    assert topics(a) == ["b.orders", "orders"]
    assert topics(b) == ["a.orders", "orders"]
    with BlockingClient.to(b) as client:
        assert settings_of(a, "b.orders") == {
            "mirror.link": "from-b",
            "mirror.source.topic": "orders",
            "mirror.source.topic.id": str(client.topics_by_name(["orders"])["orders"].topic_id),
            "mirror.source.cluster.ids": client.cluster.cluster_id,
        }


def test_offsets_of_groups_get_the_names_of_the_copies(clusters: list[str]) -> None:
    a, b, _ = clusters
    create(b, "orders")
    create(a, "orders")
    write(b, "orders", map(str, range(10)))
    commit(b, "billing", "orders", 4)
    create_link(a, b, cluster_link_prefix="b.", **FAST)
    wait_until(lambda: committed(a, "billing", "b.orders") == 4, "the offset was not copied", within_s=30)
    assert committed(a, "billing", "orders") < 0


def test_a_chain_is_copied_and_a_circle_is_not(clusters: list[str]) -> None:
    a, b, c = clusters
    create(a, "orders")
    write(a, "orders", ["x"])
    create_link(b, a, name="from-a", cluster_link_prefix="a.", **FAST)
    wait_for_topics(b, "a.orders")
    create_link(c, b, name="from-b", cluster_link_prefix="b.", **FAST)
    wait_for_topics(c, "b.a.orders")
    create_link(a, c, name="from-c", cluster_link_prefix="c.", **FAST)
    wait_until(lambda: CIRCLE in refused(a, "from-c").get("c.b.a.orders", ""), "the circle was not refused", within_s=30)
    wait_until(lambda: ends(c, "b.a.orders") == {0: 1}, "the chain was not copied", within_s=30)
    assert records(c, "b.a.orders") == [b"x"]
    assert topics(a) == ["orders"]


def test_links_in_both_directions_without_a_prefix_are_refused_for_the_same_topic(clusters: list[str]) -> None:
    a, b, _ = clusters
    create(a, "orders")
    create(b, "payments")
    create_link(b, a, name="from-a", **FAST)
    wait_for_topics(b, "orders", "payments")
    create_link(a, b, name="from-b", **FAST)
    wait_for_topics(a, "orders", "payments")  # other topics are copied
    wait_until(lambda: CIRCLE in refused(a, "from-b").get("orders", ""), str(refused(a, "from-b")), within_s=30)
    wait_until(lambda: CIRCLE in refused(b, "from-a").get("payments", ""), str(refused(b, "from-a")), within_s=30)
    assert "mirror.link" not in settings_of(a, "orders")


def test_a_link_to_the_cluster_itself_is_refused(clusters: list[str]) -> None:
    a, *_ = clusters
    create(a, "orders")
    create_link(a, a, cluster_link_prefix="a.", **FAST)
    wait_until(lambda: "the source is this cluster itself" in "".join(link(a).errors), "it was not refused", within_s=30)
    assert topics(a) == ["orders"]


def test_a_prefix_stays(clusters: list[str]) -> None:
    a, b, _ = clusters
    create_link(a, b, cluster_link_prefix="b.")
    with pytest.raises(Failure, match="cannot be changed"):
        create_link(a, b, cluster_link_prefix="c.")
    assert link(a).settings["cluster.link.prefix"] == "b."


def test_a_copy_with_another_name_is_promoted(clusters: list[str]) -> None:
    a, b, _ = clusters
    create(b, "orders")
    write(b, "orders", ["x"])
    create_link(a, b, cluster_link_prefix="b.", **FAST)
    wait_until(lambda: ends(a, "b.orders") == {0: 1}, "not copied", within_s=30)
    promote(a, ["b.orders"])
    write(a, "b.orders", ["y"])
    assert records(a, "b.orders")[0] == b"x"
    assert ends(a, "b.orders") == {0: 2}
    assert "mirror.source.cluster.ids" not in settings_of(a, "b.orders")
