"""A link with a limit on its bytes per second."""

from __future__ import annotations

from barnabas.testing import Broker
from tests.server.mirroring.clusters import create, create_link, ends, wait_equal, write
from tests.waiting import wait_until


def test_no_partition_waits_for_another_s_backlog(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "long")
    create(theirs, "short")
    write(theirs, "long", (str(number).zfill(1000) for number in range(2000)), **{"batch.size": 10_000})
    write(theirs, "short", ["x"])
    create_link(ours, theirs, io_max_bytes_per_second="200000")
    wait_until(lambda: ends(ours, "short") == {0: 1}, "the short topic waits", within_s=30)
    assert ends(ours, "long")[0] < 2000
    create_link(ours, theirs, io_max_bytes_per_second="100000000")
    wait_equal(theirs, ours, "long")
