"""An old site of three brokers that fails back: all replicas are cut, also one that was away."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.testing import Broker
from tests.server.mirroring.clusters import create_link, ends, failback, leaders, promote, wait_equal, write
from tests.waiting import wait_until


def in_sync(servers: str) -> set[tuple[int, ...]]:
    found = AdminClient({"bootstrap.servers": servers}).list_topics("orders", timeout=30).topics["orders"]
    return {tuple(sorted(partition.isrs)) for partition in found.partitions.values()}


def test_all_replicas_of_the_old_site_are_cut(three: list[Broker], target: Broker) -> None:
    theirs, ours = ",".join(broker.bootstrap_servers for broker in three), target.bootstrap_servers
    with BlockingClient.to(theirs) as client:
        client.create_topics([NewTopic("orders", 4, 3)])
    write(theirs, "orders", map(str, range(1000)))
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    promote(ours, ["orders"])
    copied = ends(ours, "orders")
    write(ours, "orders", (f"over-{number}" for number in range(2000)))
    write(theirs, "orders", (f"late-{number}" for number in range(500)))
    # one replica has the records of the old site alone, and is away while the others are cut
    three[2].kill()
    rest = ",".join(broker.bootstrap_servers for broker in three[:2])
    wait_until(lambda: in_sync(rest) == {(1, 2)}, "the killed broker is still in sync", within_s=60)
    create_link(rest, ours, name="back", topics="orders")
    parts = failback(rest, ["orders"])
    assert {part.partition: part.common for part in parts} == copied
    assert sum(part.records or 0 for part in parts) == 500
    wait_equal(ours, rest, "orders")
    three[2].start()
    wait_until(lambda: in_sync(rest) == {(1, 2, 3)}, "the broker did not come back into sync", within_s=60)
    three[0].kill()
    left = ",".join(broker.bootstrap_servers for broker in three[1:])
    wait_until(lambda: in_sync(left) == {(2, 3)}, "the killed broker is still in sync", within_s=60)
    write(ours, "orders", (f"more-{number}" for number in range(100)))
    wait_equal(ours, left, "orders")
    three[1].kill()  # the replica that was away leads all partitions
    last = three[2].bootstrap_servers
    wait_until(lambda: set(leaders(last).values()) == {3}, "nobody took over", within_s=60)
    three[0].start()
    wait_equal(ours, f"{last},{three[0].bootstrap_servers}", "orders")
