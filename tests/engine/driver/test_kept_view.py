"""A view and its topic stay in step, whatever fails in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.incremental.flow import DuckFlow
from barnabas.incremental.interface import FlowError
from barnabas.pipelines.stream_writer import MicroBatches, MicroBatchFailed
from barnabas.tables.errors import BadRecord
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping, final_work, work

FIRST = [{"k": "a", "x": 1}, {"k": "b", "x": 2}, {"k": "a", "x": 3}]


class Died(BaseException):
    """The process is gone."""


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    with Broker() as broker:
        made = Keeping(broker.bootstrap_servers, tmp_path)
        yield made
        made.close()


def test_the_first_rows_come_all_at_once_and_then_each_change(keeping: Keeping) -> None:
    keeping.produce(*FIRST)
    keeping.open().begin()
    keeping.take(1, 0, 2)
    assert keeping.written() == []
    assert keeping.progress() is None
    keeping.take(2, 2, 3)
    assert keeping.rows() == {"a": (2, 4), "b": (1, 2)}
    keeping.produce({"k": "b", "x": 5})
    keeping.take(3, 3, 4)
    assert sorted(keeping.written()) == [("a", 2), ("b", 1), ("b", 2)]
    found = keeping.progress()
    assert (found.batch, found.offsets, found.total_in, found.total_out) == (3, {"t": {"0": 4}}, 4, 3)


def test_a_view_of_an_empty_topic_is_there_at_once(keeping: Keeping) -> None:
    keeping.open().begin()
    assert keeping.progress().batch == 0
    assert keeping.rows() == {}


def fail_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let the process die at a place of a micro-batch."""
    real_write, real_commit = MicroBatches.write_here, DuckFlow.commit

    def die(*_: Any, **__: Any) -> None:
        raise Died

    def write_and_die(self: MicroBatches, *arguments: Any) -> None:
        real_write(self, *arguments)
        raise Died

    def commit_and_die(self: DuckFlow) -> None:
        real_commit(self)
        raise Died

    match place:
        case "before the write":
            monkeypatch.setattr(MicroBatches, "write_here", die)
        case "in the write":
            monkeypatch.setattr("barnabas.pipelines.sink.StreamWriter.decide", die)
            monkeypatch.setattr("barnabas.pipelines.sink.StreamWriter.undo", die)
        case "after the write":
            monkeypatch.setattr(MicroBatches, "write_here", write_and_die)
        case "after the commit":
            monkeypatch.setattr(DuckFlow, "commit", commit_and_die)


PLACES = ("before the write", "in the write", "after the write", "after the commit")


@pytest.mark.parametrize("place", PLACES)
def test_a_change_is_written_once_wherever_the_process_dies(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    keeping.produce(*FIRST)
    keeping.open().begin()
    keeping.take(1, 0, 3)
    keeping.produce({"k": "b", "x": 5}, {"k": "c", "x": 7})
    with monkeypatch.context() as patched:
        fail_at(patched, place)
        with pytest.raises(Died):
            keeping.take(2, 3, 5)
    keeping.open().begin()
    keeping.take(2, 3, 5)
    assert sorted(keeping.written()) == [("a", 2), ("b", 1), ("b", 2), ("c", 1)]
    assert keeping.rows() == {"a": (2, 4), "b": (2, 7), "c": (1, 7)}
    keeping.produce({"k": "a", "x": 1})
    keeping.take(3, 5, 6)
    assert keeping.rows()["a"] == (3, 5)
    assert keeping.progress().offsets == {"t": {"0": 6}}


@pytest.mark.parametrize("place", PLACES)
def test_the_first_rows_are_written_once_wherever_the_process_dies(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    keeping.produce(*FIRST)
    keeping.open().begin()
    with monkeypatch.context() as patched:
        fail_at(patched, place)
        with pytest.raises(Died):
            keeping.take(1, 0, 3)
    keeping.open().begin()
    keeping.take(1, 0, 3)
    assert sorted(keeping.written()) == [("a", 2), ("b", 1)]
    assert keeping.progress().batch == 1


@pytest.mark.parametrize("place", PLACES)
def test_final_rows_are_written_once_wherever_the_process_dies(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    keeping.produce({"k": "", "x": 1}, {"k": "", "x": 1})
    keeping.open(final_work()).begin()
    keeping.take(1, 0, 2)
    assert keeping.written() == []
    keeping.produce({"k": "", "x": 4}, {"k": "", "x": 2}, {"k": "", "x": 0}, {"k": "", "x": None})
    with monkeypatch.context() as patched:
        fail_at(patched, place)
        with pytest.raises(Died):
            keeping.take(2, 2, 5)  # the watermark before is 0, and after it 3
    keeping.open(final_work()).begin()
    keeping.take(2, 2, 5)
    assert sorted(keeping.written()) == [("0", 1), ("1", 2), ("2", 1)]
    keeping.take(3, 5, 6)  # without a time
    keeping.produce({"k": "", "x": 2}, {"k": "", "x": 9})
    keeping.take(4, 6, 8)
    assert keeping.rows() == {"0": (1, 0), "1": (2, 2), "2": (1, 2), "4": (1, 4)}
    assert len(keeping.written()) == 4
    assert keeping.progress().late_rows == 2


def test_another_generation_replaces_the_rows_of_the_one_before(keeping: Keeping) -> None:
    keeping.produce({"k": "a", "x": 1}, {"k": "b", "x": 2}, keys=[b"1", b"2"])
    keeping.open(work(is_keyed=True)).begin()
    keeping.take(1, 0, 2)
    assert keeping.rows() == {"a": (1, 1), "b": (1, 2)}
    keeping.produce(None, {"k": "c", "x": 9}, keys=[b"1", b"3"])
    keeping.open(work(is_keyed=True), generation=1).begin()
    keeping.take(1, 0, 3)
    assert keeping.rows() == {"a": (1, 1), "b": (1, 2)}, "what was there stays until the whole result is there"
    keeping.take(2, 3, 4)
    assert keeping.rows() == {"b": (1, 2), "c": (1, 9)}
    assert keeping.progress().generation == 1


def test_rows_that_fail_leave_the_view_as_it_was(keeping: Keeping) -> None:
    keeping.produce(*FIRST)
    keeping.open().begin()
    keeping.take(1, 0, 3)
    keeping.produce({"k": "a", "x": 2**63 - 1})
    with pytest.raises(FlowError, match="out of range"):
        keeping.take(2, 3, 4)
    assert keeping.rows() == {"a": (2, 4), "b": (1, 2)}
    assert keeping.progress().batch == 1


def test_a_record_that_does_not_fit_ends_a_view_in_the_mode_fail(keeping: Keeping) -> None:
    keeping.produce(*FIRST)
    keeping.open(work(mode="fail")).begin()
    keeping.take(1, 0, 3)
    keeping.produce(b"no json")
    with pytest.raises(BadRecord, match="t-0"):
        keeping.take(2, 3, 4)
    assert keeping.progress().batch == 1


def test_a_topic_that_is_gone_fails_the_write_and_nothing_is_lost(keeping: Keeping) -> None:
    keeping.produce(*FIRST)
    keeping.open().begin()
    keeping.client.delete_topics(["v"])
    with pytest.raises(MicroBatchFailed, match="v"):
        keeping.take(1, 0, 3)
    assert keeping.progress() is None
