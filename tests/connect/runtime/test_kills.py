"""A task that dies at any moment goes on without loss, and a source without a row twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.transactions import Owner
from barnabas.connect.api import Identity
from barnabas.connect.plugins.file_stream import FileStreamSink
from barnabas.connect.runtime.sink_task import SinkTask
from barnabas.connect.runtime.transaction import TransactionalWriter
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_file_stream import append, sink, source
from tests.waiting import wait_until


class Died(BaseException):
    """The process is gone."""


def die_once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, *, after: bool) -> list[str]:
    """Let the process die at a call, before it or after it."""
    real, died = getattr(owner, name), list[str]()

    def call(*arguments: Any, **more: Any) -> Any:
        if died:
            return real(*arguments, **more)
        if after:
            real(*arguments, **more)
        died.append(name)
        raise Died

    monkeypatch.setattr(owner, name, call)
    return died


@pytest.mark.parametrize("place", ["before the write", "before the commit", "after the commit"])
def test_lines_come_once_whenever_the_source_dies(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    tasks.create_topic()
    append(tasks, b"a\nb\nc\n")
    if place == "before the write":
        died = die_once(monkeypatch, TransactionalWriter, "write", after=False)
    else:
        died = die_at_the_end(monkeypatch, after=place == "after the commit")
    task = tasks.start(source(tasks))
    wait_until(lambda: died and task.failure() is not None, "it did not die")
    tasks.stop(task)
    with tasks.running(source(tasks)) as again:
        append(tasks, b"d\n")
        tasks.until(lambda: b"d" in tasks.values(), again, "the source did not go on")
    assert tasks.values() == [b"a", b"b", b"c", b"d"]


def die_at_the_end(monkeypatch: pytest.MonkeyPatch, *, after: bool) -> list[str]:
    """Let the process die at the end of its first transaction."""
    real, died = TransactionalWriter._end, list[str]()

    def end(self: TransactionalWriter, owner: Owner, *, commit: bool) -> Owner:
        if died or not commit:
            return real(self, owner, commit=commit)
        if after:
            real(self, owner, commit=commit)
        died.append("end")
        raise Died

    monkeypatch.setattr(TransactionalWriter, "_end", end)
    return died


def test_two_of_one_task_fence_each_other(tasks: Tasks) -> None:
    tasks.create_topic()
    append(tasks, b"a\n")
    old = tasks.start(source(tasks))
    tasks.until(lambda: tasks.values() == [b"a"], old, "the line did not come")
    with tasks.running(source(tasks)) as task:
        append(tasks, b"b\n")
        tasks.until(lambda: b"b" in tasks.values(), task, "the line did not come")
        wait_until(lambda: old.failure() is not None, "the old task was not fenced")
    assert tasks.values() == [b"a", b"b"]


@pytest.mark.parametrize("after", [False, True])
def test_a_batch_of_a_sink_comes_again_with_its_identity(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    tasks.create_topic(2)
    tasks.produce("a", "b", partition=0)
    tasks.produce("c", partition=1)
    seen: list[Identity] = []
    real = FileStreamSink.write

    def write(self: FileStreamSink, records: pa.Table, identity: Identity) -> None:
        seen.append(identity)
        real(self, records, identity)

    monkeypatch.setattr(FileStreamSink, "write", write)
    with monkeypatch.context() as dying:
        died = die_once(dying, FileStreamSink, "write", after=after)
        task = tasks.start(sink(tasks))
        wait_until(lambda: died and task.failure() is not None, "it did not die")
        tasks.stop(task)
    tasks.produce("d", partition=0)
    with tasks.running(sink(tasks)) as again:
        tasks.until(lambda: tasks.committed(2) == {0: (3, ""), 1: (1, "")}, again, "the sink did not go on")
    first: Mapping[tuple[str, int], tuple[int, int]] = {(tasks.topic, 0): (0, 2), (tasks.topic, 1): (0, 1)}
    assert [each.ranges for each in seen] == [*([first] if after else []), first, {(tasks.topic, 0): (2, 3)}]


def test_tasks_share_the_partitions(tasks: Tasks) -> None:
    tasks.create_topic(3)
    for partition in range(3):
        tasks.produce(str(partition), partition=partition)
    out = tasks.folder / "out.txt"
    config = {"file": str(out), "topics": tasks.topic}
    one, two = (tasks.start(tasks.job("FileStreamSink", "sink", config, task=each, tasks=2)) for each in range(2))
    assert isinstance(one, SinkTask)
    done = dict.fromkeys(range(3), (1, ""))
    tasks.until(lambda: tasks.committed(3) == done, one, "not all offsets were committed")
    assert sorted(out.read_text().split()) == ["0", "1", "2"]
    assert isinstance(two, SinkTask)
    assert one._reader is not None
    assert two._reader is not None
    assert len(one._reader.positions) + len(two._reader.positions) == 3
    assert not one._reader.positions.keys() & two._reader.positions.keys()
