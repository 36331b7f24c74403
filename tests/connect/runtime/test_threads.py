"""A sink lives in one thread, as connections of sqlite3 must."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pyarrow as pa
import pytest

from barnabas.connect import ConnectError, Identity
from barnabas.connect.api import Config
from barnabas.connect.plugins.file_stream import FileStreamSink
from tests.connect.runtime.tasks import Tasks

Calls = list[tuple[str, int]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found: Calls = []

    def note(name: str) -> None:
        found.append((name, threading.get_ident()))

    def write(self: FileStreamSink, records: pa.Table, identity: Identity) -> None:
        note("write")

    def pre_commit(self: FileStreamSink, offsets: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
        note("pre_commit")
        return offsets

    monkeypatch.setattr(FileStreamSink, "open", lambda self, config: note("open"))
    monkeypatch.setattr(FileStreamSink, "write", write)
    monkeypatch.setattr(FileStreamSink, "pre_commit", pre_commit)
    monkeypatch.setattr(FileStreamSink, "close", lambda self: note("close"))
    return found


def test_a_sink_is_opened_written_and_closed_by_one_thread(tasks: Tasks, calls: Calls) -> None:
    tasks.create_topic()
    tasks.produce("a")
    task = tasks.start(tasks.job("FileStreamSink", "sink", {"file": "/f", "topics": tasks.topic}))
    tasks.until(lambda: "pre_commit" in dict(calls), task, "nothing was committed")
    tasks.stop(task)
    names = [name for name, _ in calls]
    assert (names[0], names[-1], names.count("open"), names.count("close")) == ("open", "close", 1, 1)
    assert {thread for _, thread in calls} == {calls[0][1]} != {threading.get_ident()}


def test_a_sink_that_does_not_open_says_why_and_is_closed(tasks: Tasks, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: FileStreamSink, config: Config) -> None:
        raise ConnectError("the target is not there")

    monkeypatch.setattr(FileStreamSink, "open", refuse)
    job = tasks.job("FileStreamSink", "sink", {"file": "/f", "topics": tasks.topic})
    with pytest.raises(ConnectError, match="the target is not there"):
        tasks.start(job)
    assert [name for name, _ in calls] == ["close"]


def test_a_sink_that_does_not_close_is_in_the_log(
    tasks: Tasks, calls: Calls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: FileStreamSink) -> None:
        raise ConnectError("the target is gone")

    monkeypatch.setattr(FileStreamSink, "close", refuse)
    tasks.create_topic()
    tasks.stop(tasks.start(tasks.job("FileStreamSink", "sink", {"file": "/f", "topics": tasks.topic})))
    assert "open" in dict(calls)
    assert "event=task-not-closed error='the target is gone'" in caplog.text
