"""The writers, tested without Spark: pickled for the tasks, which prepares the sink, and asked for a batch that comes again."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.client.blocking import BlockingClient
from barnabas.client.transactions import Owner
from barnabas.pipelines.exactly_once.protocol import BatchIsPast, Handout, Wrote
from barnabas.pipelines.exactly_once.sink_records import PARTITIONS
from barnabas.pipelines.exactly_once.state import TOPIC, SinkState
from barnabas.pipelines.sink import BatchWriter, NotPrepared, StreamWriter, Written
from barnabas.testing import Broker
from tests.waiting import wait_until

SCHEMA = StructType([StructField("value", BinaryType())])


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """By the package: Spark's own libraries write of what an earlier session left, whenever the garbage collector comes to it."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("barnabas")]


def hand_out(broker: Broker, topic: str, **options: str) -> None:
    """As Spark does before the tasks of a micro-batch."""
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "sinkName": "delays", **options}
    pickle.dumps(StreamWriter(given, SCHEMA))


def test_a_sink_without_two_phase_commit_says_at_its_start_what_that_means(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:
        hand_out(broker, "t", **{"kafka.transaction.timeout.ms": "60000"})
        (told,) = said(caplog)
        assert "transaction.two.phase.commit.enable" in told
        assert told.startswith("event=no-two-phase-commit sink='delays' transaction_timeout_ms=60000 ")
        hand_out(broker, "t", **{"kafka.transaction.timeout.ms": "60000"})
        assert len(said(caplog)) == 1, "once, not with each micro-batch"
        hand_out(broker, "t", exactlyOnce="false")
        assert len(said(caplog)) == 1


def test_a_sinks_own_topic_that_went_away_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    with Broker({"transaction.two.phase.commit.enable": True}) as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        hand_out(broker, "t")
        client.delete_topics([TOPIC])
        wait_until(lambda: not client.topics_by_name([TOPIC]))
        hand_out(broker, "t")
        assert client.describe_topic_config(TOPIC)["cleanup.policy"] == "compact"
        assert len(client.topics_by_name([TOPIC])[TOPIC].partitions) == PARTITIONS
    (told,) = said(caplog)
    assert told.startswith("event=sinks-topic-gone topic=_barnabas_sinks sink='delays' ")


def test_a_sink_with_two_phase_commit_has_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        hand_out(broker, "t")
        hand_out(broker, "t")
    assert not said(caplog)


def test_a_sink_that_cannot_be_prepared_says_why() -> None:
    """Spark pickles the writer, and hides what goes wrong meanwhile behind `Could not serialize object`."""
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "sinkName": "delays", "kafka.default.api.timeout.ms": "0"}
    with pytest.raises(
        NotPrepared, match=r"^the sink 'delays' could not be prepared: no .* within 0 ms; last error: no connection"
    ):
        CloudPickleSerializer().dumps(StreamWriter(given, SCHEMA))


OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "sinkName": "delays"}
HANDOUT = Handout("delays", Owner(7, 0), SinkState({"q": 4, "": 4}))


def test_a_repeated_batch_writes_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    writer = StreamWriter(OPTIONS, SCHEMA)
    writer._handout = HANDOUT
    rows = iter([pa.RecordBatch.from_pydict({"value": [b"1"]})] * 3)
    assert writer._write(rows, "q", 4) == Written(0, Wrote(HANDOUT, "q", 4))
    assert next(rows, None) is None, "what keeps state before the sink is saved only when its rows were all taken"
    assert "event=batch-not-repeated sink='delays' query='q' batch=4 " in caplog.text


def test_a_batch_before_the_last_one_fails_and_says_what_to_do() -> None:
    stream, batch = StreamWriter(OPTIONS, SCHEMA), BatchWriter({**OPTIONS, "sinkBatchId": "3"}, SCHEMA)
    stream._handout = batch._handout = HANDOUT
    with pytest.raises(BatchIsPast, match=r"batch 3 .* the query's checkpoint was set back.* sinkName to another name") as caught:
        stream._write(iter(()), "q", 3)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(BatchIsPast, match="a sinkBatchId was repeated"):
        batch.write(iter(()))
