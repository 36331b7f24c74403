"""Failing over to the copy, and failing back: the old site keeps what both have, saves the rest, and follows."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.cli.connection import Connection
from barnabas.cli.errors import Failure
from barnabas.cli.mirror_failback import Failback
from barnabas.testing import Broker
from tests.server.mirroring.clusters import (
    batches,
    commit,
    committed,
    create,
    create_link,
    ends,
    failback,
    open_transaction,
    promote,
    wait_equal,
    write,
    write_in_transaction,
)
from tests.waiting import wait_until


def values(servers: str, topic: str, *, committed_only: bool = True) -> list[tuple[int, bytes | None, dict[str, bytes]]]:
    """Partition, value and headers of each record."""
    level = "read_committed" if committed_only else "read_uncommitted"
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": level, "enable.partition.eof": True}
    )
    partitions = ends(servers, topic)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found, left = [], len(partitions)
    while left:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            left -= 1
        else:
            headers = {each[0]: each[1] for each in message.headers() or [] if isinstance(each[1], bytes)}
            found.append((message.partition() or 0, message.value(), headers))
    consumer.close()
    return found


def test_the_old_site_follows_after_what_it_has_alone_was_saved(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders", 2)
    write(theirs, "orders", (str(number) for number in range(200)))
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    copied = ends(ours, "orders")
    commit(theirs, "billing", "orders", copied[0])
    source.kill()
    promote(ours, ["orders"], now=True)
    write(ours, "orders", (f"over-{number}" for number in range(100)))
    source.start()
    write(theirs, "orders", (f"late-{number}" for number in range(50)))  # writers of the old site that nobody stopped
    commit(theirs, "stray", "orders", ends(theirs, "orders")[0])
    late = ends(theirs, "orders")
    create_link(theirs, ours, name="back", topics="orders")
    parts = failback(theirs, ["orders"])
    assert {part.partition: (part.common, part.end, part.records) for part in parts} == {
        index: (copied[index], late[index], late[index] - copied[index]) for index in copied
    }
    wait_equal(ours, theirs, "orders")
    saved = values(theirs, parts[0].saved_in)
    assert sorted(value or b"" for _, value, _ in saved) == sorted(f"late-{number}".encode() for number in range(50))
    origins = {(partition, int(headers["mirror.origin.offset"])) for partition, _, headers in saved}
    assert origins == {(index, offset) for index in copied for offset in range(copied[index], late[index])}
    assert committed(theirs, "stray", "orders") == copied[0]
    assert committed(theirs, "billing", "orders") == copied[0]
    with pytest.raises(AssertionError):
        write(theirs, "orders", ["refused"])


def test_a_cycle_over_both_sites_ends_in_equal_logs(source: Broker, target: Broker) -> None:
    """Transactions and idempotent producers on the way there, on the way back, and there again."""
    first, second = source.bootstrap_servers, target.bootstrap_servers
    create(first, "orders")
    write_in_transaction(first, "orders", "kept", commit=True)
    hanging = open_transaction(first, "orders", "hanging")
    create_link(second, first)
    wait_equal(first, second, "orders")
    promote(second, ["orders"])
    hanging.commit_transaction(30)  # committed at the old site only
    write(second, "orders", ["a", "b"], **{"enable.idempotence": True})
    write_in_transaction(second, "orders", "there", commit=True)
    create_link(first, second, name="back", topics="orders")
    (part,) = failback(first, ["orders"])
    assert part.records == 1  # of the transaction that the other site has aborted
    wait_equal(second, first, "orders")
    promote(first, ["orders"], link="back")
    write(first, "orders", ["c"], **{"enable.idempotence": True})
    write_in_transaction(first, "orders", "dropped", commit=False)
    (part,) = failback(second, ["orders"], link="link")
    assert (part.common, part.records) == (part.end, 0)
    wait_equal(first, second, "orders")
    promote(second, ["orders"])
    write_in_transaction(second, "orders", "again", commit=True)
    failback(first, ["orders"])
    wait_equal(second, first, "orders")
    found = [value for _, value, _ in values(first, "orders")]
    assert found == [b"kept", b"a", b"b", b"there", b"c", b"again"]
    assert batches(first, "orders") == batches(second, "orders")


def test_nothing_changes_at_a_dry_run(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", ["a"])
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    promote(ours, ["orders"])
    write(theirs, "orders", ["b"])
    create_link(theirs, ours, name="back", topics="orders")
    with Failback(Connection(theirs), "back", 30, print) as run:
        assert run.inspect(["orders"], only_promoted=False) == ["orders"]
        write(theirs, "orders", ["c"])
        (part,) = run.beyond(["orders"])
        run.detach(["orders"])
    assert (part.common, part.end, part.records) == (1, 3, None)
    write(theirs, "orders", ["d"])
    assert ends(theirs, "orders") == {0: 4}


def test_a_topic_that_was_not_copied_from_here_is_refused(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    create(ours, "orders")
    write(theirs, "orders", ["a"])
    create_link(theirs, ours, name="back", topics="orders|none")
    create(theirs, "none")
    for topic, reason in {"orders": "was not made as a copy of this one", "none": "the source has no topic of this name"}.items():
        with pytest.raises(Failure, match=reason):
            failback(theirs, [topic])
    write(theirs, "orders", ["b"])
    create_link(ours, theirs, topics="none")
    wait_until(lambda: ends(ours, "none") == {0: 0}, within_s=30)
    with pytest.raises(Failure, match="is a copy itself, of the mirror link link"):
        failback(theirs, ["none"])
    assert ends(theirs, "orders") == {0: 2}


def test_an_interrupted_failback_goes_on(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    write(theirs, "orders", map(str, range(20)))
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    promote(ours, ["orders"])
    write(ours, "orders", ["over"])
    write(theirs, "orders", map(str, range(30)))
    create_link(theirs, ours, name="back", topics="orders")
    with Failback(Connection(theirs), "back", 30, print) as run:
        run.inspect(["orders"], only_promoted=False)
    with Failback(Connection(theirs), "back", 30, print) as run:
        parts = run.compare(run.inspect(["orders"], only_promoted=False))
        run.save(parts)
    source.kill()
    source.start()
    (part,) = failback(theirs, ["orders"])
    assert (part.records, part.saved_in) == (30, parts[0].saved_in)
    assert ends(theirs, part.saved_in) == {0: 30}  # saved once
    wait_equal(ours, theirs, "orders")
    assert failback(theirs, ["orders"]) == []
