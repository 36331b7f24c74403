"""The cleaner process from the inside: which engine it takes, how it keeps to its rate and is stopped."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.util import find_spec

import pytest

from barnabas.server.cleaning.worker import COMPILED_FROM_BYTES, EXIT_ALONE, Cancelled, Meter, Throttle, Worker
from barnabas.storage.compaction.plain import PlainEngine

COMPILED = "barnabas.storage.compaction.compiled"
SAY = "from barnabas.server.cleaning.worker import Worker; input(); Worker().say(clean=1, cancelled=True)"


def test_small_logs_are_not_worth_loading_numba() -> None:
    assert isinstance(Worker()._engine_for(COMPILED_FROM_BYTES - 1), PlainEngine)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_once_loaded_it_serves_small_logs_too() -> None:
    worker = Worker()
    engine = worker._engine_for(COMPILED_FROM_BYTES)
    assert not isinstance(engine, PlainEngine)
    assert worker._engine_for(1) is engine


def test_a_numba_that_does_not_work_is_done_without(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, COMPILED, None)
    worker = Worker()
    worker._may_compile = True
    with caplog.at_level(logging.WARNING):
        assert isinstance(worker._engine_for(COMPILED_FROM_BYTES), PlainEngine)
        assert isinstance(worker._engine_for(COMPILED_FROM_BYTES), PlainEngine)
    assert len([record for record in caplog.records if "event=compacting-without-numba" in record.getMessage()]) == 1


def test_all_cleanings_together_keep_to_the_rate() -> None:
    throttle = Throttle()
    assert throttle.spend(10**9) <= 0
    throttle.bytes_per_second = 1000.0
    waits = [throttle.spend(500) for _ in range(4)]
    assert waits == sorted(waits)
    assert 1 < waits[-1] <= 2  # less if the machine made the test wait in between


def test_a_cleaning_that_is_cancelled_ends_at_its_next_read(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, throttle = Worker(), Throttle()
    monkeypatch.setattr(worker, "say", lambda **_: None)
    meter = Meter(worker, 1, throttle)
    meter.count(10, 10)
    worker._cancelled.add(1)
    throttle.bytes_per_second = 1e-3  # without the cancellation, a wait of hours
    with pytest.raises(Cancelled):
        meter.count(10, 10)


def test_it_ends_without_a_word_when_nobody_reads_what_it_says() -> None:
    command = [sys.executable, "-c", SAY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.close()
        _, told = worker.communicate(b"\n", timeout=30)
    assert (worker.returncode, told) == (EXIT_ALONE, b"")
