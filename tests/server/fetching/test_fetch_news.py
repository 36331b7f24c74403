"""A fetch session answers what is new and looks at nothing else: beside fetches without a session, which look at everything."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from barnabas.protocol.codec import decode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.testing import Broker
from tests.server.transactions.test_add_partitions_to_txn import init, produced
from tests.server.wire import Line, batch_of

PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS = (0, 9), (1, 12), (19, 7), (20, 4), (21, 2)
PARTITIONS = 4
TOPICS = "ab"
Key = tuple[str, int]
Told = tuple[int, int, int, int]  # error code, high watermark, log start offset, bytes of records


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def create(line: Line, name: str, partitions: int = PARTITIONS) -> None:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]
    answer = line.ask(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
    assert answer.topics[0].error_code == 0


def delete(line: Line, name: str) -> None:
    answer = line.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), DeleteTopicsResponse)
    assert answer.responses[0].error_code == 0


def produce(line: Line, key: Key) -> int:
    """The offset that the record got, -1 if it got none."""
    data = [TopicProduceData(name=key[0], partition_data=[PartitionProduceData(index=key[1], records=batch_of(100))])]
    answer = line.ask(PRODUCE, ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), ProduceResponse)
    return answer.responses[0].partition_responses[0].base_offset


def delete_records(line: Line, key: Key) -> None:
    topics = [DeleteRecordsTopic(name=key[0], partitions=[DeleteRecordsPartition(partition_index=key[1], offset=-1)])]
    line.ask(DELETE_RECORDS, DeleteRecordsRequest(topics=topics, timeout_ms=1000), DeleteRecordsResponse)


def fetch_request(
    offsets: dict[Key, int],
    session_id: int = 0,
    epoch: int = -1,
    forgotten: tuple[Key, ...] = (),
    wait_ms: int = 0,
    max_bytes: int = 10**6,
) -> FetchRequest:
    topics = [
        FetchTopic(
            topic=topic,
            partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=10**6, current_leader_epoch=-1)],
        )
        for (topic, index), offset in offsets.items()
    ]
    dropped = [ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forgotten]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics,
        forgotten_topics_data=dropped,
        max_bytes=max_bytes,
    )


def answered(response: FetchResponse) -> dict[Key, Told]:
    return {
        (topic.topic, p.partition_index): (p.error_code, p.high_watermark, p.log_start_offset, len(p.records or b""))
        for topic in response.responses
        for p in topic.partitions
    }


class Follower:
    """A fetcher with a session, that checks each answer against what a fetch of everything says."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.offsets: dict[Key, int] = {}
        self.told: dict[Key, Told] = {}
        self.session_id = self.epoch = 0

    def begin(self, keys: list[Key]) -> None:
        self.offsets = dict.fromkeys(keys, 0)
        response = self.line.ask(FETCH, fetch_request(self.offsets, 0, 0), FetchResponse)
        self.session_id, self.epoch = response.session_id, 1
        self.told = answered(response)

    def poll(self, changes: dict[Key, int], forgotten: tuple[Key, ...]) -> tuple[dict[Key, Told], dict[Key, Told]]:
        """The answer of the session, and the news by a request for everything."""
        for key in forgotten:
            del self.offsets[key], self.told[key]
        self.offsets |= changes
        request = fetch_request(changes, self.session_id, self.epoch, forgotten)
        found = answered(self.line.ask(FETCH, request, FetchResponse))
        everything = answered(self.line.ask(FETCH, fetch_request(self.offsets), FetchResponse))
        expected = {key: now for key, now in everything.items() if now[0] or now[3] or now[:3] != self.told.get(key, (None,))[:3]}
        self.told |= found
        self.epoch += 1
        return found, expected


