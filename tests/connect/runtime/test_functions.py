"""Connectors that are functions in a file."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path

import pytest

from barnabas.connect import ConnectError
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.standalone import connectors_of, run
from tests.connect.runtime.tasks import Tasks
from tests.waiting import wait_until

FILE = """
from barnabas.connect import sink, source

@source(topic="{topic}", key="n")
def numbers(config, offset):
    for n in range(offset.get("n", 0), int(config["last"])):
        yield [{{"n": n, "text": str(n)}}], {{"n": n + 1}}

@sink(topics="{topic}")
def show(records, identity):
    with open("{out}", "a") as file:
        for row in records.to_pylist():
            print(row["key"], row["value"]["text"], file=file)
"""


class Run:
    """The connectors of a file in a thread."""

    def __init__(self, tasks: Tasks, path: Path, config: dict[str, str]) -> None:
        self.stopping = threading.Event()
        self.failure: Exception | None = None
        self._classes, self._config, self._settings = connectors_of(path), config, tasks.settings
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            run(self._classes, self._config, self._settings, self.stopping, lambda _: None)
        except ConnectError as error:
            self.failure = error

    def end(self) -> None:
        self.stopping.set()
        self._thread.join()


def has_lines(out: Path, count: int) -> bool:
    return out.exists() and len(out.read_text().splitlines()) == count


def test_the_connectors_of_a_file_go_on_where_they_were(tasks: Tasks) -> None:
    tasks.create_topic()
    out = tasks.folder / "out.txt"
    path = tasks.folder / "numbers.py"  # a module of Python has the name too
    path.write_text(FILE.format(topic=tasks.topic, out=out))
    for last in (3, 5):
        running = Run(tasks, path, {"last": str(last)})
        wait_until(partial(has_lines, out, last), "the rows did not come")
        running.end()
        assert running.failure is None
    assert out.read_text().splitlines() == ["0 0", "1 1", "2 2", "3 3", "4 4"]
    assert tasks.values() == [b'{"n":%d,"text":"%d"}' % (n, n) for n in range(5)]


def test_a_failing_function_ends_the_run_with_its_reason(tasks: Tasks) -> None:
    tasks.create_topic()
    path = tasks.folder / "broken.py"
    path.write_text(
        "from barnabas.connect import source\n"
        f"@source(topic='{tasks.topic}')\n"
        "def broken(config, offset):\n"
        "    yield [{'a': 1}], {'n': 1}\n"
        "    raise OSError('the device is gone')\n"
    )
    running = Run(tasks, path, {})
    wait_until(lambda: running.failure is not None, "it did not fail")
    running.end()
    assert str(running.failure) == "the connector broken has failed: the device is gone"
    assert tasks.values() == [b'{"a":1}']


def test_a_file_without_connectors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty_file.py").write_text("x = 1\n")
    with pytest.raises(ConnectError, match=r"empty_file\.py has no connector"):
        connectors_of(tmp_path / "empty_file.py")


BIG = """
from barnabas.connect import Batch, source

@source(topic="{topic}")
def {name}(config, offset):
    if offset:
        return
    for part in range(4):
        yield Batch([{{"n": part * 2 + row}} for row in range(2)], None if part < 3 else {{"done": True}})
    {end}
"""


def test_batches_of_one_transaction_come_together_however_many_they_are(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.connect.runtime.source_task.MOST_ROWS", 3)
    tasks.create_topic()
    path = tasks.folder / "parts.py"
    path.write_text(BIG.format(name="parts", topic=tasks.topic, end="yield None"))
    running = Run(tasks, path, {})
    wait_until(lambda: len(tasks.values()) == 8, "the rows did not come")
    running.end()
    assert tasks.values() == [b'{"n":%d}' % n for n in range(8)]


def test_a_source_that_ends_within_a_transaction_writes_nothing_of_it(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.connect.runtime.source_task.MOST_ROWS", 3)
    tasks.create_topic()
    path = tasks.folder / "torn_parts.py"
    path.write_text(BIG.format(name="torn", topic=tasks.topic, end="").replace('{"done": True}', "None"))
    running = Run(tasks, path, {})
    wait_until(lambda: running.failure is not None, "it did not fail")
    running.end()
    assert str(running.failure) == "the connector torn has failed: the source ends within one of its transactions"
    assert tasks.values() == []


TIMED = """
import pyarrow as pa
from barnabas.connect import Batch, source

@source(topic="{topic}")
def {name}(config, offset):
    if not offset:
        columns = {{"value": [{{"n": 1}}, {{"n": 2}}], "timestamp": pa.array({times})}}
        yield Batch(pa.table(columns), {{"done": True}}, is_records=True)
"""
INSERTED = {
    "transforms": "t", "transforms.t.type": "InsertField$Value", "transforms.t.timestamp.field": "at",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false",
}  # fmt: skip


def test_a_source_gives_records_their_times(tasks: Tasks) -> None:
    tasks.create_topic()
    path = tasks.folder / "timed.py"
    path.write_text(TIMED.format(topic=tasks.topic, name="timed", times="[1700000000123, None]"))
    running = Run(tasks, path, INSERTED)
    wait_until(lambda: len(tasks.values()) == 2, "the records did not come")
    running.end()
    assert running.failure is None
    first, second = records_of(tasks._client, tasks.topic)
    assert first.timestamp == 1_700_000_000_123
    assert abs(second.timestamp / 1000 - time.time()) < 3600
    assert tasks.values() == [b'{"n":1,"at":1700000000123}', b'{"n":2,"at":null}']


@pytest.mark.parametrize(
    ("name", "times", "reason"), [("texts", '["x", "y"]', "these are string"), ("early", "[-1, 2]", "it is before 1970")]
)
def test_times_that_are_none_end_the_task(tasks: Tasks, name: str, times: str, reason: str) -> None:
    tasks.create_topic()
    path = tasks.folder / "wrong.py"
    path.write_text(TIMED.format(topic=tasks.topic, name=name, times=times))
    running = Run(tasks, path, {})
    wait_until(lambda: running.failure is not None, "it did not fail")
    running.end()
    assert reason in str(running.failure)
    assert tasks.values() == []
