"""Kafka's own tools for transactions: every verb of kafka-transactions, and the dump of the coordinator's log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import run_tool

from barnabas.testing import Broker
from tests.server.transactions.test_two_phase_commit import committed, end, init, owner_of, write
from tests.server.wire import Line, create_topic

pytestmark = pytest.mark.interop

WITHIN_S = 30.0
CONFIG = {"transaction.two.phase.commit.enable": True, "transaction.state.log.num.partitions": 1}


def opened(kafka: Broker, name: str) -> Producer:
    """A transaction that is open in the only partition of the topic `name`, of the transactional id of that name."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(WITHIN_S)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name, "log_level": 0})
    producer.init_transactions(WITHIN_S)
    producer.begin_transaction()
    producer.produce(name, b"open")
    assert producer.flush(WITHIN_S) == 0
    return producer


def transactions(kafka: Broker, *arguments: str) -> str:
    return run_tool("kafka-transactions", "--bootstrap-server", kafka.bootstrap_servers, *arguments).stdout


def test_every_verb_of_kafka_transactions() -> None:
    with Broker(config=CONFIG) as kafka:
        producer = opened(kafka, "first")
        opened(kafka, "second")
        assert re.search(r"first\s+\d+\s+\d+\s+Ongoing", transactions(kafka, "list"))
        matching = transactions(kafka, "list", "--transactional-id-pattern", "f.*t", "--duration-filter", "0")
        assert "first" in matching
        assert "second" not in matching
        assert "first-0" in transactions(kafka, "describe", "--transactional-id", "first")
        place = ("--topic", "first", "--partition", "0")
        told = transactions(kafka, "describe-producers", *place).splitlines()
        assert told[1].split()[-1] == "0", "the start of the open transaction"
        assert "first" not in transactions(kafka, "find-hanging", "--broker-id", "1")
        transactions(kafka, "abort", *place, "--start-offset", "0")
        assert transactions(kafka, "describe-producers", *place).splitlines()[1].split()[-1] == "None"
        transactions(kafka, "forceTerminateTransaction", "--transactionalId", "second")
        assert re.search(r"second\s+\d+\s+\d+\s+(Empty|CompleteAbort)", transactions(kafka, "list"))
        producer.abort_transaction(WITHIN_S)


def test_the_log_of_the_coordinator_is_dumped_and_every_value_is_read() -> None:
    """A prepared transaction that was taken over, one that was committed, one that was aborted."""
    with Broker(config=CONFIG) as kafka:
        with Line(kafka) as line:
            for name, commit in (("committed", True), ("aborted", False), ("taken", None)):
                create_topic(kafka, name)
                writer = owner_of(init(line, name))
                assert write(line, name, writer, b"value") == 0
                if commit is None:
                    owner_of(init(line, name, keep=True))
                else:
                    assert end(line, name, writer, commit=commit).error_code == 0
                    assert committed(line, name) == ([b"value"] if commit else [])
        kafka.stop()
        files = sorted(each for each in kafka.data_dir.rglob("*.*") if each.suffix in {".log", ".txnindex", ".snapshot"})
        assert {each.suffix for each in files} == {".log", ".txnindex", ".snapshot"}
        dump(files)
        states = [each for each in files if each.suffix == ".log" and each.parent.name.startswith("__transaction_state")]
        decoded = run_tool("kafka-dump-log", "--files", ",".join(map(str, states)), "--transaction-log-decoder").stdout
        values = [json.loads(found) for found in re.findall(r"payload: (\{.*\})", decoded)]
        last = {}
        for name, value in zip(re.findall(r'"transactionalId":"(\w+)"', decoded), values, strict=True):
            last[name] = value["data"]
        assert {name: each["transactionStatus"] for name, each in last.items()} == {"committed": 4, "aborted": 5, "taken": 1}
        taken = last["taken"]
        assert (taken["nextProducerId"], taken["nextProducerEpoch"]) == (taken["producerId"], taken["producerEpoch"] + 1)
        assert last["committed"]["clientTransactionVersion"] == 2


def dump(files: list[Path]) -> None:
    done = run_tool("kafka-dump-log", "--deep-iteration", "--files", ",".join(map(str, files)))
    for complaint in ("Exception", "isvalid: false", "corrupt"):
        assert complaint not in done.stdout + done.stderr
    assert done.stdout.count("Dumping ") == len(files)
