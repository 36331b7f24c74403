"""Reference counts free unused objects: a broker of many logs keeps the garbage collector from visiting them (`server/gc_tuning`)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment
from tests.storage.support import append, open_log


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def used_log(folder: Path) -> Log:
    """One of several segments of which every part was used."""
    log = open_log(folder, TopicConfig(segment_bytes=2000))
    for number in range(20):
        append(log, b"x" * 300, producer_id=1, producer_epoch=0, base_sequence=number)
    assert log.reader.read(0, 10_000, limit_offset=20, minimum_one=True) is not None
    log.truncator.truncate_to(18)
    log.truncator.delete_records_before(10)
    return log


@pytest.mark.parametrize(
    "end", [Log.close, Log.abandon, lambda log: log.detach_all().remove()], ids=["close", "abandon", "delete"]
)
def test_a_log_that_is_out_of_use_goes_at_once(tmp_path: Path, end: Callable[[Log], None]) -> None:
    log = used_log(tmp_path)
    end(log)
    assert log.reader.latest_epoch >= 0, "what is known of it can be asked while somebody has it"
    is_there = weakref.ref(log)
    del log
    assert is_there() is None


def segments(log_folder: Path) -> int:
    """How many there are, of which somebody knows or not."""
    return sum(isinstance(found, Segment) and found.directory == log_folder for found in gc.get_objects())


def test_segments_that_left_a_log_go_when_their_files_are_removed(tmp_path: Path) -> None:
    log = used_log(tmp_path)
    folder = log.directory
    assert segments(folder) == len(log.segments) > 2
    log.truncator.detach_below_start()
    for garbage in log.truncator.take_garbage():
        garbage.remove()
    del garbage
    assert segments(folder) == len(log.segments)
    log.detach_all().remove()
    del log
    assert segments(folder) == 0
