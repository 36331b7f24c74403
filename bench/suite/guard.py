"""`python -m bench guard`: a quick check whether a case has become slower since its last recorded results. It only reports.

Rates depend on the machine and its other work. So the guard compares the ratio to a bare loop of system calls in the same
minute. The recorded results contain this ratio, and the guard measures it again. A measure without such a loop is not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.figures import ratio
from bench.suite.case import Say
from bench.suite.measure import BARE

SLOWER_BY = 0.10
OURS = "barnabas"
Measure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """The ratio of a measure's rate now to its recorded rate: below 1 is slower."""

    name: str
    factor: float

    @property
    def is_slower(self) -> bool:
        return self.factor < 1.0 - SLOWER_BY


def compare(name: str, before: Measure, now: Measure) -> Change | None:
    """The change of a measure; None if it has no bare loop, then or now."""
    was, has = ratio(before, OURS, BARE), ratio(now, OURS, BARE)
    return Change(name, has / was) if was and has else None


def report(changes: Sequence[Change], say: Say) -> None:
    for change in changes:
        mark = "SLOWER" if change.is_slower else "ok"
        say(f"{mark:<7} {change.name:<34} {change.factor:5.2f}x of the share of the bare loop that was recorded")
    slower = [change.name for change in changes if change.is_slower]
    say(f"{len(slower)} of {len(changes)} became {SLOWER_BY:.0%} slower{': ' + ', '.join(slower) if slower else ''}")


def guard(case: str, recorded: dict[str, Any] | None, measure: Callable[[], dict[str, Any]], say: Say) -> list[Change]:
    """Measure a case again and compare it with its recorded results."""
    if recorded is None:
        say(f"{case}: nothing is recorded; `python -m bench run {case}` does it")
        return []
    before = {each["name"]: each for each in recorded["measures"]}
    now = {each["name"]: each for each in measure()["measures"]}
    found = [compare(f"{case}/{name}", before[name], now[name]) for name in now if name in before]
    return [change for change in found if change is not None]
