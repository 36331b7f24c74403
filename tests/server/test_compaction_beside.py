"""Compaction beside what else happens to a log: retention, moves, changed settings, a stop or a kill of the broker."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.errors import CorruptLog
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import build_batch
from barnabas.server.broker import Broker as InnerBroker
from barnabas.storage.compaction.task import CleaningResult, CleaningTask
from barnabas.testing import Broker
from tests.server.compacting import COMPACTED, CONFIG, NOT_YET, Client, cleaner_pids, is_running
from tests.server.in_process import TOPIC, running
from tests.server.in_process import Client as InProcess
from tests.server.scraped import render
from tests.server.wire import NOW_MS, Line
from tests.waiting import until, wait_until

RATE = "log.cleaner.io.max.bytes.per.second"
SLOW: dict[str, str | int | bool] = {**CONFIG, RATE: 100_000}
FAST = "1e9"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_that_ends_while_cleaning(end: str) -> None:
    with Broker(config=SLOW) as broker:
        client = Client(broker, "interrupted", NOT_YET)
        client.write(1000)
        client.set(cleanup_policy="compact")
        wait_until(lambda: any(client.folder.glob("*.cleaned")), "cleaning")
        pid = cleaner_pids(broker)[-1]
        if end == "stop":
            broker.stop()
            assert not is_running(pid)
        else:
            broker.kill()
            wait_until(lambda: not is_running(pid), "the process ended")
        broker.start()
        wait_until(lambda: len(cleaner_pids(broker)) == 2, "cleaning again")
        assert not client.is_clean()
        client.set_default(RATE, FAST)  # applies to the current cleaning too
        wait_until(client.is_clean, "clean")
        client.check()


def test_a_new_default_of_the_broker_counts_at_once() -> None:
    with Broker(config={**CONFIG, "log.cleaner.min.cleanable.ratio": "1"}) as broker:
        client = Client(broker, "waiting", {key: COMPACTED[key] for key in COMPACTED if key != "min.cleanable.dirty.ratio"})
        client.write(1000)
        assert not cleaner_pids(broker)
        client.set_default("log.cleaner.min.cleanable.ratio", "0.01")
        wait_until(client.is_clean, "clean")
        client.check()


def test_more_threads_clean_more_logs_at_a_time() -> None:
    with Broker(config={**SLOW, "log.cleaner.threads": 1}) as broker:
        one, other = Client(broker, "one", NOT_YET), Client(broker, "other", NOT_YET)
        for client in (one, other):
            client.write(1000)
        for client in (one, other):
            client.set(cleanup_policy="compact")
        wait_until(lambda: "event=cleaning-begins topic=" in broker.log, "cleaning")
        client.set_default("log.cleaner.threads", "2")
        wait_until(
            lambda: broker.log.count("event=cleaning-begins topic=") - broker.log.count("event=cleaned topic=") == 2,
            "cleaning both",
        )
        assert len(cleaner_pids(broker)) == 1
        client.set_default(RATE, FAST)
        for client in (one, other):
            wait_until(client.is_clean, "clean")
            client.check()


def test_a_compacted_log_with_retention_loses_its_old_segments() -> None:
    with Broker(config={**CONFIG, "log.retention.check.interval.ms": 100}) as broker:
        client = Client(broker, "both", {**COMPACTED, "cleanup.policy": "compact,delete"})
        client.write(1000, keys=1000)
        wait_until(client.is_clean, "clean")
        client.check()
        first = min(client.folder.glob("*.log"))
        client.set(retention_bytes="40000")
        wait_until(lambda: not first.exists(), "shorter")
        left = client.read()
        assert 0 < len(left) < 1000
        assert left[-1][0] == 999
        client.write(1000, keys=20)
        wait_until(client.is_clean, "clean again")
        assert {key: value for _, key, value in client.read()}.items() <= client.last.items()


def test_a_log_that_is_cleaned_and_moves_and_is_written_to(tmp_path: Path) -> None:
    dirs = tmp_path / "one", tmp_path / "one-2"
    with Broker(config=SLOW, data_dir=dirs[0], log_dirs=2) as broker, Line(broker) as line:
        client = Client(broker, "moving", NOT_YET)
        client.write(1000)
        client.set(cleanup_policy="compact")
        wait_until(lambda: any(client.folder.glob("*.cleaned")), "cleaning")
        for number in range(3):  # the first move stops a cleaning; the others come at any time
            source = client.folder
            target = dirs[0] if source.parent == dirs[1] else dirs[1]
            _move(line, "moving", target)
            wait_until(partial(_has_moved, client, source, target), "moved")
            if not number:
                wait_until(lambda: "event=cleaning-given-up" in broker.log, "given up")
                client.set_default(RATE, FAST)
            client.write(300)
        assert "event=log-move-failed" not in broker.log
        wait_until(client.is_clean, "clean")
        client.check()
        assert (target / "cleaner-offset-checkpoint").read_text().splitlines()[1] == "1"
    broker.start()
    client.reconnect()
    client.check()
    broker.close()


def _has_moved(client: Client, source: Path, target: Path) -> bool:
    return client.folder.parent == target and not source.exists()


def _move(line: Line, topic: str, target: Path) -> None:
    wanted = AlterReplicaLogDir(path=str(target), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])
    answer = line.ask((34, 2), AlterReplicaLogDirsRequest(dirs=[wanted]), AlterReplicaLogDirsResponse)
    assert answer.results[0].partitions[0].error_code == 0


def test_the_doctor_finds_nothing_wrong_with_what_was_compacted(tmp_path: Path) -> None:
    with Broker(config=CONFIG, data_dir=tmp_path / "data") as broker:
        client = Client(broker, "checked", COMPACTED)
        client.write(1000)
        wait_until(client.is_clean, "clean")
    script = "from barnabas.cli.main import main; main()"
    command = [sys.executable, "-c", script, "doctor", "check", "--data-dir", str(tmp_path / "data"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["findings"] == []


async def test_a_log_that_was_cut_while_it_was_read_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that is shorter now looks as if its end were damaged."""
    async with running([tmp_path], log_cleaner_backoff_ms="50") as client:
        cleaner = client.broker.cleaner
        clean, cut = cleaner._process.clean, list[int]()

        async def clean_once_beside_a_cut(task: CleaningTask, **given: Any) -> CleaningResult:
            if not cut:
                cut.append(task.end_offset - 1)
                partition = client.broker.partitions.require(TOPIC, 0)
                partition.log.lowest_truncation = cut[0]  # the value that a truncation sets
                raise CorruptLog(str(task.directory), 0, "a header is cut off")
            return await clean(task, **given)

        monkeypatch.setattr(cleaner._process, "clean", clean_once_beside_a_cut)
        await write_what_is_to_be_compacted(client)
        await until(lambda: cut and cleaner.statistics.runs and not cleaner.running)
        assert not cleaner.uncleanable


