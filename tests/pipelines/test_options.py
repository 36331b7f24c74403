"""The options: names, defaults and messages of Spark's own source and sink."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.pipelines.offsets import EARLIEST, LATEST, OptionError, Position
from barnabas.pipelines.options import include_headers, read_options

BASE = {"kafka.bootstrap.servers": "a:1,b:2", "subscribe": "t"}


def test_defaults() -> None:
    batch = read_options(BASE, streaming=False)
    assert (batch.starting, batch.ending) == (Position(word=EARLIEST), Position(word=LATEST))
    stream = read_options(BASE, streaming=True)
    assert stream.starting == Position(word=LATEST)
    assert (stream.fail_on_data_loss, stream.include_headers, stream.min_partitions) == (True, False, None)
    assert (stream.max_offsets_per_trigger, stream.max_trigger_delay_ms, stream.poll_timeout_ms) == (None, 900_000, 120_000)
    assert stream.client.bootstrap_servers == (("a", 1), ("b", 2))


def test_names_are_case_insensitive() -> None:
    given = {"KAFKA.bootstrap.servers": "a:1", "SubscribePattern": " t.* ", "INCLUDEHEADERS": "True", "minpartitions": "4"}
    options = read_options(given, streaming=True)
    assert (options.pattern, options.include_headers, options.min_partitions) == ("t.*", True, 4)
    assert include_headers(given)


def test_topics_and_partitions() -> None:
    assert read_options({**BASE, "subscribe": " a, b ,,a"}, streaming=True).subscribe == ("a", "b")
    given = {"kafka.bootstrap.servers": "a:1", "assign": '{"b":[1,0],"a":[2]}'}
    assert read_options(given, streaming=True).assign == (("a", 2), ("b", 0), ("b", 1))


def test_timestamps_go_before_offsets() -> None:
    given = {**BASE, "startingTimestamp": "5", "startingOffsetsByTimestamp": '{"t":{"0":6}}', "startingOffsets": "latest"}
    assert read_options(given, streaming=True).starting.timestamp_ms == 5
    del given["startingTimestamp"]
    assert read_options(given, streaming=True).starting.timestamps_ms == {("t", 0): 6}
    del given["startingOffsetsByTimestamp"]
    assert read_options(given, streaming=True).starting.word == LATEST


def test_client_settings_pass_through() -> None:
    options = read_options({**BASE, "kafka.isolation.level": "read_committed", "kafka.fetch.max.wait.ms": "7"}, streaming=True)
    assert (options.client.read_committed, options.client.fetch_max_wait_ms) == (True, 7)
    with pytest.raises(OptionError, match=r"Kafka option 'kafka.fetch.max.wait.ms' has the value 'x'"):
        read_options({**BASE, "kafka.fetch.max.wait.ms": "x"}, streaming=True)


def test_the_group_is_the_same_after_a_restart() -> None:
    first, again = (read_options(BASE, streaming=True).group_id for _ in range(2))
    assert first == again
    assert first is not None
    assert first.startswith("spark-kafka-source-")
    assert str(read_options({**BASE, "groupIdPrefix": "mine"}, streaming=True).group_id).startswith("mine-")
    assert read_options({**BASE, "kafka.group.id": "g"}, streaming=True).group_id == "g"
    assert read_options({**BASE, "commitOffsets": "false"}, streaming=True).group_id is None
    assert read_options(BASE, streaming=False).group_id is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
        ({"subscribe": None, "assign": "t"}, "No topicpartitions to assign as specified value for option 'assign' is 't'"),
        ({"subscribe": None, "assign": "{t"}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {t'),
        ({"subscribe": None, "subscribePattern": " "}, "Pattern to subscribe is empty"),
        ({"subscribe": None, "subscribePattern": "("}, "is not a regular expression"),
        ({"minPartitions": "0"}, "minPartitions must be positive"),
        ({"minPartitions": "many"}, "minPartitions must be an integer, got many"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false, got maybe"),
        ({"startingTimestamp": "noon"}, "Expected a single long value, got noon"),
        ({"startingOffsets": "{"}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}} or {'),
        ({"startingOffsetsByTimestampStrategy": "x"}, "startingOffsetsByTimestampStrategy must be error or latest, got x"),
        ({"maxTriggerDelay": "a while"}, "maxTriggerDelay must be a time such as 15m"),
        ({"kafka.bootstrap.servers": None}, "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"),
        ({"kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
        ({"kafka.interceptor.classes": "x"}, "Kafka option 'interceptor.classes' is not supported"),
        (
            {"kafka.key.deserializer": "x"},
            "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays",
        ),
        ({"kafka.value.deserializer": "x"}, "Kafka option 'value.deserializer' is not supported as values are deserialized"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "The value of minOffsetPerTrigger(9) is higher than the maxOffsetsPerTrigger(8).",
        ),
    ],
)
def test_mistakes(changes: dict[str, str | None], message: str) -> None:
    given: dict[str, Any] = {k: v for k, v in {**BASE, **changes}.items() if v is not None}
    for streaming in (True, False):
        with pytest.raises(OptionError) as caught:
            read_options(given, streaming=streaming)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
        ({"startingOffsets": {"t": {"0": -1}}}, "startingOffsets for t-0 can't be latest for batch queries on Kafka"),
        ({"startingOffsets": {"t": "latest"}}, "startingOffsets for t can't be latest for batch queries on Kafka"),
        ({"endingOffsets": {"t": "earliest"}}, "ending offset for t can't be earliest for batch queries on Kafka"),
        ({"endingOffsets": {"t": {"0": -2}}}, "ending offset for t-0 can't be earliest for batch queries on Kafka"),
        (
            {"startingOffsets": {"t": {"0": 5}}, "endingOffsets": {"t": {"1": 5}}},
            "The specified start offset and end offset should have the same topic-partitions.",
        ),
        (
            {"startingOffsets": {"t": {"0": 5}}, "endingOffsets": {"t": {"0": 4}}},
            "The specified start offset 5 is greater than the end offset 4 for topic t partition 0.",
        ),
    ],
)
def test_mistakes_of_batch_queries(changes: dict[str, Any], message: str) -> None:
    given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in {**BASE, **changes}.items()}
    with pytest.raises(OptionError) as caught:
        read_options(given, streaming=False)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    value = '{"t":{"0":1}}' if name.endswith("ByTimestamp") else "1" if name == "endingTimestamp" else "latest"
    with pytest.raises(OptionError, match="not valid in streaming queries"):
        read_options({**BASE, name: value}, streaming=True)


def test_offsets_that_are_resolved_in_tasks() -> None:
    assert read_options({**BASE, "resolveOffsets": "task"}, streaming=False).resolve_in_tasks
    assert not read_options(BASE, streaming=False).resolve_in_tasks
    assert not read_options({**BASE, "resolveOffsets": "task"}, streaming=True).resolve_in_tasks
    for other in ({"minPartitions": "3"}, {"startingTimestamp": "3"}, {"resolveOffsets": "never"}):
        with pytest.raises(OptionError, match="resolveOffsets"):
            read_options({**BASE, "resolveOffsets": "task", **other}, streaming=False)


def test_what_is_shown_of_options_holds_no_secret() -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="geheim";'
    secured = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": login}
    options = read_options({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **secured}, streaming=False)
    assert "geheim" not in repr(options)
