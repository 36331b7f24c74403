"""The driver works while Spark starts. An error of either ends the process with that error."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from barnabas.engine.driver.__main__ import run_beside


def started() -> Any:
    """Stands for a session of Spark."""
    return "spark"


def test_the_work_begins_while_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    made, working = Future[Any](), threading.Event()

    def work() -> bool:
        working.set()
        return bool(made.result(60) == started())

    def spark() -> Any:
        assert working.wait(60)
        return started()

    assert run_beside(work, made, spark, threading.Event())
    assert capsys.readouterr().out == "ready\n"


def test_an_error_of_the_work_is_not_a_good_end() -> None:
    def work() -> bool:
        raise RuntimeError("the work failed")

    with pytest.raises(RuntimeError, match=r"^the work failed$"):
        run_beside(work, Future(), started, threading.Event())


def test_an_error_of_spark_ends_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    made, stopping = Future[Any](), threading.Event()
    ended: list[bool] = []

    def work() -> bool:
        ended.append(stopping.wait(60))
        return True

    def spark() -> Any:
        raise OSError("no Java")

    with pytest.raises(OSError, match=r"^no Java$"):
        run_beside(work, made, spark, stopping)
    assert ended == [True]
    assert str(made.exception(0)) == "no Java"
    assert capsys.readouterr().out == ""
