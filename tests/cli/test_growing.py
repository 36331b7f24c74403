"""A broker alone becomes the first of a cluster, gets others beside it, and goes: records and all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.cluster.store.interface import Put
from barnabas.cluster.zookeeper.address import parse_address
from barnabas.cluster.zookeeper.store import ZooKeeperStore
from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.cli.conftest import Command, Ended
from tests.cluster.offline.test_migration import alone
from tests.waiting import wait_until


def broker(zookeeper: ZooKeeper, number: int, folder: Path) -> Broker:
    settings: dict[str, str | int | bool] = {
        "node.id": number,
        "zookeeper.connect": f"{zookeeper.hosts}/grown",
        "zookeeper.session.timeout.ms": 15_000,
    }
    return Broker(settings, data_dir=folder / f"broker-{number}")


@pytest.mark.timeout(300)  # many commands, one after another
def test_a_broker_grows_into_a_cluster_and_leaves_it(command: Command, shared_zookeeper: ZooKeeper, tmp_path: Path) -> None:
    folder = tmp_path / "broker-1"
    with Broker({"node.id": 1}, data_dir=folder) as alone:
        server = "--bootstrap-server", alone.bootstrap_servers
        assert command("topic", "create", "t", "-p", "4", *server).code == 0
        for first in (0, 50):  # check_throttle needs at least two batches in one partition
            lines = b"".join(b"%d\n" % n for n in range(first, first + 50))
            assert command("produce", "t", "-p", "0", *server, stdin=lines).code == 0
        address = f"{shared_zookeeper.address}/grown"
        running = command("cluster", "migrate", "--data-dir", str(folder), "--metadata", address)
        assert (running.code, "a broker is running" in running.err) == (2, True)
    assert command("cluster", "migrate", "--data-dir", str(folder), "--metadata", "nowhere").code == 2
    moved = command("cluster", "migrate", "--data-dir", str(folder), "--metadata", address)
    assert moved.code == 0, moved.err
    assert "copied 1 topics with 4 partitions" in moved.text
    again = command("cluster", "migrate", "--data-dir", str(folder), "--metadata", address)
    assert (again.code, "no metadata.db" in again.err) == (2, True)
    processes = [broker(shared_zookeeper, number, tmp_path) for number in (1, 2, 3)]
    with ThreadPoolExecutor(3) as threads:
        try:
            list(threads.map(Broker.start, processes))
            check_moves(command, processes)
        finally:
            list(threads.map(Broker.close, processes))


async def test_a_broker_does_not_grow_where_something_of_others_lies(
    command: Command, shared_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    await alone(tmp_path)
    address = f"{shared_zookeeper.address}/shared"
    flag = Put("/feature-flags/dark", b"on")
    with ZooKeeperStore(parse_address(address)) as store:
        store.commit([flag])
        refused = command("cluster", "migrate", "--data-dir", tmp_path, "--metadata", address)
        assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, b"", 1)
        assert flag.path in refused.err
        assert [(entry.path, entry.value) for entry in store.list("/")] == [(flag.path, flag.value)]
    assert command("cluster", "migrate", "--data-dir", tmp_path, "--metadata", f"{address}/barnabas").code == 0


async def test_the_metadata_of_an_earlier_time_is_not_written_over(command: Command, tmp_path: Path) -> None:
    await alone(tmp_path)
    (tmp_path / "metadata.db.migrated").write_bytes(b"earlier")
    refused = command("cluster", "migrate", "--data-dir", tmp_path, "--metadata", "zookeeper://127.0.0.1:1/unused")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "is there already" in refused.err
    assert (tmp_path / "metadata.db.migrated").read_bytes() == b"earlier"


def check_moves(command: Command, brokers: list[Broker]) -> None:
    server = "--bootstrap-server", ",".join(each.bootstrap_servers for each in brokers)

    def ask(*arguments: str) -> Ended:
        ended = command(*arguments, *server)
        assert ended.code == 0, ended.err
        return ended

    def replicas() -> dict[int, int]:
        return {each["id"]: each["replicas"] for each in ask("cluster", "describe", "--json").json["brokers"]}

    assert ask("topic", "reassign", "t", "-r", "2", "--plan", "--json").json["partitions"][0]["replicas"][0] == 1
    assert sum(replicas().values()) == 4
    assert "moved 4 partitions" in ask("topic", "reassign", "t", "-r", "2", "--throttle", "100000000").text
    check_throttle(ask)
    assert sum(replicas().values()) == 8
    assert "moved 4 partitions" in ask("broker", "drain", "1").text
    assert replicas() == {1: 0, 2: 4, 3: 4}
    assert "nothing is being moved" in ask("topic", "reassign", "--list").err
    ask("cluster", "balance")
    assert sorted(replicas().values()) == [2, 3, 3]
    # each partition has three replicas, which is enough
    ask("config", "alter", "topic", "t", "--set", "min.insync.replicas=3")
    assert ask("cluster", "describe", "--json").json["under_min_isr"] == []
    brokers[0].stop()
    wait_until(lambda: len(ask("cluster", "describe", "--json").json["under_min_isr"]) == 2)
    ask("config", "alter", "topic", "t", "--delete", "min.insync.replicas")
    assert "moved 2 partitions" in ask("broker", "drain", "1", "--throttle", "100000000").text
    for which in (("topic", "t"), ("broker", "2"), ("broker", "3")):
        assert "throttled" not in ask("config", "describe", *which).text
    ended = ask("cluster", "describe", "--json").json
    assert [each["id"] for each in ended["brokers"]] == [2, 3]
    assert (ended["leaderless"], ended["under_min_isr"], ended["down"]) == ([], [], [])
    assert sorted(map(int, ask("consume", "t", "--from", "earliest").lines)) == list(range(100))
    refused = command("broker", "drain", "2", *server)
    assert (refused.code, "needs more brokers" in refused.err) == (1, True)
    assert command("topic", "reassign", "t", "--brokers", "9", *server).code == 2
    assert command("topic", "reassign", "nope", *server).code == 1


def check_throttle(ask: Callable[..., Ended]) -> None:
    """It ended with the moves; one that nobody waited for ends with --watch, or is taken back with them.

    A byte in a second lets the first batch of partition 0 pass, and no second one for more than a minute: that move cannot end.
    """

    def throttled() -> tuple[int, int]:
        settings = (ask("config", "describe", *which).text for which in (("topic", "t"), ("broker", "1")))
        of_topic, of_broker = (text.count("throttled") for text in settings)
        return of_topic, of_broker

    assert throttled() == (0, 0)
    ask("topic", "reassign", "t", "-r", "3", "--throttle", "1", "--no-wait")
    assert throttled() == (2, 2)
    assert 0 in [move["partition"] for move in ask("topic", "reassign", "--list", "--json").json]
    assert ask("topic", "reassign", "t", "--cancel", "--json").json["cancelled"] > 0
    assert throttled() == (0, 0)
    assert "nothing is being moved" in ask("topic", "reassign", "--list").err
    ask("topic", "reassign", "t", "-r", "2")
    ask("topic", "reassign", "t", "-r", "3", "--throttle", "100000000", "--no-wait")
    assert throttled() == (2, 2)
    ask("topic", "reassign", "t", "--watch")
    assert throttled() == (0, 0)
    ask("topic", "reassign", "t", "-r", "2")
