"""The options of the sink."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipelines.offsets import OptionError
from barnabas.pipelines.sink_options import SinkOptions, sink_options
from barnabas.protocol.records.compression import Compression

BASE = {"kafka.bootstrap.servers": "a:1,b:2", "topic": " t "}
STREAM = {**BASE, "checkpointLocation": "/checkpoints/one"}


def of(options: dict[str, str], *, streaming: bool = True, columns: dict[str, str] | None = None) -> SinkOptions:
    return sink_options(options, columns or {"value": "binary"}, streaming=streaming)


def test_what_producers_are_told() -> None:
    given = {"kafka.compression.type": "zstd", "kafka.max.request.size": "5000", "kafka.linger.ms": "5", "EXACTLYONCE": "false"}
    task = of({**STREAM, **given, "kafka.acks": "1"}).task
    assert (task.topic, task.acks, task.codec, task.max_request_bytes) == ("t", 1, Compression.ZSTD, 5000)
    assert task.client.bootstrap_servers == (("a", 1), ("b", 2))
    assert [of({**STREAM, **more}).task.creates_topics for more in ({}, {"createTopics": "false"})] == [True, False]


def test_a_stream_is_named_by_its_checkpoint_and_topic() -> None:
    name = of(STREAM).name
    assert name is not None
    assert name == of({**STREAM, "checkpointLocation": "/checkpoints/one/"}).name
    assert name != of({**STREAM, "checkpointLocation": "/checkpoints/two"}).name
    assert name != of({**STREAM, "topic": "other"}).name
    assert of({**STREAM, "sinkName": "mine"}).name == "mine"
    assert of({**STREAM, "exactlyOnce": "false"}).name is None


def test_a_checkpoint_has_one_name_however_its_path_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def named(where: object) -> str | None:
        return of({**BASE, "checkpointLocation": str(where)}).name

    for where in ("/data//cp", "/data/./cp//", "file:/data/cp", "FILE:/data/cp", "file:///data/cp/", "file:///data//cp"):
        assert named(where) == named("/data/cp")
    assert named("s3a://bucket//data///cp/") == named("S3A://bucket/data/cp") == named("s3a://bucket/data/cp")
    assert named("s3a://Bucket/data/cp") != named("s3a://bucket/data/cp")
    (tmp_path / "cp").mkdir()
    monkeypatch.chdir(tmp_path)
    assert named("cp") == named("./cp/") == named(f"file:{tmp_path}/cp")
    assert named("on-another-file-system") != named(tmp_path / "on-another-file-system")
    places = [
        "/data/cp",
        "/cp",
        "s3a://data/cp",
        "s3a://bucket/data/cp",
        "hdfs://data/cp",
        "hdfs:///data/cp",
        "dbfs:/data/cp",
        "data/cp",
    ]
    assert len({named(where) for where in places}) == len(places)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("/checkpoints/one", "spark-59f70fcbc6d19bcb"),
        ("s3a://bucket/checkpoints/one", "spark-9fcda0c146133a96"),
        ("hdfs:///checkpoints/one", "spark-b55efe26d426ee02"),
        ("dbfs:/one", "spark-50bc902b0936e58d"),
    ],
)
def test_names_of_sinks_that_are_there_stay(where: str, name: str) -> None:
    assert of({**BASE, "checkpointLocation": where}).name == name


def test_a_batch_is_exactly_once_where_it_is_named() -> None:
    assert of(BASE, streaming=False).name is None
    named = of({**BASE, "sinkName": "mine", "sinkBatchId": "7"}, streaming=False)
    assert (named.name, named.batch_id) == ("mine", 7)


@pytest.mark.parametrize(
    ("options", "streaming", "message"),
    [
        (BASE, True, "set the option checkpointLocation or sinkName"),
        ({**BASE, "exactlyOnce": "true"}, False, "needs the option sinkName"),
        ({**BASE, "sinkBatchId": "1"}, False, "sinkBatchId needs the option sinkName"),
        ({**BASE, "sinkName": "x", "sinkBatchId": "-1"}, False, "sinkBatchId must be a number of zero or more, got -1"),
        ({**STREAM, "sinkName": "a/b"}, True, "no slash, got 'a/b'"),
        ({**STREAM, "exactlyOnce": "perhaps"}, True, "exactlyOnce must be true or false, got perhaps"),
        ({**STREAM, "kafka.acks": "1"}, True, "kafka.acks must be all for writing exactly once, got 1"),
        ({**STREAM, "kafka.transactional.id": "x"}, True, "Kafka option 'transactional.id' is not supported"),
        (
            {**STREAM, "kafka.partitioner.class": "org.example.P"},
            True,
            "Kafka option 'partitioner.class' is not supported as a Java class",
        ),
        ({**STREAM, "kafka.max.request.size": "0"}, True, "kafka.max.request.size must be a number above zero, got 0"),
        ({"topic": "t"}, False, "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer"),
    ],
)
def test_mistakes(options: dict[str, str], streaming: bool, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        of(options, streaming=streaming)
    assert message in str(caught.value)
