"""A stop on a full disk is a clean one: room was set aside for what it writes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.config.topic import TopicConfig
from barnabas.storage.directory import CLEAN_SHUTDOWN_FILE, ROOM_FILE
from barnabas.storage.manager import LogManager
from barnabas.testing.broker import ADDRESS
from barnabas.testing.failing_files import FailingFiles
from tests.cli.test_broker_start import running
from tests.storage.support import TOPIC_ID, append
from tests.storage.test_manager import CLUSTER, FixedClock

DISK_BYTES = 24 * 1024 * 1024
VALUE_BYTES = 20_000
PARTITIONS = 8


def manager(folder: Path, files: FailingFiles) -> LogManager:
    logs = LogManager([folder], files=files, clock=FixedClock(), broker_id=1, cluster_id=CLUSTER)
    logs.open_all(lambda _topic: TopicConfig())
    return logs


def test_a_stop_has_the_room_that_was_set_aside(tmp_path: Path) -> None:
    files = FailingFiles()
    for _ in range(3):
        logs = manager(tmp_path, files)
        room = tmp_path / ROOM_FILE
        assert room.stat().st_blocks * 512 >= 256 * 1024
        append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"a")
        files.fill(tmp_path, until_removal=True)
        logs.close()
        assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
        assert not room.exists()


def test_room_that_cannot_be_had_is_done_without(tmp_path: Path) -> None:
    files = FailingFiles()
    files.fail(frozenset({"reserve"}), tmp_path)
    logs = manager(tmp_path, files)
    assert not (tmp_path / ROOM_FILE).exists()
    logs.close()
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()


def _can_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _can_mount(), reason="needs root and a file system of its own")
def test_a_broker_on_a_full_disk_ends_with_0(tmp_path: Path) -> None:
    """The disk is one in memory, which nobody but the broker sees and which goes with it."""
    folder = tmp_path / "data"
    folder.mkdir()

    def on_small_disk(command: Sequence[str]) -> list[str]:
        script = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", str(DISK_BYTES), str(folder), *command]

    options = ["--data-dir", folder, "--listeners", "PLAINTEXT://127.0.0.1:0", "--config", f"num.partitions={PARTITIONS}"]
    with running("broker", "start", *options, "--log-level", "error", wrap=on_small_disk) as (process, line):
        ((_, host, port),) = ADDRESS.findall(line)
        _fill(f"{host}:{port}")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert "not-closed" not in err
    assert "not-marked-clean" not in err
    assert process.returncode == 0, err


def _fill(bootstrap: str) -> None:
    """Produce until the broker refuses a record."""
    refused: list[KafkaError] = []

    def answered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "retries": 0, "log_level": 0, "batch.size": 100_000})
    for number in range(2 * DISK_BYTES // VALUE_BYTES):
        producer.produce("t", os.urandom(VALUE_BYTES), partition=number % PARTITIONS, on_delivery=answered)
        producer.poll(0 if number % 16 else 1)
        if refused:
            break
    producer.flush(30)
    assert refused, "the disk is large enough for all"
