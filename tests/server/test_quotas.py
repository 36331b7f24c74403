"""Quotas of clients at a real broker: a client over a quota gets the time to wait, and is not read meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.testing import Broker
from tests.server.quotas import METADATA, Client, fetched_bytes, produce_request, set_quota, set_quota_by
from tests.server.tls.test_sending import TlsLine
from tests.server.wire import Line, batch_of, create_topic, framed

BATCH = batch_of(10_000)
LARGE = batch_of(32_000)  # at 20 kB/s, with at most 1 s saved up, this costs a wait of 600 ms, however late it arrives
WITHIN_S = 30  # longer than any wait of a few seconds on a busy machine
TOPIC = "t"
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = (19, 7), (20, 6), (37, 3)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        create_topic(broker, TOPIC)
        yield broker


def ask_metadata(line: Line) -> MetadataResponse:
    return line.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse)


def test_a_producer_over_its_rate_is_told_to_wait_and_is_not_read(broker: Broker) -> None:
    set_quota(broker, {"client_id": "producer"}, producer_byte_rate=20_000.0)
    with Client(broker, "producer") as line, Client(broker, "other") as other:
        assert line.produce(TOPIC, BATCH).throttle_time_ms > 0, "a quarter of a window is there at first"
        began = time.monotonic()
        answer = line.produce(TOPIC, LARGE)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert answer.throttle_time_ms > 400
        assert other.produce(TOPIC, BATCH).throttle_time_ms == 0
        ask_metadata(line)  # the broker answers after the wait
        assert time.monotonic() - began > 0.5


def test_what_is_refused_for_its_acks_is_paid_too(broker: Broker) -> None:
    set_quota(broker, {"client_id": "acks"}, producer_byte_rate=20_000.0)
    with Client(broker, "acks") as line:
        answers = [line.produce(TOPIC, batch, acks=2) for batch in (BATCH, LARGE)]
        codes = [answer.responses[0].partition_responses[0].error_code for answer in answers]
        assert codes == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
        assert answers[1].throttle_time_ms > 400


@pytest.mark.parametrize("version", [8, 9])
def test_requests_that_are_known_are_paid_too(broker: Broker, version: int) -> None:
    set_quota(broker, {"client_id": f"known{version}"}, producer_byte_rate=100_000.0)
    with Client(broker, f"known{version}") as line:
        began = time.monotonic()
        for _ in range(3):  # the broker knows the template after three requests
            line.produce(TOPIC, batch_of(100), version=version)
        sizes = [5_000] * 19 + [60_000]  # the last batch is larger than any saved-up allowance
        requests = [((0, version), produce_request(TOPIC, batch_of(size))) for size in sizes]
        line.send_all(requests)  # one run, if the machine code is there
        told = [line.hear((0, version), ProduceResponse).throttle_time_ms for _ in sizes]
        ask_metadata(line)
        assert max(told) > 40, "5 kB at least"
        assert 1.2 < time.monotonic() - began < WITHIN_S, "155 kB, of which 25 kB need no wait"


@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_is_held_to_its_rate_by_waiting(broker: Broker, acks: int) -> None:
    set_quota(broker, {"client_id": f"steady{acks}"}, producer_byte_rate=100_000.0)
    with Client(broker, f"steady{acks}") as line:
        began = time.monotonic()
        for _ in range(16):
            line.produce(TOPIC, BATCH, acks)
        elapsed = time.monotonic() - began
        assert 1.1 < elapsed < WITHIN_S, "160 kB, of which the first 25 kB need no wait and the last is not waited for"


def test_a_producer_that_connects_anew_for_each_request_is_held_to_its_rate(broker: Broker) -> None:
    set_quota(broker, {"client_id": "anew"}, producer_byte_rate=100_000.0)
    began = time.monotonic()
    for _ in range(16):
        with Client(broker, "anew") as line:
            ask_metadata(line)
            assert line.produce(TOPIC, BATCH).responses[0].partition_responses[0].error_code == 0
    assert 1.1 < time.monotonic() - began < WITHIN_S, "as on one connection"


def test_so_are_many_that_connect_at_once(broker: Broker) -> None:
    set_quota(broker, {"client_id": "crowd"}, producer_byte_rate=100_000.0)
    with ThreadPoolExecutor(4) as threads:
        began = time.monotonic()

        def run(_: int) -> None:
            with Client(broker, "crowd") as line:
                line.produce(TOPIC, BATCH)

        list(threads.map(run, range(24)))
        assert 1.2 < time.monotonic() - began < WITHIN_S, "240 kB, of which what four send at once is not waited for"


def test_who_waits_on_a_new_connection_goes_on_when_the_quota_goes(broker: Broker) -> None:
    set_quota(broker, {"client_id": "debtor"}, producer_byte_rate=1.0)
    with Client(broker, "debtor") as line:
        assert line.produce(TOPIC, BATCH).throttle_time_ms > 1_000_000
    with Client(broker, "debtor") as line:
        ask_metadata(line)
        line.send((0, 9), produce_request(TOPIC, BATCH))
        set_quota(broker, {"client_id": "debtor"}, producer_byte_rate=None)
        assert line.hear((0, 9), ProduceResponse).throttle_time_ms == 0


def test_a_client_that_connects_anew_pays_for_time(broker: Broker) -> None:
    set_quota(broker, {"client_id": "slow"}, request_percentage=0.05)
    began = time.monotonic()
    told = 0
    while told < 1_500:
        with Client(broker, "slow") as line:
            told += ask_metadata(line).throttle_time_ms
    assert time.monotonic() - began > (told - 1_000) / 1000, "but for the last answer's, which is a window at most"


def test_an_older_client_that_connects_anew_waits_before_it_makes_topics(broker: Broker) -> None:
    set_quota(broker, {"client_id": "old-anew"}, controller_mutation_rate=5.0)
    began, told = time.monotonic(), 0
    for number in range(2):
        with Client(broker, "old-anew") as line:
            topic = CreatableTopic(name=f"anew{number}", num_partitions=65, replication_factor=1)
            answer = line.ask((19, 5), CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
            assert answer.topics[0].error_code == 0
            told = told or answer.throttle_time_ms
    assert told > 0
    assert time.monotonic() - began > told / 1000


def test_clients_of_one_user_share_his_quota(broker: Broker) -> None:
    set_quota(broker, {"user": "ANONYMOUS"}, producer_byte_rate=100_000.0)
    try:
        with ThreadPoolExecutor(4) as threads:
            began = time.monotonic()

            def run(number: int) -> None:
                with Client(broker, f"shared{number}") as line:
                    for _ in range(4):
                        line.produce(TOPIC, BATCH)
                    ask_metadata(line)

            list(threads.map(run, range(4)))
            assert 1.2 < time.monotonic() - began < WITHIN_S
    finally:
        set_quota(broker, {"user": "ANONYMOUS"}, producer_byte_rate=None)


def test_a_fetch_over_its_rate_is_answered_with_nothing_and_then_with_all(broker: Broker) -> None:
    create_topic(broker, "window")  # own topic: the first batch of another topic may be larger than a window allows
    with Client(broker, "writer") as line:
        for _ in range(2):
            line.produce("window", batch_of(60_000))
    set_quota(broker, {"client_id": "window"}, consumer_byte_rate=100_000.0)
    with Client(broker, "window") as line:
        assert 0 < fetched_bytes(line.fetch("window")) <= 100_000, "what a window allows"
    quota: dict[str, str | None] = {"client_id": "reader"}
    set_quota(broker, quota, consumer_byte_rate=1.0)  # only a change of the quota ends the wait, however slow the test is
    with Client(broker, "reader") as line:
        first = line.fetch("window")
        assert first.throttle_time_ms == 0
        size = fetched_bytes(first)
        assert size > 0
        second = line.fetch("window")
        assert fetched_bytes(second) == 0
        assert second.error_code == 0
        assert second.throttle_time_ms > 0
        set_quota(broker, quota, consumer_byte_rate=2.0)
        third = line.fetch("window")
        assert fetched_bytes(third) == size
        assert third.throttle_time_ms == 0


def test_a_session_does_not_begin_with_an_answer_that_tells_nothing(broker: Broker) -> None:
    create_topic(broker, "session")
    with Client(broker, "writer") as line:
        line.produce("session", BATCH)
    quota: dict[str, str | None] = {"client_id": "session"}
    set_quota(broker, quota, consumer_byte_rate=1.0)  # only a change of the quota ends the waits, however slow the test is
    with Client(broker, "session") as line:
        first = line.fetch("session", session=(0, 0))
        assert first.session_id
        put_off = line.fetch("session", session=(first.session_id, 1))
        assert put_off.session_id == first.session_id, "one that goes on does so"
        assert put_off.throttle_time_ms > 0
        set_quota(broker, quota, consumer_byte_rate=2.0)
        assert fetched_bytes(line.fetch("session", session=(first.session_id, 2))) > 0
        again = line.fetch("session", session=(0, 0))
        assert again.throttle_time_ms > 0
        assert again.session_id == 0
        set_quota(broker, quota, consumer_byte_rate=3.0)
        assert line.fetch("session", session=(0, 0)).session_id


def test_time_of_the_loop_is_paid_by_every_request(broker: Broker) -> None:
    set_quota(broker, {"client_id": "busy"}, request_percentage=0.01)
    with Client(broker, "busy") as line:
        told = [ask_metadata(line).throttle_time_ms for _ in range(3)]
        assert any(told), "3 requests take more than 25 us"
        assert max(told) <= 1_000, "a window at most"


def test_whoever_waits_goes_on_when_his_quota_goes(broker: Broker) -> None:
    set_quota(broker, {"client_id": "freed"}, producer_byte_rate=1.0)
    with Client(broker, "freed") as line:
        assert line.produce(TOPIC, BATCH).throttle_time_ms > 1_000_000
        set_quota(broker, {"client_id": "freed"}, producer_byte_rate=None)
        assert ask_metadata(line).brokers
        assert line.produce(TOPIC, BATCH).throttle_time_ms == 0


def test_a_wait_does_not_keep_the_connection_of_a_peer_that_is_gone() -> None:
    with Broker({"connections.max.idle.ms": 2_000}) as broker:
        create_topic(broker, TOPIC)
        set_quota(broker, {"client_id": "gone"}, producer_byte_rate=1.0)
        with Client(broker, "gone") as line:
            told = line.produce(TOPIC, BATCH).throttle_time_ms
            line.socket.shutdown(socket.SHUT_WR)
            assert line.is_closed()
        assert "reason=idle" in broker.log
        assert told > 5_000_000
        with Client(broker, "gone") as line:
            ask_metadata(line)  # costs nothing
            line.send((0, 9), produce_request(TOPIC, BATCH))
            assert line.is_closed(), "what is owed is owed: it waits longer than a connection may be silent"


def test_topics_that_cannot_be_paid_are_refused_to_who_understands_it(broker: Broker) -> None:
    set_quota(broker, {"client_id": "maker"}, controller_mutation_rate=0.5)  # 5.5 mutations are saved up
    with Client(broker, "maker") as line:
        topics = [CreatableTopic(name=f"paid{n}", num_partitions=4, replication_factor=1) for n in range(3)]
        topics.append(CreatableTopic(name="a/b", num_partitions=4, replication_factor=1))
        answer = line.ask(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("paid0", 0),
            ("paid1", 0),
            ("paid2", ErrorCode.THROTTLING_QUOTA_EXCEEDED),
            ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        assert 2_000 < answer.throttle_time_ms <= 5_000
        set_quota(broker, {"client_id": "maker"}, controller_mutation_rate=0.6)  # ends the wait, but the debt stays
        more = [CreatePartitionsTopic(name="paid0", count=5, assignments=None)]
        refused = line.ask(CREATE_PARTITIONS, CreatePartitionsRequest(topics=more, timeout_ms=10_000), CreatePartitionsResponse)
        assert refused.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.throttle_time_ms > 0
        set_quota(broker, {"client_id": "maker"}, controller_mutation_rate=0.5)
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="paid1")], timeout_ms=10_000)
        kept = line.ask(DELETE_TOPICS, gone, DeleteTopicsResponse)
        assert [(each.name, each.error_code) for each in kept.responses] == [("paid1", ErrorCode.THROTTLING_QUOTA_EXCEEDED)]


def test_topics_made_by_asking_for_them_are_paid_too(broker: Broker) -> None:
    set_quota(broker, {"client_id": "asker"}, controller_mutation_rate=0.1)  # 1.1 mutations are saved up
    names = ["asked0", "asked1", "a/b", "asked2"]
    with Client(broker, "asker") as line:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True)
        answer = line.ask(METADATA, request, MetadataResponse)
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert {topic.name: topic.error_code for topic in answer.topics} == dict(zip(names, [0, 0, invalid, unknown], strict=True))


def test_an_older_client_is_served_and_waits(broker: Broker) -> None:
    set_quota(broker, {"client_id": "old-maker"}, controller_mutation_rate=1.0)
    with Client(broker, "old-maker") as line:
        topics = [CreatableTopic(name=f"served{n}", num_partitions=6, replication_factor=1) for n in range(3)]
        answer = line.ask((19, 5), CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
        assert [topic.error_code for topic in answer.topics] == [0, 0, 0]
        assert 6_000 < answer.throttle_time_ms <= 7_000


def test_quotas_hold_after_a_restart() -> None:
    with Broker() as broker:
        create_topic(broker, TOPIC)
        set_quota(broker, {"client_id": "kept"}, producer_byte_rate=1_000.0)
        broker.stop()
        broker.start()
        with Client(broker, "kept") as line:
            assert line.produce(TOPIC, BATCH).throttle_time_ms > 5_000


def is_served(broker: Broker) -> bool:
    """Whether a connection that comes now is; else it is closed."""
    with Line(broker) as line:
        line.send(METADATA, MetadataRequest(topics=[]))
        try:
            return bool(line.receive())
        except (EOFError, ConnectionError):
            return False


def test_an_address_over_its_rate_is_held_and_closed() -> None:
    with Broker({"quota.window.num": 2}) as broker:
        set_quota(broker, {"ip": "127.0.0.1"}, connection_creation_rate=1.0)  # two connections are saved up
        began = time.monotonic()
        with Line(broker) as first:
            ask_metadata(first)
            served = 1
            while is_served(broker):  # the broker serves the second, and any that comes after its allowance has grown again
                served += 1
                assert time.monotonic() - began < WITHIN_S, "nobody is refused"
            assert served >= 2
            assert time.monotonic() - began > served - 1 - 0.1, "it was closed before there was room for one more"
            set_quota_by(first, {"ip": "127.0.0.1"}, connection_creation_rate=None)
        with Line(broker) as free:
            ask_metadata(free)


def test_connections_beyond_the_rate_of_a_listener_wait_their_turn() -> None:
    config: dict[str, str | int | bool] = {
        "listeners": "SLOW://127.0.0.1:0,FAST://127.0.0.1:0",
        "listener.security.protocol.map": "SLOW:PLAINTEXT,FAST:PLAINTEXT",
        "inter.broker.listener.name": "FAST",
        "listener.name.slow.max.connection.creation.rate": 5,
        "quota.window.num": 1,
    }
    with Broker(config) as broker:
        began = time.monotonic()
        for _ in range(8):
            with Line(broker) as line:
                ask_metadata(line)
        assert 0.4 < time.monotonic() - began < WITHIN_S, "what is left of five may come at once, then five in a second"


def test_members_of_a_group_share_its_quota() -> None:
    with Broker() as broker:
        create_topic(broker, TOPIC)
        with Client(broker, "writer") as line:
            line.produce(TOPIC, batch_of(80_000))
        quota: dict[str, str | None] = {"group": "readers"}
        set_quota(broker, quota, consumer_byte_rate=1.0)  # only a change of the quota ends the wait, however slow the test is
        member: dict[str, str | int | bool] = {
            "client.id": "reader",
            "group.id": "readers",
            "bootstrap.servers": broker.bootstrap_servers,
        }
        consumer = Consumer(member)
        consumer.subscribe([TOPIC])
        try:
            with Client(broker, "reader") as one, Client(broker, "reader") as other, Client(broker, "stranger") as stranger:
                deadline = time.monotonic() + WITHIN_S
                while not one.fetch(TOPIC).throttle_time_ms:  # until the group is stable and the broker knows its members
                    consumer.poll(0.05)
                    assert time.monotonic() < deadline
                assert other.fetch(TOPIC).throttle_time_ms > 0, "they share it"
                assert stranger.fetch(TOPIC).throttle_time_ms == 0
                assert fetched_bytes(stranger.fetch(TOPIC)) > 0
        finally:
            set_quota(broker, quota, consumer_byte_rate=None)  # the member leaves the group by a throttled connection
            consumer.close()


def test_quotas_hold_on_listeners_with_tls() -> None:
    config: dict[str, str | int | bool] = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.name.ssl.max.connection.creation.rate": 1,
        "quota.window.num": 1,
    }
    with Broker(config, tls=True) as broker, ExitStack() as stack:
        began = time.monotonic()
        line = stack.enter_context(TlsLine(broker))
        with TlsLine(broker) as waiting:
            frame = framed(METADATA, MetadataRequest(topics=[]))
            for start in range(0, len(frame), 5):  # the broker receives each piece before the next one
                waiting.socket.sendall(frame[start : start + 5])
                ask_metadata(line)
            assert waiting.receive()
            assert time.monotonic() - began > 0.5
        creation = CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC)], timeout_ms=1_000)
        line.ask(CREATE_TOPICS, creation, CreateTopicsResponse)
        set_quota_by(line, {"client_id": "limits"}, producer_byte_rate=20_000.0)
        began = time.monotonic()
        answer = line.ask((0, 9), produce_request(TOPIC, batch_of(20_000)), ProduceResponse)
        assert answer.throttle_time_ms > 600
        ask_metadata(line)
        assert time.monotonic() - began > 0.5
