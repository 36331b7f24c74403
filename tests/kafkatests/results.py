"""The results of Kafka's tests, and the expected ones: two texts that are held against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

PASSED = "passed"
EITHER = "either"  # for a test whose outcome depends on a race that no broker decides


class Result(NamedTuple):
    """Of one test.

    Args:
        name: class and method, and the number and tags of the cluster where the test runs on several.
        why: of one that did not pass, what was thrown.
    """

    name: str
    outcome: str
    took_ms: int
    why: str = ""


class Expected(NamedTuple):
    """The expected results of the tests.

    Args:
        passing: the least number of tests that pass.
        others: the outcome and the reason of each other test (`either`: it may pass or fail).
    """

    passing: int
    others: Mapping[str, tuple[str, str]]


def result_of(line: str) -> Result | None:
    """The result of a test in a line of the runner; None if the line has none."""
    words = line.rstrip("\n").split("\t")
    if words[0] != "RESULT" or len(words) != 6:
        return None
    _, of_class, test, outcome, took_ms, why = words
    return Result(f"{of_class}.{test}", outcome, int(took_ms), why)


def read_expected(path: Path) -> Expected:
    """`passed N` in the first line, then name, outcome and reason of each test that does not pass; raises ValueError."""
    first, *lines = path.read_text().splitlines()
    others = {}
    for line in lines:
        name, outcome, reason = line.split("\t")
        if outcome not in {"failed", "aborted", EITHER} or not reason:
            raise ValueError(f"{path}: {line}")
        others[name] = outcome, reason
    word, _, count = first.partition(" ")
    if word != PASSED:
        raise ValueError(f"{path}: the first line has no number of tests that pass")
    return Expected(int(count), others)


def differences(results: Iterable[Result], expected: Expected, *, whole: bool) -> list[str]:
    """One line for each result that is not the expected one.

    Args:
        whole: all tests were run.
    """
    found, seen, passing = [], set(), 0
    for result in results:
        seen.add(result.name)
        passing += result.outcome == PASSED
        wanted, reason = expected.others.get(result.name, (PASSED, ""))
        if result.outcome != wanted and not (wanted == EITHER and result.outcome in {PASSED, "failed"}):
            found.append(f"{result.name}: {result.outcome}, expected {wanted} ({reason or result.why})")
    if whole:
        found += [
            f"{name}: did not run, expected {outcome}" for name, (outcome, _) in expected.others.items() if name not in seen
        ]
        if passing < expected.passing:
            found.append(f"{passing} tests passed, expected {expected.passing}")
    return found
