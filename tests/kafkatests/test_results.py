"""Compares the results of Kafka's tests with the expected ones, test by test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafkatests.__main__ import lines_of
from tests.kafkatests.results import Expected, Result, differences, read_expected, result_of
from tests.processes import is_alive
from tests.waiting import wait_until

EXPECTED = Expected(1, {"T.fails [1]": ("failed", "asks for a plug-in")})
GOOD = [Result("T.passes [1]", "passed", 5), Result("T.fails [1]", "failed", 5, "boom")]


def test_a_line_of_the_runner_is_read() -> None:
    assert result_of("RESULT\tT\tfails [1]\tfailed\t12\tboom\n") == Result("T.fails [1]", "failed", 12, "boom")
    assert result_of("something else\n") is None


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (GOOD, []),
        (GOOD[:1], ["T.fails [1]: did not run, expected failed"]),
        (GOOD[1:], ["0 tests passed, expected 1"]),
        ([GOOD[0], GOOD[1]._replace(outcome="passed")], ["T.fails [1]: passed, expected failed (asks for a plug-in)"]),
        ([*GOOD, Result("T.new [1]", "failed", 5, "bang")], ["T.new [1]: failed, expected passed (bang)"]),
    ],
)
def test_each_difference_is_said(results: list[Result], said: list[str]) -> None:
    assert differences(results, EXPECTED, whole=True) == said


@pytest.mark.parametrize(("outcome", "said"), [("passed", 0), ("failed", 0), ("aborted", 1)])
def test_a_race_may_pass_or_fail(outcome: str, said: int) -> None:
    expected = Expected(0, {"T.races [1]": ("either", "hangs on the client's clock")})
    assert len(differences([Result("T.races [1]", outcome, 5)], expected, whole=True)) == said


def test_what_the_runner_started_ends_with_the_runner(tmp_path: Path) -> None:
    """Brokers are in the runner's process group, and it may be killed."""
    command = ["sh", "-c", "sleep 600 > /dev/null & echo $!; kill -9 $$"]
    (line,) = lines_of(command, tmp_path / "log")
    wait_until(lambda: not is_alive(int(line)))


def test_some_classes_say_nothing_of_the_others() -> None:
    assert differences(GOOD[:1], EXPECTED, whole=False) == []


@pytest.mark.parametrize("name", ["expected-clients.tsv", "expected-streams.tsv", "expected-connect.tsv"])
def test_each_expectation_in_the_repository_has_its_reason(name: str) -> None:
    expected = read_expected(Path(__file__).parent / name)
    assert expected.passing > 0
    assert all(len(reason) > 20 for _, reason in expected.others.values())
