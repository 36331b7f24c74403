"""For tests of links: requests without the command line, and a comparison of all batches of a topic."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli import mirror_requests
from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.mirror_failback import Failback, LostPart
from barnabas.cli.mirror_requests import LinkView, alter_link, promote_copies, view
from barnabas.cli.resources import Change, Operation
from barnabas.client.blocking import BlockingClient
from barnabas.mirror.status import PartitionStatus
from barnabas.protocol.records.batch import iterate_records, split_batches
from tests.waiting import wait_until

EPOCH_BYTES = slice(12, 16)
LINK = "link"


def create_link(target: str, source: str, *, name: str = LINK, **settings: str) -> None:
    named = {"bootstrap.servers": source, **{key.replace("_", "."): value for key, value in settings.items()}}
    with Connection(target).wire() as wire:
        alter_link(wire, name, [Change(key, Operation.SET, value) for key, value in named.items()])


def set_paused(target: str, *, paused: bool) -> None:
    with Connection(target).wire() as wire:
        alter_link(wire, LINK, [Change("paused", Operation.SET, str(paused).lower())])


def delete_link(target: str) -> None:
    with Brokers(Connection(target)) as brokers:
        mirror_requests.delete_link(brokers, LINK)


def link(target: str) -> LinkView:
    with Brokers(Connection(target)) as brokers:
        return view(brokers, LINK)


def status_of(target: str, topic: str, partition: int = 0) -> PartitionStatus | None:
    return next((each for each in link(target).partitions if (each.topic, each.partition) == (topic, partition)), None)


def wait_for_reason(target: str, topic: str, reason: str) -> None:
    wait_until(lambda: (found := status_of(target, topic)) is not None and reason in found.reason, f"{reason!r} was not told")


def promote(target: str, topics: list[str], *, now: bool = False, wait_s: float = 30, link: str = LINK) -> list[PartitionStatus]:
    with Brokers(Connection(target)) as brokers:
        promoted = promote_copies(brokers, link, topics, now=now, wait_s=wait_s)
    assert promoted.has_groups
    return promoted.partitions


def batches(servers: str, topic: str) -> dict[tuple[int, int], bytes]:
    """The bytes of each batch without its leader epoch, by partition and base offset."""
    found = {}
    with BlockingClient.to(servers) as client:
        for partition in client.topics_by_name([topic])[topic].partitions:
            offset = client.list_offsets({(topic, partition): -2})[topic, partition].offset
            end = client.list_offsets({(topic, partition): -1})[topic, partition].offset
            while offset < end:
                records = bytes(client.fetch(topic, partition, offset).records)
                for position, header in split_batches(records):
                    batch = bytearray(records[position : position + header.size])
                    batch[EPOCH_BYTES] = b"\0" * 4
                    found[partition, header.base_offset] = bytes(batch)
                    offset = header.last_offset + 1
    return found


def ends(servers: str, topic: str) -> dict[int, int]:
    """The end offset of each partition; none if there is no such topic."""
    with BlockingClient.to(servers) as client:
        found = client.topics_by_name([topic]).get(topic)
        if found is None:
            return {}
        offsets = client.list_offsets({(topic, partition): -1 for partition in found.partitions})
        return {partition: offset.offset for (_, partition), offset in offsets.items()}


def leaders(servers: str, topic: str = "orders") -> dict[int, int]:
    """The leader of each partition."""
    with BlockingClient.to(servers) as client:
        return {each.index: each.leader for each in client.topics_by_name([topic])[topic].partitions.values()}


def wait_equal(source: str, target: str, topic: str) -> None:
    """Wait until the copy has everything, and compare it batch by batch."""
    wanted = ends(source, topic)
    wait_until(lambda: ends(target, topic) == wanted, f"{topic} is not copied", within_s=30)
    theirs, ours = batches(source, topic), batches(target, topic)
    assert theirs.keys() == ours.keys()
    assert [at for at in theirs if theirs[at] != ours[at]] == []


def write(servers: str, topic: str, values: Iterable[str | bytes], **settings: object) -> None:
    """Write records, with their values as keys; each must be acknowledged."""
    failures = []
    producer = Producer({"bootstrap.servers": servers, **settings})
    for value in values:
        producer.produce(topic, value, key=value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(30) == 0
    assert failures == []


def records(servers: str, topic: str) -> list[bytes]:
    """The values of partition 0."""
    with BlockingClient.to(servers) as client:
        data = client.fetch(topic, 0, 0).records
        return [bytes(each.value or b"") for each in iterate_records(data)]


def create(servers: str, name: str, partitions: int = 1, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, partitions, config=settings)])[name].result()


def write_in_transaction(servers: str, topic: str, value: str, *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"t-{value}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value.encode(), partition=0)
    producer.flush(30)
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def commit(servers: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(servers: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    return int(found.offset)


def open_transaction(servers: str, topic: str, value: str) -> Producer:
    """A producer with a record in a transaction that is not ended."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"t-{value}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value.encode(), partition=0)
    producer.flush(30)
    return producer


def failback(servers: str, topics: list[str], link: str = "back", wait_s: float = 30) -> list[LostPart]:
    with Failback(Connection(servers), link, wait_s, print) as run:
        wanted = run.inspect(topics, only_promoted=False)
        parts = run.compare(wanted)
        run.save(parts)
        run.move_groups_back(parts)
        run.cut(wanted)
    return parts