@pytest.mark.parametrize("seed", range(3))
def test_a_session_answers_what_is_new_and_only_that(broker: Broker, seed: int) -> None:
    choose = random.Random(seed)
    keys = [(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
    with Line(broker) as line:
        for topic in TOPICS:
            create(line, topic)
        follower = Follower(line)
        follower.begin(keys[:-1])
        for _ in range(150):
            for _ in range(choose.choice([0, 0, 1, 3])):
                produce(line, choose.choice(keys))
            if choose.random() < 0.15:
                delete_records(line, choose.choice(keys))
            if choose.random() < 0.03:
                delete(line, "b")
                found, expected = follower.poll({}, ())
                assert found == expected
                create(line, "b")
            changes = {key: told[1] for key, told in follower.told.items() if told[1] >= 0 and choose.random() < 0.5}
            changes = {key: offset for key, offset in changes.items() if offset != follower.offsets[key]}
            if choose.random() < 0.1:
                changes[choose.choice(keys)] = choose.choice([0, 0, 1])
            gone = [key for key in follower.offsets if key not in changes]
            forgotten = (choose.choice(gone),) if len(gone) > 1 and choose.random() < 0.05 else ()
            found, expected = follower.poll(changes, forgotten)
            assert found == expected
        for topic in TOPICS:
            delete(line, topic)


def test_a_waiting_session_is_woken_by_a_partition_that_it_did_not_look_at(broker: Broker) -> None:
    with Line(broker) as line, Line(broker) as other:
        create(line, "quiet", 20)
        session = line.ask(FETCH, fetch_request({("quiet", i): 0 for i in range(20)}, 0, 0), FetchResponse).session_id
        assert answered(line.ask(FETCH, fetch_request({}, session, 1), FetchResponse)) == {}
        started = time.monotonic()
        line.send(FETCH, fetch_request({}, session, 2, wait_ms=60_000))
        produce(other, ("quiet", 13))
        assert len(line.receive()) > 100
        assert time.monotonic() - started < 30
        delete(line, "quiet")


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_fetch_waits_for_what_is_there_whatever_else_is_not(broker: Broker, epoch: int) -> None:
    with Line(broker) as line, Line(broker) as other:
        create(line, "there", 1)
        line.send(FETCH, fetch_request({("there", 0): 0, ("missing", 0): 0}, 0, epoch, wait_ms=60_000))
        produce(other, ("there", 0))
        told = answered(decode(FetchResponse, FETCH[1], line.receive(), 5))
        assert {key: (code, size > 0) for key, (code, _, _, size) in told.items()} == {
            ("there", 0): (0, True),
            ("missing", 0): (3, False),
        }
        started = time.monotonic()
        assert (
            answered(line.ask(FETCH, fetch_request({("missing", 0): 0}, wait_ms=60_000), FetchResponse))[("missing", 0)][0] == 3
        )
        assert time.monotonic() - started < 30
        delete(line, "there")


def test_a_partition_at_an_open_transaction_does_not_rest_for_who_reads_it(broker: Broker) -> None:
    keys = [("first", 0), ("second", 0)]
    with Line(broker) as line:
        for name, _ in keys:
            create(line, name, 1)
        assert produced(line, "open", [("second", init(line, "open"))]) == [0]
        for _ in range(2):
            produce(line, keys[0])
        first = line.ask(FETCH, fetch_request(dict.fromkeys(keys, 0), 0, 0, max_bytes=10), FetchResponse)
        assert [key for key, told in answered(first).items() if told[3]] == [keys[0]]
        seen = []
        for epoch in (1, 2):
            found = answered(
                line.ask(FETCH, fetch_request({keys[0]: epoch}, first.session_id, epoch, max_bytes=10), FetchResponse)
            )
            seen += [key for key, told in found.items() if told[3]]
        assert sorted(seen) == keys
        for name, _ in keys:
            delete(line, name)


def test_a_closed_session_lets_its_waiting_fetch_go(broker: Broker) -> None:
    with Line(broker) as line:
        create(line, "left", 2)
        session = line.ask(FETCH, fetch_request({("left", 0): 0}, 0, 0), FetchResponse).session_id
        line.send(FETCH, fetch_request({}, session, 1, wait_ms=60_000), 1)
        line.send(FETCH, fetch_request({("left", 1): 0}, session, -1), 2)
        started = time.monotonic()
        assert [int.from_bytes(line.receive()[:4], "big") for _ in range(2)] == [1, 2]
        assert time.monotonic() - started < 30
        delete(line, "left")


def test_an_answer_without_room_leaves_the_rest_for_the_next_one(broker: Broker) -> None:
    with Line(broker) as line:
        create(line, "full", 3)
        keys = [("full", index) for index in range(3)]
        for key in keys:
            produce(line, key)
        first = line.ask(FETCH, fetch_request(dict.fromkeys(keys, 0), 0, 0, max_bytes=10), FetchResponse)
        seen = [key for key, told in answered(first).items() if told[3]]
        for epoch in (1, 2, 3):
            moved = {seen[-1]: 1} if len(seen) == epoch else {}
            found = answered(line.ask(FETCH, fetch_request(moved, first.session_id, epoch, max_bytes=10), FetchResponse))
            seen += [key for key, told in found.items() if told[3]]
        assert seen == keys
        delete(line, "full")
