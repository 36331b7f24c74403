"""A target of three brokers: each copies what it leads, and a leader that is killed is replaced without a gap or a repeated record."""

from __future__ import annotations

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.testing import Broker
from tests.server.mirroring.clusters import create_link, ends, leaders, link, promote, wait_equal, write
from tests.server.mirroring.user_quotas import limit, quotas
from tests.waiting import wait_until


def test_a_killed_leader_is_replaced_and_the_copy_stays_equal(source: Broker, three: list[Broker]) -> None:
    theirs = source.bootstrap_servers
    ours = ",".join(broker.bootstrap_servers for broker in three)
    with BlockingClient.to(theirs) as client:
        client.create_topics([NewTopic("orders", 6, 1)])
    write(theirs, "orders", map(str, range(1000)))
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    assert set(leaders(ours).values()) == {1, 2, 3}
    assert {(each.topic, each.partition) for each in link(ours).partitions} == {("orders", index) for index in range(6)}
    three[0].kill()
    rest = ",".join(broker.bootstrap_servers for broker in three[1:])
    write(theirs, "orders", map(str, range(1000, 2000)))
    wait_until(lambda: 1 not in leaders(rest).values(), "nobody took over", within_s=60)
    wait_equal(theirs, rest, "orders")
    three[0].start()
    write(theirs, "orders", map(str, range(2000, 2100)))
    wait_equal(theirs, ours, "orders")
    promote(rest, ["orders"])
    write(rest, "orders", map(str, range(5000, 5100)))
    assert sum(ends(rest, "orders").values()) == 2200


def test_another_controller_knows_what_the_link_has_made(source: Broker, three: list[Broker]) -> None:
    theirs = source.bootstrap_servers
    ours = ",".join(broker.bootstrap_servers for broker in three)
    for user in ("alice", "bob"):
        limit(theirs, user, 1000)
    limit(ours, "carol", 7)
    create_link(ours, theirs, sync_client_quotas_enabled="true", refresh_topics_interval_seconds="1")
    wait_until(lambda: quotas(ours) == {"alice": 1000, "bob": 1000, "carol": 7}, "the quotas were not copied", within_s=30)
    with BlockingClient.to(ours) as client:
        client.topics_by_name([])
        controller = client.cluster.controller_id
    three[controller - 1].kill()
    rest = ",".join(broker.bootstrap_servers for broker in three if broker is not three[controller - 1])
    limit(theirs, "bob", None)
    wait_until(lambda: quotas(rest) == {"alice": 1000, "carol": 7}, "the other controller did not remove it", within_s=60)
    assert quotas(theirs) == {"alice": 1000}
