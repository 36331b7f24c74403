"""The order in which tests are handed out, and the time that is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parallel.__main__ import main, parts, read, workers
from tests.parallel.plan import OTHER_S, TESTS, Plan, Progress, files_of_spark, read_seconds, write_seconds

FILES = {"tests/a.py": 30.0, "tests/b.py": 100.0, "tests/pipelines/s.py": 20.0, "tests/pipelines/t.py": 90.0}
COLLECTED = [
    "tests/q.py::one",
    "tests/a.py::one",
    "tests/a.py::two",
    "tests/b.py::one",
    "tests/pipelines/s.py::one",
    "tests/pipelines/t.py::one",
    "tests/r.py::one",
]


def plan(*, quick_first: bool = False) -> Plan:
    return Plan(COLLECTED, FILES, frozenset({"tests/pipelines/s.py", "tests/pipelines/t.py"}), quick_first=quick_first)


def test_the_spark_of_each_folder_is_a_unit() -> None:
    elsewhere = Plan(["tests/demo/d.py::one"], {}, frozenset({"tests/demo/d.py"}))
    assert elsewhere.unit("tests/demo/d.py::one") == "spark in tests/demo" != plan().unit("tests/pipelines/s.py::one")


def order(plan: Plan) -> list[str]:
    waiting = list(dict.fromkeys(map(plan.unit, COLLECTED)))
    taken = []
    while waiting:
        taken.append(plan.next_of(waiting))
        waiting.remove(taken[-1])
    return taken


def test_long_units_start_first_and_the_others_keep_their_order() -> None:
    assert order(plan()) == ["spark in tests/pipelines", "tests/b.py", "tests/a.py", "tests/q.py", "tests/r.py"]


def test_quick_units_start_first_in_a_run_of_a_part() -> None:
    spark = "spark in tests/pipelines"
    assert order(plan(quick_first=True)) == ["tests/q.py", "tests/r.py", "tests/a.py", "tests/b.py", spark]


def test_a_file_is_a_unit_whatever_its_tests_are_called() -> None:
    assert plan().unit("tests/a.py::Class::test[a::b]") == "tests/a.py"


def test_what_the_tests_take_together() -> None:
    assert plan().seconds == pytest.approx(240.0 + 2 * OTHER_S)
    assert plan().tests == 7


def test_progress_counts_seconds_rather_than_tests() -> None:
    progress = Progress(plan(), now=1_000.0)
    for test in ("tests/b.py::one", "tests/pipelines/s.py::one"):
        progress.ended(test)
    assert progress.line(1_060.0) == "2 of 7 tests, 50 %, 1:00 so far, about 1:00 left"
    progress.failed = 3
    assert progress.line(1_060.0) == "2 of 7 tests, 50 %, 3 failed, 1:00 so far, about 1:00 left"


def test_nothing_is_said_of_the_rest_before_anything_is_done() -> None:
    assert Progress(plan(), now=0.0).line(75.0) == "0 of 7 tests, 0 %, 1:15 so far"


def test_seconds_are_written_for_long_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "seconds.tsv"
    assert read_seconds(path) == {}
    there = {"tests/waiting.py": 2.0, "tests/locks.py": 0.2, "tests/turns.py": 3.04}
    write_seconds({**there, "tests/gone.py": 9.0}, path)
    assert path.read_text() == "tests/turns.py\t3.0\ntests/waiting.py\t2.0\n"
    assert read_seconds(path) == {"tests/turns.py": 3.0, "tests/waiting.py": 2.0}


def test_the_recorded_files_are_there() -> None:
    assert [file for file in read_seconds() if not (TESTS.parent / file).exists()] == []


def test_each_file_that_uses_the_session_of_spark_has_its_mark() -> None:
    using = {
        str(path.relative_to(TESTS.parent))
        for path in (TESTS / "pipelines").rglob("test_*.py")
        if "spark: SparkSession" in path.read_text()
    }
    assert using - files_of_spark() == set()


@pytest.mark.parametrize("part", ["nowhere", "../src", "conftest.py", "/etc"])
def test_a_part_that_is_not_there_is_answered_with_those_that_are(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([part]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"there is no part {part!r} of the tests; the parts are: bench, cli, ")
    assert "storage" in parts()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("", [])),
        (["storage"], ("storage", [])),
        (["--", "-k", "index"], ("", ["-k", "index"])),
        (["storage", "--", "-x", "-n", "2"], ("storage", ["-x", "-n", "2"])),
    ],
)
def test_options_of_pytest_follow_the_part(arguments: list[str], expected: tuple[str, list[str]]) -> None:
    assert read(arguments) == expected


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 3), (4, 6)])
def test_there_are_more_workers_than_cores(cores: int, expected: int) -> None:
    assert workers(cores) == expected


USER = """
import os, pathlib, pytest
@pytest.mark.parametrize("number", range(5))
def test_it(number):
    with (pathlib.Path(__file__).with_name("workers")).open("a") as file:
        print(pathlib.Path(__file__).name, os.environ["PYTEST_XDIST_WORKER"], file=file)
    assert number != FAILING, "four is too much"
"""


def test_a_run_hands_out_files_and_shows_failures_at_once(tmp_path: Path) -> None:
    for name, failing in (("test_a.py", 9), ("test_b.py", 4), ("test_c.py", 9)):
        (tmp_path / name).write_text(USER.replace("FAILING", str(failing)))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.parallel.plugin",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "--rootdir",
        str(tmp_path),
    ]
    done = subprocess.run([*command, str(tmp_path)], cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    before_the_summary = done.stdout.partition("= FAILURES =")[0]
    assert "FAILED test_b.py::test_it[4] (call): AssertionError: four is too much" in before_the_summary
    assert done.stdout.splitlines()[-1].strip("= ").startswith("1 failed, 14 passed in ")
    ran = [line.split() for line in (tmp_path / "workers").read_text().splitlines()]
    assert len(ran) == 15
    assert {file: len({worker for f, worker in ran if f == file}) for file, _ in ran} == {
        "test_a.py": 1,
        "test_b.py": 1,
        "test_c.py": 1,
    }
