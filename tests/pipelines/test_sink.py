"""What the writers do in the driver's process, without Spark: they are pickled for the tasks, and that prepares the sink."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.pipelines.sink import StreamWriter
from barnabas.testing import Broker

SCHEMA = StructType([StructField("value", BinaryType())])


def hand_out(broker: Broker, topic: str, **options: str) -> None:
    """As Spark does before the tasks of a micro-batch."""
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "sinkName": "delays", **options}
    pickle.dumps(StreamWriter(given, SCHEMA))


def test_a_sink_without_two_phase_commit_says_at_its_start_what_that_means(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:
        hand_out(broker, "t", **{"kafka.transaction.timeout.ms": "60000"})
        (told,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
        assert "transaction.two.phase.commit.enable" in told
        assert told.startswith("event=no-two-phase-commit sink='delays' transaction_timeout_ms=60000 ")
        hand_out(broker, "t", **{"kafka.transaction.timeout.ms": "60000"})
        assert len(caplog.records) == 1, "once, not with each micro-batch"
        hand_out(broker, "t", exactlyOnce="false")
        assert len(caplog.records) == 1


def test_a_sink_with_two_phase_commit_has_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        hand_out(broker, "t")
        hand_out(broker, "t")
    assert not caplog.records
