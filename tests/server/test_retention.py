"""Expired records are deleted automatically, consumers get the log start offset, and changed settings apply at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count, pairwise

import pytest
from confluent_kafka import KafkaError, TopicPartition

from barnabas.testing import Broker
from tests.server.clients import ALL_BROKERS, BROKER, WAIT_S, Client, alter
from tests.waiting import wait_until

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
OFTEN: dict[str, str | int | bool] = {"log.retention.check.interval.ms": 30, "log.segment.delete.delay.ms": 0}
SMALL = {"internal_segment_bytes": "2000"}


def ago(ms: int) -> int:
    return int(time.time() * 1000) - ms


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(OFTEN) as running:
        yield running


@pytest.fixture
def client(shared: Broker, request: pytest.FixtureRequest) -> Client:
    """A topic named after the test; not created yet."""
    return Client(shared, request.node.name)


_numbers = count()


def still_starts_at(client: Client, offset: int) -> bool:
    """After rounds of retention that let another topic's records go, which is how one knows that there was a round."""
    marker = Client(client._broker, f"{client.topic}-marker-{next(_numbers)}").create()
    for _ in range(2):
        marker.produce(1, time_ms=1_000)
        wait_until(lambda: marker.bounds()[0] == marker.bounds()[1])
    return client.bounds()[0] == offset


def test_records_past_their_time_go_and_the_files_too(client: Client) -> None:
    client.create()
    client.produce(10, time_ms=1_000)
    wait_until(lambda: client.bounds() == (10, 10))
    wait_until(lambda: [path.name for path in client.folder.glob("*.log*")] == [f"{10:020d}.log"])

    client.alter({"retention.ms": "-1"})
    client.produce(1, time_ms=1_000)
    consumer = client.consumer("earliest")
    consumer.assign([TopicPartition(client.topic, 0, 0)])  # offset 0 is out of range
    message = consumer.poll(WAIT_S)
    assert message is not None
    assert (message.offset(), message.value()) == (10, b"0")
    consumer.close()


@pytest.mark.parametrize(("reset", "code", "offset"), [("error", KafkaError._AUTO_OFFSET_RESET, 0), ("earliest", None, 0)])
def test_a_consumer_behind_the_start_is_told(shared: Broker, reset: str, code: int | None, offset: int) -> None:
    client = Client(shared, f"behind-{reset}").create(**SMALL, retention_bytes="4000")
    client.produce(20, size=500)
    wait_until(lambda: client.bounds()[0] > 0)
    start, end = client.bounds()
    consumer = client.consumer(reset)
    consumer.assign([TopicPartition(client.topic, 0, offset)])
    message = consumer.poll(WAIT_S)
    assert message is not None
    error = message.error()
    assert (error.code() if error is not None else None) == code
    if error is None:
        at = message.offset()
        assert at is not None
        assert start <= at < end
    consumer.close()


def test_size_keeps_the_newest_segments_that_fill_it(client: Client) -> None:
    client.create(**SMALL, retention_bytes="6000")
    client.produce(40, size=400)
    wait_until(lambda: client.bounds()[0] > 0 and still_starts_at(client, client.bounds()[0]))
    sizes = [path.stat().st_size for path in sorted(client.folder.glob("*.log"))]
    assert sum(sizes) >= 6000 > sum(sizes[1:])


def test_the_empty_policy_and_minus_one_keep_for_ever(shared: Broker) -> None:
    kept = [
        Client(shared, "empty-policy").create(**SMALL, cleanup_policy="", retention_ms="1", retention_bytes="1"),
        Client(shared, "minus-one").create(**SMALL, retention_ms="-1", retention_bytes="-1"),
        Client(shared, "only-compact").create(
            **SMALL, cleanup_policy="compact", retention_ms="1", min_compaction_lag_ms=str(DAY_MS)
        ),
    ]
    for client in kept:
        assert client.produce(20, time_ms=1_000, size=300, key=b"k") == []
    assert all(still_starts_at(client, 0) for client in kept)
    assert all(client.bounds() == (0, 20) for client in kept)