async def write_what_is_to_be_compacted(client: InProcess) -> None:
    await client.create(1, TOPIC, cleanup_policy="compact", internal_segment_bytes="2000", min_cleanable_dirty_ratio="0.01")
    for number in range(100):
        batch = bytes(build_batch([(b"%d" % (number % 3), b"x" * 50)], timestamp_ms=NOW_MS))
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])])
        await client.ask((0, 8), request, ProduceResponse)


async def test_what_the_metrics_tell(tmp_path: Path) -> None:
    async with running([tmp_path], log_cleaner_backoff_ms="50") as client:
        await write_what_is_to_be_compacted(client)
        cleaner = client.broker.cleaner
        await until(lambda: cleaner.statistics.runs and not cleaner.running)
        found = metrics_of(client.broker)
        assert found["barnabas_cleaner_runs_total"] >= 1
        assert found["barnabas_cleaner_records_removed_total"] > 50
        assert found["barnabas_cleaner_bytes_read_total"] > found["barnabas_cleaner_bytes_written_total"] > 0
        assert 0 <= found["barnabas_cleaner_since_last_run_seconds"] < 60
        assert found["barnabas_cleaner_uncleanable_partitions"] == found["barnabas_cleaner_uncleanable_bytes"] == 0
        cleaner.uncleanable[TOPIC, 0] = "for a test"
        found = metrics_of(client.broker)
        assert found["barnabas_cleaner_uncleanable_partitions"] == 1
        assert found["barnabas_cleaner_uncleanable_bytes"] > 0


def metrics_of(broker: InnerBroker) -> dict[str, float]:
    families = text_string_to_metric_families(render(broker).decode())
    return {sample.name: sample.value for family in families for sample in family.samples if "cleaner" in sample.name}
