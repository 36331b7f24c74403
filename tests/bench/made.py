"""Cases, measures and results that tests of the suite make, small and of no process."""

from __future__ import annotations

from collections.abc import Callable

from bench.meter import Figures, Meter
from bench.peers.peer import CannotDo, Message, Peer
from bench.suite import results
from bench.suite.case import Case, Outcome
from bench.suite.growth import Point
from bench.suite.linkedin import producing
from bench.suite.measure import Measure, Options

OPTIONS = Options(rounds=2, messages=1_000, seconds=1.0, stored_mb=20, large_mb=10)


def case_of(*measures: Measure, charts: tuple[str, ...] = ()) -> Case:
    return Case("a-case", "A case", "What it is.", lambda options: measures, charts=charts)


def rate_of(name: str, run: Callable[[Peer, Meter], Figures], *, target: float | None = None) -> Measure:
    return Measure(name, name, "messages/s", run, target=target)


def produce_50() -> Measure:
    return rate_of("fifty", producing(Message(100, 50, 1), OPTIONS), target=2.0)


def result_of(case: Case, outcome: Outcome) -> results.Result:
    return results.describe(
        case.name,
        text=case.text,
        command="python -m bench run a-case",
        options=OPTIONS,
        peers=outcome.peers,
        measured=outcome.measured,
    )


def up_to(most: int, place: int) -> Point:
    if place > most:
        raise CannotDo("more than it takes")
    return Point(10.0 / place, 1.0, 50.0)