@pytest.mark.parametrize(("policy", "refused"), [("", None), ("compact,delete", None), ("compact", KafkaError.POLICY_VIOLATION)])
def test_a_client_may_delete_where_not_all_is_kept_by_key(shared: Broker, policy: str, refused: int | None) -> None:
    client = Client(shared, f"delete-{policy.replace(',', '-')}").create(cleanup_policy=policy, retention_ms="-1")
    assert client.produce(5, key=b"k") == []
    (deleted,) = client.admin.delete_records([TopicPartition(client.topic, 0, 3)]).values()
    error = deleted.exception(WAIT_S)
    assert (error.args[0].code() if error is not None else None) == refused
    assert client.bounds() == (0 if refused else 3, 5)


def test_both_policies_together_delete_too(client: Client) -> None:
    client.create(cleanup_policy="compact,delete", retention_ms=str(HOUR_MS))
    assert client.produce(5, time_ms=ago(DAY_MS), key=b"k") == []
    wait_until(lambda: client.bounds() == (5, 5))


def test_a_record_from_the_future_keeps_its_segment_and_what_follows(client: Client) -> None:
    client.create(**SMALL, retention_ms=str(HOUR_MS), message_timestamp_after_max_ms=str(10 * DAY_MS))
    client.produce(1, time_ms=ago(-DAY_MS))
    client.produce(20, time_ms=ago(DAY_MS), size=300)
    assert len(client.files(".log")) > 2
    assert still_starts_at(client, 0)


def test_the_brokers_time_counts_where_the_topic_says_so(client: Client) -> None:
    client.create(message_timestamp_type="LogAppendTime", retention_ms=str(HOUR_MS))
    client.produce(5, time_ms=ago(10 * DAY_MS))
    assert still_starts_at(client, 0)


def test_segments_end_by_the_time_of_their_records_less_the_jitter() -> None:
    lengths = {}
    # A retention check would also roll segments by the clock, at any time. None runs in this hour.
    with Broker({"log.retention.check.interval.ms": HOUR_MS, "log.initial.task.delay.ms": HOUR_MS}) as broker:
        for name, jitter in (("plain", "0"), ("jittered", "9000")):
            client = Client(broker, f"roll-{name}").create(segment_ms="10000", segment_jitter_ms=jitter, retention_ms="-1")
            client.produce(200, time_ms=ago(DAY_MS), step_ms=1_000)
            bases = client.files(".log")
            lengths[name] = [following - base for base, following in pairwise(bases)]
    assert set(lengths["plain"]) == {11}
    assert max(lengths["jittered"]) <= 11
    assert len(lengths["jittered"]) > len(lengths["plain"])


def test_removed_segments_wait_under_another_name() -> None:
    with Broker({**OFTEN, "log.segment.delete.delay.ms": 600_000}) as broker:
        client = Client(broker, "t").create(**SMALL)
        client.produce(20, time_ms=1_000, size=500)
        wait_until(lambda: client.bounds() == (20, 20))
        wait_until(lambda: client.files(".log") == [20])
        assert client.files(".log.deleted")[0] == 0
        broker.kill()
        broker.start()
        assert client.files(".deleted") == []
        assert Client(broker, "t").bounds() == (20, 20)


@pytest.mark.parametrize(
    ("settings", "goes"),
    [
        ({"log.retention.hours": 1}, True),
        ({"log.retention.hours": 1, "log.retention.minutes": 300}, False),
        ({"log.retention.hours": 300, "log.retention.minutes": 60, "log.retention.ms": 5 * HOUR_MS}, False),
        ({"log.retention.hours": 300, "log.retention.minutes": 300, "log.retention.ms": 60_000}, True),
        ({"log.retention.hours": -1}, False),
    ],
)
def test_the_finer_unit_of_the_brokers_counts(settings: dict[str, int], goes: bool) -> None:
    with Broker({**OFTEN, **settings}) as broker:
        client = Client(broker, "t").create()
        client.produce(3, time_ms=ago(2 * HOUR_MS))
        if goes:
            wait_until(lambda: client.bounds() == (3, 3))
        else:
            Client(broker, "t-marker").create(retention_ms="1")
            marker = Client(broker, "t-marker")
            marker.produce(1, time_ms=1_000)
            wait_until(lambda: marker.bounds() == (1, 1))
            assert client.bounds() == (0, 3)


