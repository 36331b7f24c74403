"""The findings of `barnabas doctor check` in the folders of a real broker that used all its file operations."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.main import run
from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import ClientError
from barnabas.client.results import LATEST
from barnabas.testing import Broker
from tests.server.logs.test_log_dir_moves import alter
from tests.server.wire import Line
from tests.waiting import WITHIN_S, wait_until

CONFIG = {
    "log.cleaner.backoff.ms": "50",
    "log.segment.delete.delay.ms": "200",
    "log.retention.check.interval.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "replica.alter.log.dirs.io.max.bytes.per.second": "300000",
    "offsets.topic.segment.bytes": "1048576",
}
SEGMENTS = {"internal.segment.bytes": "20000"}
TOPICS = {
    "plain": SEGMENTS,
    "short": {**SEGMENTS, "retention.bytes": "60000", "compression.type": "zstd"},
    "compacted": {**SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "100"},
    "both": {**SEGMENTS, "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.01", "retention.bytes": "100000"},
    "flushed": {**SEGMENTS, "flush.messages": "1"},
    "moving": SEGMENTS,
}
ENOUGH = 400  # records of each topic before a round can end
VALUE = "x" * 200


class Everything:
    """A load on a broker with two folders: producers with and without idempotence, commits, moves, deletions."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self.broker = Broker({**CONFIG, "log.dirs": ",".join(map(str, folders))}, data_dir=folders[0])
        self.broker.start()
        self.admin = AdminClient(self.servers)
        self._stopped, self._begun = threading.Event(), threading.Event()

    def make_topics(self) -> None:
        for future in self.admin.create_topics([NewTopic(name, 2, 1, config=each) for name, each in TOPICS.items()]).values():
            future.result(WITHIN_S)

    @property
    def servers(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0, "logger": None}

    @contextmanager
    def load(self) -> Iterator[None]:
        """Keep the broker busy within the block, which begins when every topic has got some records."""
        self._stopped.clear()
        self._begun.clear()
        with ThreadPoolExecutor(4) as threads:
            jobs = [threads.submit(job) for job in (self._produce, self._make_and_delete, self._commit, self._move)]
            try:
                assert self._begun.wait(WITHIN_S)
                with BlockingClient.to(self.broker.bootstrap_servers) as client:
                    place = "plain", 1
                    wait_until(lambda: client.list_offsets({place: LATEST})[place].offset >= 100)
                    client.delete_records({place: 100})
                yield
            finally:
                self._stopped.set()
        for job in jobs:
            job.result()

    def _produce(self) -> None:
        settings = {**self.servers, "batch.num.messages": 5, "message.timeout.ms": 30_000}
        producers = [Producer({**settings, "enable.idempotence": idempotent}) for idempotent in (False, True)]
        for number in itertools.count():
            if self._stopped.is_set():
                break
            for topic in TOPICS:
                key, value = str(number % 30), None if number % 40 == 7 else f"{number}{VALUE}"
                try:
                    producers[number % 2].produce(topic, key=key, value=value, partition=number // 30 % 2)
                except BufferError:
                    producers[number % 2].poll(0.05)
            if number % 100 == 0:
                for producer in producers:
                    producer.flush(0.3)
            if number == ENOUGH:
                self._begun.set()
        for producer in producers:
            producer.purge()
            producer.flush(1)

    def _make_and_delete(self) -> None:
        """Two topics come and go, for as long as they can."""
        while not self._stopped.is_set():
            for name in ("doomed-0", "doomed-1"):
                try:
                    self.admin.create_topics([NewTopic(name, 2, 1)])[name].result(2)
                    self.admin.delete_topics([name])[name].result(2)
                except (KafkaException, TimeoutError):  # the broker was killed, or the topic exists since before a kill
                    with suppress(KafkaException, TimeoutError):
                        self.admin.delete_topics([name])[name].result(1)
                    self._stopped.wait(0.05)

    def _commit(self) -> None:
        for offset in itertools.count(1):
            if self._stopped.is_set():
                return
            try:
                with BlockingClient.to(self.broker.bootstrap_servers) as client:
                    client.commit_offsets("readers", {("plain", 0): offset}, timeout_ms=500)
            except ClientError:
                self._stopped.wait(0.1)

    def _move(self) -> None:
        """One partition goes to and fro; the moves are slow, so one may be under way."""
        while not self._stopped.is_set():
            try:
                with Line(self.broker) as line:
                    for target in itertools.cycle(self.folders):
                        if self._stopped.wait(0.3):
                            return
                        alter(line, target, "moving")
            except (OSError, EOFError):
                self._stopped.wait(0.1)


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Everything]:
    made = Everything([tmp_path / "one", tmp_path / "two"])
    try:
        made.make_topics()
        yield made
    finally:
        made.broker.kill()
        made.broker.close()


def check(folders: list[Path], capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings."""
    capfd.readouterr()
    words = [word for folder in folders for word in ("--data-dir", str(folder))]
    code = run(["doctor", "check", *words, "--json", *options])
    return code, json.loads(capfd.readouterr().out)["findings"]


def test_a_killed_broker_leaves_what_a_start_mends_and_a_stopped_one_nothing(
    everything: Everything, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with everything.load():
        everything.broker.kill()  # at any point of its work
    _, findings = check(everything.folders, capfd)
    assert [each["line"] for each in findings if not each["mended"]] == []
    copies = [shutil.copytree(folder, tmp_path / "copies" / folder.name) for folder in everything.folders]
    check(copies, capfd, "--repair")
    _, findings = check(copies, capfd)
    assert [each["line"] for each in findings if each["repair"] or not each["mended"]] == []
    everything.broker.start()
    with everything.load():
        everything.broker.stop()
    code, findings = check(everything.folders, capfd)
    assert [each["line"] for each in findings] == []
    assert code == 0
