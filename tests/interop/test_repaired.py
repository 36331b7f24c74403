"""Kafka's dump tool reads the files that `barnabas doctor check --repair` wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.kafka import run_tool

from barnabas.config.topic import TopicConfig
from barnabas.storage.check.partition import PartitionContext, check_partition
from barnabas.storage.check.repair import repair
from tests.storage.support import FILES, NOW, append, open_log

pytestmark = pytest.mark.interop
RECORDS = 300


def test_the_dump_tool_reads_repaired_files(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(segment_bytes=100_000))
    for number in range(RECORDS):
        append(log, b"x" * 1000, time_ms=NOW + number, producer_id=7, producer_epoch=0, base_sequence=number)
    log.close()
    folder = tmp_path / "topic-0"
    broken = [
        *folder.glob("*.index"),
        *folder.glob("*.timeindex"),
        folder / "leader-epoch-checkpoint",
        *folder.glob("*.snapshot"),
    ]
    assert len(broken) > 9
    for path in broken:
        path.write_bytes(b"rubbish!" * 3)
    report = check_partition(FILES, folder, PartitionContext(RECORDS, True))
    assert {finding.path for finding in report.findings} == set(broken)
    outcomes = repair(FILES, report.findings, report.replacements)
    assert all(outcome.startswith("repaired: ") for outcome in outcomes), outcomes
    assert check_partition(FILES, folder, PartitionContext(RECORDS, True)).findings == []
    files = sorted(path for path in folder.iterdir() if path.suffix in (".log", ".index", ".timeindex", ".snapshot"))
    dumped = run_tool("kafka-dump-log", "--files", ",".join(map(str, files)), "--deep-iteration").stdout
    assert "Found timestamp mismatch" not in dumped
    assert "Mismatches in" not in dumped
    producers = [line for line in dumped.splitlines() if line.startswith("producerId: 7 producerEpoch: 0")]
    assert len(producers) == sum(path.suffix == ".snapshot" for path in files)
    assert f"lastSequence: {RECORDS - 1}" in dumped
    indexes = ",".join(str(path) for path in files if path.suffix == ".index")
    checked = run_tool("kafka-dump-log", "--files", indexes, "--index-sanity-check").stdout
    assert checked.count("passed sanity check") == sum(path.suffix == ".index" for path in files)