def test_a_topics_settings_count_at_once(client: Client) -> None:
    client.create()
    assert client.produce(1, size=5_000) == []
    client.alter({"max.message.bytes": "1000"})
    assert client.produce(1, size=5_000) == ["MSG_SIZE_TOO_LARGE"]
    client.alter({"max.message.bytes": None, "cleanup.policy": "compact"})
    assert client.produce(1, size=5_000) == ["INVALID_RECORD"]  # a compacted topic needs a key
    client.alter({"cleanup.policy": None, "message.timestamp.before.max.ms": str(HOUR_MS)})
    assert client.produce(1, time_ms=ago(DAY_MS)) == ["INVALID_TIMESTAMP"]
    client.alter({"message.timestamp.before.max.ms": None, "internal.segment.bytes": "1000"})
    assert client.produce(6, size=400) == []
    assert len(client.files(".log")) >= 3


@pytest.mark.parametrize("whom", [ALL_BROKERS, "0"])
def test_the_brokers_defaults_count_at_once_where_a_topic_says_nothing(whom: str) -> None:
    with Broker(OFTEN) as broker:
        whose = str(broker_id(broker)) if whom else ALL_BROKERS
        plain = Client(broker, "plain").create()
        own = Client(broker, "own").create(retention_ms="-1", max_message_bytes="100000", segment_bytes=str(2**30))
        for client in (plain, own):
            assert client.produce(3, time_ms=ago(2 * HOUR_MS), size=5_000) == []
        alter(broker, BROKER, whose, {"log.retention.ms": str(HOUR_MS), "message.max.bytes": "2000"})
        wait_until(lambda: plain.bounds() == (3, 3))
        assert own.bounds() == (0, 3)
        assert plain.produce(1, size=5_000) == ["MSG_SIZE_TOO_LARGE"]
        assert own.produce(1, size=5_000) == []
        new = Client(broker, "new").create()
        assert new.produce(1, size=5_000) == ["MSG_SIZE_TOO_LARGE"]
        alter(broker, BROKER, whose, {"log.retention.ms": None, "message.max.bytes": None, "log.segment.bytes": str(2**20)})
        assert plain.produce(5, time_ms=ago(2 * HOUR_MS), size=500_000) == []
        assert len(plain.files(".log")) >= 3
        assert own.produce(5, size=90_000) == []
        assert plain.bounds()[1] == 8
        broker.restart()
        assert len(Client(broker, "plain").files(".log")) >= 3


def broker_id(broker: Broker) -> int:
    return next(iter(Client(broker, "any").admin.list_topics(timeout=WAIT_S).brokers))


def test_where_a_log_starts_survives_a_crash() -> None:
    with Broker(OFTEN) as broker:
        client = Client(broker, "t").create(**SMALL, retention_bytes="4000")
        client.produce(20, size=500)

        def first_kept() -> int:
            """Segments go when the new start is written down, not before."""
            return min(int(path.stem) for path in client.folder.glob("*.log"))

        wait_until(lambda: first_kept() > 0)
        start = first_kept()
        assert client.bounds()[0] >= start
        broker.kill()
        broker.start()
        assert Client(broker, "t").bounds()[0] >= start


def test_a_round_comes_early_after_the_start_however_long_the_interval() -> None:
    settings = {**OFTEN, "log.retention.check.interval.ms": HOUR_MS, "log.initial.task.delay.ms": 50}
    with Broker(settings) as broker:
        client = Client(broker, "t").create()
        client.produce(3, time_ms=1_000)
        broker.restart()
        client = Client(broker, "t")
        wait_until(lambda: client.bounds() == (3, 3))


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_whole_segment_is_set_aside_where_the_topic_says_so(clean: bool) -> None:
    with Broker() as broker:
        client = Client(broker, "t").create(preallocate="true", segment_bytes=str(4 * 2**20))

        def allocated() -> list[int]:
            return [path.stat().st_blocks * 512 for path in sorted(client.folder.glob("*.log"))]

        if allocated()[0] == 0:
            pytest.skip("the file system cannot set space aside")
        assert allocated() == [4 * 2**20]
        client.produce(5, size=900_000)
        sizes = [path.stat().st_size for path in sorted(client.folder.glob("*.log"))]
        assert len(sizes) == 2
        assert sizes[0] <= allocated()[0] < 4 * 2**20
        assert sizes[1] < allocated()[1] == 4 * 2**20
        if clean:
            broker.stop()
        else:
            broker.kill()
        broker.start()
        assert allocated()[1] < 2 * 2**20  # the broker freed the unused space
        client = Client(broker, "t")
        assert client.bounds() == (0, 5)
