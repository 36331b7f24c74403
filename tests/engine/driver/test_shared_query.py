"""How long a micro-batch waits for its jobs. `tests/pipelines/test_view_job.py` has the rest, with Spark."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from barnabas.engine.driver import shared_query
from tests.waiting import wait_until


def test_a_micro_batch_waits_for_the_first_job_and_not_long_for_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_query, "PATIENCE_S", 0.0)
    monkeypatch.setattr(shared_query, "PATIENCE", 0.1)
    fast, slow = Future[None](), Future[None]()
    waiting = threading.Thread(target=shared_query._wait_for, args=([slow, fast],))
    waiting.start()
    assert waiting.is_alive()
    fast.set_result(None)
    wait_until(lambda: not waiting.is_alive())
    assert not slow.done()


def test_a_micro_batch_ends_when_all_jobs_have_it() -> None:
    first, last = Future[None](), Future[None]()
    first.set_result(None)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(shared_query._wait_for, [first, last])
        assert not waiting.done()
        last.set_result(None)
        waiting.result(60)
        assert threads.submit(shared_query._wait_for, []).result(60) is None
