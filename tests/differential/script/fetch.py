"""Fetch: every version, limits, sessions, epochs, waiting."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tests.differential.batch import Batch, Record, values
from tests.differential.script.common import fetch, produce
from tests.differential.talk import Talk
from tests.differential.wire import Line

VERSION = 11
BATCHES = [Batch(values("a", "b", "c")), Batch(values("d", "e")), Batch(values("f"))]
SIZES = [len(batch.to_bytes()) for batch in BATCHES]


def _filled(talk: Talk, suffix: str, partitions: int = 1) -> tuple[str, UUID]:
    topic = talk.create(suffix, partitions)
    for batch in BATCHES:
        talk.do(produce(topic, batch), 9)
    return topic, talk.wait_for_topic(topic, partitions)


def fetch_versions(talk: Talk) -> None:
    topic, topic_id = _filled(talk, "all", 2)
    for version in talk.versions_of("Fetch"):
        for offset in (0, 1, 3, 4, 5, 6, 7, -1):
            talk.ask(f"from {offset}", fetch(topic, offset, topic_id=topic_id), version)
        talk.ask("an empty partition", fetch(topic, 0, partition=1, topic_id=topic_id), version)
        talk.ask("an absent partition", fetch(topic, 0, partition=7, topic_id=topic_id), version)
        talk.ask("an absent topic", fetch(talk.name("absent"), 0, topic_id=UUID(int=4)), version)
        talk.ask("no topic id", fetch(topic, 0, topic_id=ZERO_UUID), version)
        talk.ask("read committed", fetch(topic, 0, topic_id=topic_id, isolation_level=1), version)
        talk.ask("isolation level 7", fetch(topic, 0, topic_id=topic_id, isolation_level=7), version)
        talk.ask("nothing", FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, session_epoch=-1), version)
        if version >= 9:
            for epoch in (0, 1, 5):
                talk.ask(f"leader epoch {epoch}", fetch(topic, 0, topic_id=topic_id, leader_epoch=epoch), version)
        if version >= 12:
            for epoch in (0, 3):
                request = fetch(topic, 2, topic_id=topic_id)
                request.topics[0].partitions[0].last_fetched_epoch = epoch
                talk.ask(f"last fetched epoch {epoch}", request, version)


def fetch_limits(talk: Talk) -> None:
    topic, topic_id = _filled(talk, "limits", 2)
    talk.do(produce(topic, Batch(values("other")), partition=1), 9)
    for limit in (-1, 0, 1, SIZES[0] - 1, SIZES[0], SIZES[0] + 1, SIZES[0] + SIZES[1], sum(SIZES), 10_000):
        for version in (4, 11, 17):
            talk.ask(f"partition limit {limit}", fetch(topic, topic_id=topic_id, partition_max_bytes=limit), version)
            talk.ask(f"limit {limit}", fetch(topic, topic_id=topic_id, max_bytes=limit), version)
        request = _of_two_partitions(topic, partition_max_bytes=1000, max_bytes=limit)
        talk.ask(f"limit {limit} for two partitions", request, VERSION)
        request = _of_two_partitions(topic, partition_max_bytes=limit, max_bytes=1000)
        talk.ask(f"partition limit {limit} for two partitions", request, VERSION)
    talk.ask("partition limit 1 in the middle", fetch(topic, 1, partition_max_bytes=1), VERSION)


def _of_two_partitions(topic: str, *, partition_max_bytes: int, max_bytes: int) -> FetchRequest:
    places = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=partition_max_bytes) for index in (0, 1)]
    request = fetch(topic, max_bytes=max_bytes)
    request.topics = [FetchTopic(topic=topic, partitions=places)]
    return request


def fetch_first_batch_larger_than_the_limit(talk: Talk) -> None:
    topic = talk.create("large")
    talk.do(produce(topic, Batch([Record(value=b"x" * 100_000)])), 9)
    talk.do(produce(topic, Batch(values("small"))), 9)
    for version in (4, 11):
        talk.ask("both limits at 1000", fetch(topic, max_bytes=1000, partition_max_bytes=1000), version)


def fetch_many_partitions(talk: Talk) -> None:
    topic, _ = _filled(talk, "many", 3)
    places = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in (2, 0, 1, 0, 9)]
    topics = [
        FetchTopic(topic=talk.name("absent"), partitions=[FetchPartition(partition=0, partition_max_bytes=1000)]),
        FetchTopic(topic=topic, partitions=places),
        FetchTopic(topic="a/b", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)]),
    ]
    for version in (4, 6, 11):
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000, session_epoch=-1, topics=topics)
        talk.ask("good and bad", request, version)


def fetch_waiting(talk: Talk) -> None:
    topic, _ = _filled(talk, "waits")
    talk.ask("nothing new within 100 ms", fetch(topic, 6, max_wait_ms=100, min_bytes=1), VERSION)
    talk.ask("not enough within 100 ms", fetch(topic, 5, max_wait_ms=100, min_bytes=100_000), VERSION)
    other = talk.connect()
    talk.line.send(fetch(topic, 6, max_wait_ms=20_000, min_bytes=1), VERSION)
    talk.do(produce(topic, Batch(values("new"))), 9, on=other)
    talk.hear("woken by a record", VERSION)
    for min_bytes in (0, -1):
        talk.ask(f"min bytes {min_bytes} does not wait", fetch(topic, 7, max_wait_ms=20_000, min_bytes=min_bytes), VERSION)
    talk.ask("an error does not wait", fetch(topic, 70, max_wait_ms=20_000, min_bytes=1), VERSION)
    talk.ask("an absent partition does not wait", fetch(topic, 0, partition=7, max_wait_ms=20_000, min_bytes=1), VERSION)


def fetch_by_replicas(talk: Talk) -> None:
    topic, topic_id = _filled(talk, "replica")
    for version in (11, 14):
        for replica_id in (talk.node_id, 99, -2, -3):
            request = fetch(topic, topic_id=topic_id)
            request.replica_id = replica_id
            talk.ask(f"replica {'itself' if replica_id == talk.node_id else replica_id}", request, version)
    request = fetch(topic, topic_id=topic_id)
    request.replica_state = ReplicaState(replica_id=99, replica_epoch=1)
    talk.ask("replica 99", request, 15)


def _session(talk: Talk, version: int, topic: str, topic_id: UUID) -> None:
    line = talk.connect()

    def ask(step: str, session: int, epoch: int, *places: FetchPartition, forget: tuple[int, ...] = ()) -> int:
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10_000, session_id=session, session_epoch=epoch)
        request.topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=list(places))] if places else []
        request.forgotten_topics_data = (
            [ForgottenTopic(topic=topic, topic_id=topic_id, partitions=list(forget))] if forget else []
        )
        answer = talk.ask(step, request, version, on=line)
        return int(answer.session_id)

    zero, one = (FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=10_000) for index in (0, 1))
    session = ask("full", 0, 0, zero, one)
    ask("nothing asked again", session, 1)
    talk.do(produce(topic, Batch(values(f"more-v{version}")), partition=1), 9)
    ask("what is new", session, 2)
    ask("one moved on", session, 3, FetchPartition(partition=0, fetch_offset=6, partition_max_bytes=10_000))
    ask("one forgotten", session, 4, forget=(1,))
    ask("one forgotten twice", session, 5, forget=(1, 7))
    ask("an absent partition added", session, 6, FetchPartition(partition=7, partition_max_bytes=10_000))
    ask("the absent partition again", session, 7)
    ask("an epoch left out", session, 9)
    ask("an old epoch", session, 3)
    ask("goes on after errors", session, 8)
    ask("an unknown session", 12345, 1)
    ask("an unknown session, epoch 0", 12345, 0, zero)
    ask("closed", session, -1)
    ask("after it was closed", session, 9)
    ask("no session at all", 0, -1, zero)


def fetch_sessions(talk: Talk) -> None:
    for version in talk.versions_of("Fetch"):
        if version >= 7:
            topic, topic_id = _filled(talk, f"session-v{version}", 2)
            _session(talk, version, topic, topic_id)


def fetch_session_of_a_topic_that_goes_and_comes(talk: Talk) -> None:
    topic, topic_id = _filled(talk, "comes-and-goes")
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)

    def ask(step: str, session: int, epoch: int, *topics: FetchTopic, on: Line) -> int:
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=10_000, session_id=session, session_epoch=epoch, topics=topics
        )
        return int(talk.ask(step, request, 13, on=on).session_id)

    line = talk.connect()
    session = ask("full", 0, 0, FetchTopic(topic_id=topic_id, partitions=[place]), on=line)
    talk.do(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 5)
    talk.settle()
    ask("after the deletion", session, 1, on=line)
    _filled(talk, "comes-and-goes")
    ask("after the creation of another one of that name", session, 2, on=line)
