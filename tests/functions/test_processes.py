"""Functions run in processes of their own: whatever they do, they harm nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.functions.definition import CallFailed, Function
from barnabas.functions.duck import Known
from barnabas.functions.processes import WORKERS, Cancelled
from tests.functions.making import function
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def used() -> Iterator[None]:
    WORKERS.join()
    yield
    WORKERS.leave()


def called(made: Function, values: list[int], is_cancelled: Any = lambda: False) -> list[Any]:
    found: list[Any] = WORKERS.call(made, pa.int64(), [pa.array(values, pa.int64())], len(values), is_cancelled).to_pylist()
    return found


def test_a_process_is_used_again() -> None:
    process = function("import os\nreturn os.getpid()")
    (first,), (second,) = called(process, [1]), called(process, [1])
    assert first == second != os.getpid()


def test_a_process_that_ends_is_replaced() -> None:
    with pytest.raises(CallFailed, match="the process of the function f ended: exit code 3"):
        called(function("import os\nos._exit(3)"), [1])
    with pytest.raises(CallFailed, match="it crashed"):
        called(function("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"), [1])
    assert called(function("return a"), [1]) == [1]


def test_an_error_and_an_end_of_the_interpreter() -> None:
    with pytest.raises(CallFailed, match=r"KeyError: 'x' \(line 1 of the function\)") as caught:
        called(function("return {}['x']"), [1])
    assert caught.value.detail == "line 1: return {}['x']"
    with pytest.raises(CallFailed, match="SystemExit"):
        called(function("import sys\nsys.exit(1)"), [1])
    with pytest.raises(CallFailed, match="ModuleNotFoundError"):
        called(function("import nothing_of_this_name\ndef f(a):\n    return a"), [1])


def test_a_loop_is_cancelled() -> None:
    running = threading.Event()

    def is_cancelled() -> bool:
        running.set()
        return True

    with pytest.raises(Cancelled):
        called(function("while True:\n    pass"), [1], is_cancelled)
    assert running.is_set()
    assert called(function("return a"), [1]) == [1]


def test_an_answer_that_nobody_read_is_no_answer_of_the_next_call() -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    endless = function("while a:\n    pass\nreturn 99")
    assert called(endless, [0]) == [99]
    with pytest.raises(KeyboardInterrupt):
        called(endless, [1], interrupted)
    assert called(function("return a + 1"), [1]) == [2]


def test_a_call_has_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(function("return a"), [1]) == [1]
    monkeypatch.setattr(limits, "FUNCTION_CALL_S", 0.2)
    with pytest.raises(CallFailed, match="took longer than"):
        called(function("while True:\n    pass"), [1])


def test_memory_is_bounded() -> None:
    most = limits.MAX_FUNCTION_MEMORY_BYTES
    with pytest.raises(CallFailed, match="MemoryError"):
        called(function("return len(bytearray(a))"), [most + 1])
    assert called(function("return len(bytearray(a))"), [1000]) == [1000]


def test_results_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(function("return a"), [1]) == [1]
    monkeypatch.setattr(limits, "MAX_FUNCTION_MESSAGE_BYTES", 1000)
    with pytest.raises(CallFailed, match="the results of the function f are too large"):
        called(function("return a + 1"), list(range(1000)))


def test_processes_end_with_a_server_that_is_killed() -> None:
    code = (
        "from barnabas.functions.processes import WORKERS\n"
        "from tests.functions.making import function\n"
        "import pyarrow as pa, time\n"
        "WORKERS.join()\n"
        "found = WORKERS.call(function('import os\\nreturn os.getpid()'), pa.int64(), [pa.array([1])], 1, lambda: False)\n"
        "print(found[0].as_py(), flush=True)\n"
        "input()\n"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    assert _is_there(pid)
    server.kill()
    server.communicate()
    wait_until(lambda: not _is_there(pid), "the process of a function outlives its server")


def _is_there(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_what_a_function_prints_harms_nothing() -> None:
    assert called(function("import os\nprint('x' * 100_000)\nos.write(1, b'noise')\nreturn a"), [1]) == [1]
    assert called(function("import sys\nreturn len(sys.stdin.read())"), [1]) == [0]


def test_the_environment_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_SECRET", "x")
    WORKERS.leave()  # a process that was started before has its environment
    WORKERS.join()
    assert called(function("import os\nreturn sum('BARNABAS' in each for each in os.environ)"), [1]) == [0]


def test_processes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_FUNCTION_PROCESSES", 1)
    looping, ended = threading.Event(), threading.Event()

    def loop() -> None:
        def is_cancelled() -> bool:
            looping.set()
            return ended.is_set()

        with pytest.raises(Cancelled):
            called(function("while True:\n    pass"), [1], is_cancelled)

    thread = threading.Thread(target=loop)
    thread.start()
    assert looping.wait(60)
    with pytest.raises(Cancelled):  # it waits for a process
        called(function("return a"), [1], lambda: True)
    ended.set()
    thread.join()
    assert called(function("return a"), [1]) == [1]


def test_duckdb_calls_functions_for_many_rows() -> None:
    connection = duckdb.connect()
    known = Known(connection)
    twice = function("return a * 2")
    known.learn([twice, twice])
    assert connection.sql(f"SELECT sum({twice.call}(i)) FROM range(5000) t(i)").fetchall() == [(24995000,)]
    dates = function("return a.replace(year=2030)", "a DATE", "DATE")
    known.learn([dates])
    found = connection.sql(f"SELECT {dates.call}(DATE '2024-05-06')::VARCHAR").fetchall()
    assert found == [("2030-05-06",)]
    connection.close()


def test_an_instance_that_only_checks_calls_nothing() -> None:
    connection = duckdb.connect()
    made = function("return a")
    Known(connection, only_types=True).learn([made])
    assert [str(each) for each in connection.sql(f"SELECT {made.call}(1)").types] == ["BIGINT"]
    with pytest.raises(duckdb.Error, match="cannot be called here"):
        connection.sql(f"SELECT {made.call}(1)").fetchall()
    connection.close()
