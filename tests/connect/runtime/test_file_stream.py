"""Lines of a file into a topic, and back: Kafka Connect's first example."""

from __future__ import annotations

import math
import re
import resource
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from barnabas.connect.api import Batch, Identity
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.file_stream import FileStreamSink, FileStreamSource, lines_of
from barnabas.connect.runtime import source_task
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.engine.jobs import ConnectorWork, Job
from tests.connect.runtime.tasks import STRINGS, Tasks
from tests.waiting import wait_until


def source(tasks: Tasks) -> Job:
    return tasks.job(
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "source",
        {"file": str(tasks.folder / "in.txt"), "topic": tasks.topic},
    )


def sink(tasks: Tasks) -> Job:
    return tasks.job("FileStreamSink", "sink", {"file": str(tasks.folder / "out.txt"), "topics": tasks.topic})


def append(tasks: Tasks, data: bytes) -> None:
    with (tasks.folder / "in.txt").open("ab") as file:
        file.write(data)


def offsets(tasks: Tasks) -> list[object]:
    found = records_of(tasks._client, "connect-offsets")
    pairs = [(msgspec.json.decode(each.key or b""), msgspec.json.decode(each.value or b"")) for each in found]
    return [offset for (name, _), offset in pairs if name == tasks.name]


def test_lines_come_into_the_topic_and_the_source_goes_on_where_it_was(tasks: Tasks) -> None:
    append(tasks, b"one\ntwo\r\nth")
    with tasks.running(source(tasks)) as task:
        tasks.until(lambda: tasks.values() == [b"one", b"two"], task, "the lines did not come")
        append(tasks, b"ree\n\n")
        tasks.until(lambda: tasks.values() == [b"one", b"two", b"three", b""], task, "the other lines did not come")
    append(tasks, b"four\n")
    with tasks.running(source(tasks)) as task:
        tasks.until(lambda: tasks.values()[4:] == [b"four"], task, "the source did not go on")
    assert offsets(tasks)[-1] == {"position": 21}


def test_a_source_waits_for_its_file(tasks: Tasks) -> None:
    with tasks.running(source(tasks)) as task:
        tasks.until(task.has_settled, task, "it does not work")
        append(tasks, b"a\n")
        tasks.until(lambda: tasks.values() == [b"a"], task, "the line did not come")
    assert offsets(tasks) == [{"position": 2}]


def test_records_come_into_the_file_and_the_sink_goes_on_where_it_was(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce("a", "b")
    out = tasks.folder / "out.txt"
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: out.read_bytes() == b"a\nb\n", task, "the records did not come")
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    tasks.produce("c")
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: tasks.committed()[0][0] == 3, task, "the sink did not go on")
    assert out.read_bytes() == b"a\nb\nc\n"


def test_a_sink_waits_for_its_topics(tasks: Tasks) -> None:
    out = tasks.folder / "out.txt"
    job = tasks.job("FileStreamSink", "sink", {"file": str(out), "topics": f"{tasks.topic},{tasks.topic}-two"})
    with tasks.running(job) as task:
        tasks.until(task.has_settled, task, "it does not work")
        tasks.create_topic()
        tasks.produce("a")
        tasks.until(lambda: out.read_bytes() == b"a\n", task, "the record of the first topic did not come")
        tasks.topic = f"{tasks.topic}-two"
        tasks.create_topic(2)
        tasks.produce("b", partition=1)
        tasks.until(lambda: tasks.committed(2)[1][0] == 1, task, "the record of the other topic did not come")
    assert out.read_bytes() == b"a\nb\n"


def has_line(path: Path, line: str) -> bool:
    return line in path.read_text().splitlines()


def test_a_sink_reads_the_topics_of_a_pattern(tasks: Tasks) -> None:
    out = tasks.folder / "out.txt"
    job = tasks.job("FileStreamSink", "sink", {"file": str(out), "topics.regex": f"{tasks.topic}-[ab]"})
    name = tasks.topic
    with tasks.running(job) as task:
        for each in "ab":
            tasks.topic = f"{name}-{each}"
            tasks.create_topic()
            tasks.produce(each)
            tasks.until(partial(has_line, out, each), task, "the record did not come")
    assert out.read_bytes() == b"a\nb\n"


def test_a_file_that_cannot_be_written_fails_the_start(tasks: Tasks) -> None:
    tasks.create_topic()
    job = tasks.job("FileStreamSink", "sink", {"file": str(tasks.folder / "no" / "out.txt"), "topics": tasks.topic})
    with pytest.raises(ConnectError, match=r"out\.txt cannot be written: No such file or directory"):
        tasks.start(job)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\rc\n", ["a", "b", "c"]),
        (b"\n\n", ["", ""]),
        ("\u00fc\n".encode(), ["ü"]),
        (b"\xff\n", ["�"]),
    ],
)
def test_lines(data: bytes, lines: list[str]) -> None:
    assert lines_of(data).to_pylist() == lines


def test_references_to_secrets_are_resolved_in_the_task(tasks: Tasks) -> None:
    secrets = tasks.folder / "secrets.properties"
    secrets.write_text(f"path={tasks.folder / 'in.txt'}\n")
    append(tasks, b"a\n")
    worker = {
        **STRINGS, "config.providers": "file", "config.providers.file.class": "FileConfigProvider",
    }  # fmt: skip
    config = {"file": f"${{file:{secrets}:path}}", "topic": tasks.topic}
    job = tasks.job("FileStreamSource", "source", config, worker)
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.values() == [b"a"], task, "the line did not come")
    assert isinstance(job.work, ConnectorWork)
    assert job.work.config["file"] == config["file"]  # only the reference is written to the topic


def test_a_full_disk_leaves_no_part_of_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    sink = FileStreamSink()
    sink.open({"file": str(path)})
    lines = pa.table({"value": ["first line", "second line"]})
    sink.write(lines, Identity("full", {}))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, limits[1]))
    try:
        with pytest.raises(ConnectError, match=re.escape(f"{path} cannot be written: File too large")):
            sink.write(lines, Identity("full", {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "first line\nsecond line\n"
    sink.write(lines, Identity("full", {}))
    sink.close()
    assert path.read_text() == 2 * "first line\nsecond line\n"


def test_a_source_that_may_wait_for_its_connection_has_not_settled(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status still has the failure before, until it has read something or a while has passed."""
    ended, idle = threading.Event(), list[int]()

    def read(*_: object) -> Iterator[Batch | None]:
        ended.wait()
        yield None

    monkeypatch.setattr(FileStreamSource, "read", read)
    monkeypatch.setattr(FileStreamSource, "close", lambda _: ended.set())
    monkeypatch.setattr(SourceTask, "tell", lambda _: idle.append(1))
    monkeypatch.setattr(source_task, "SETTLED_S", math.inf)
    tasks.create_topic()
    task = tasks.start(source(tasks))
    wait_until(lambda: len(idle) > 2, "it is not idle")
    assert not task.has_settled()
    monkeypatch.setattr(source_task, "SETTLED_S", 0.0)
    wait_until(task.has_settled)
    tasks.stop(task)
