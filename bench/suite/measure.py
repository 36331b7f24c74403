"""One figure of several systems: every repetition measures each system once, and the first system of one repetition is the last
of the next.

Rules
  1. A repetition that does not count warms up each system. While one system is measured, all others are stopped (`standstill`).
  2. CPU and memory are of the part inside `Meter`. The share of the machine's CPU that neither a system nor the client used is
     recorded too.
  3. A `fresh` measure starts a system for each repetition, while the others are stopped, in memory that was used just before
     (`memory`).
  4. If a system cannot do a case, the result is a dash with the reason. The same is true for a `BadAnswer`, an unreadable
     answer or a lost connection: the figure of this system is invalid, those of the others are valid. A line of several places
     ends there, and keeps the places before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from subprocess import SubprocessError
from typing import Any

from bench import memory
from bench.meter import Figures, Meter
from bench.peers.peer import CannotDo, Peer, PeerUnavailable
from bench.standstill import standing_still
from bench.wire import BadAnswer

BARE, FAILED = "bare", "failed"
PLACE = "place"  # "place_<number>" is the position of "at_<number>" on the axis, if it is not the number itself
FRESH_MB = 1_000  # MB of free page cache for a starting system
FAILURES = (CannotDo, BadAnswer, PeerUnavailable, OSError, SubprocessError, ValueError)


@dataclass(frozen=True, slots=True)
class Options:
    """The amounts of a measurement; the page shows them."""

    rounds: int = 5
    messages: int = 1_000_000
    seconds: float = 1.0
    stored_mb: int = 2_000
    large_mb: int = 30_000
    connections: tuple[int, ...] = (1_000, 10_000)


Run = Callable[[Peer, Meter], Figures]


@dataclass(frozen=True, slots=True)
class View:
    """Another figure of the same repetitions, shown as a measure of its own.

    `missing` is the reason why a system may have no figure. `bare_name` names the compared loop, if it is not that of the
    measure.
    """

    name: str
    title: str
    unit: str
    figure: str
    higher_is_better: bool = False
    limit: float | None = None
    missing: str = ""
    bare_name: str | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """`run` returns the figures of a repetition: the main one as "value", and "messages" if the page shows CPU for a million
    messages.

    Without a `warm_up`, a first `run` does not count. `bare` measures a limit for all systems, usually a loop of system calls.
    """

    name: str
    title: str
    unit: str
    run: Run
    higher_is_better: bool = True
    warm_up: Callable[[Peer], None] | None = None
    clean_up: Callable[[Peer], None] | None = None
    bare: Callable[[], Figures] | None = None
    bare_name: str = "bare system calls"
    is_fresh: bool = False
    target: float | None = None  # for the ratio to Apache Kafka
    limit: float | None = None  # for the figure of barnabas itself
    views: tuple[View, ...] = ()
    across: str | None = None  # label of the axis, if the figures "at_<number>" are points of a line (see PLACE)


@dataclass(slots=True)
class Measured:
    """The repetitions of each system, and the reasons for systems without any."""

    measure: Measure
    runs: dict[str, list[Figures]] = field(default_factory=dict)
    dashes: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)  # reasons why lines end before the last place

    def as_json(self) -> list[dict[str, Any]]:
        """The measure, followed by its views."""
        what = self.measure
        whole = {
            "name": what.name,
            "title": what.title,
            "unit": what.unit,
            "higher_is_better": what.higher_is_better,
            "target": what.target,
            "limit": what.limit,
            "across": what.across,
            "bare_name": what.bare_name,
            "runs": self.runs,
            "dashes": self.dashes,
            "ends": self.ends,
        }
        return [whole, *(self._seen(view) for view in what.views)]

    def _seen(self, view: View) -> dict[str, Any]:
        without = [
            key
            for key, runs in self.runs.items()
            if (view.missing or key == BARE) and not any(view.figure in run for run in runs)
        ]
        return {
            "name": view.name,
            "title": view.title,
            "unit": view.unit,
            "higher_is_better": view.higher_is_better,
            "target": None,
            "limit": view.limit,
            "across": None,
            "bare_name": view.bare_name or self.measure.bare_name,
            "runs": {key: [{"value": run[view.figure]} for run in runs] for key, runs in self.runs.items() if key not in without},
            "dashes": {**self.dashes, **dict.fromkeys((key for key in without if key != BARE), view.missing)},
            "ends": {},
        }


def take_turns(
    measure: Measure, peers: Mapping[str, Peer], makers: Mapping[str, Callable[[], Peer]], rounds: int, *, are_up: bool = True
) -> Measured:
    """All repetitions of one measure; `makers` has a maker for each of `peers`; the peers run already if `are_up`."""
    measured = Measured(measure)
    able = [key for key in peers if _warm_up(measure, key, peers[key], measured)]
    for number in range(rounds):
        for key in able if number % 2 == 0 else reversed(able):
            if key not in measured.dashes:
                others = [peer for other, peer in peers.items() if are_up and (other != key or measure.is_fresh)]
                with standing_still(_pids(others)):
                    _repeat(measure, key, peers, makers, measured)
        if measure.bare is not None:
            with standing_still(_pids(peers.values() if are_up else ())):
                measured.runs.setdefault(BARE, []).append(measure.bare())
    if measure.clean_up is not None:
        for key in able:
            _try(partial(measure.clean_up, peers[key]), key, measured)
    return measured


def _pids(peers: Iterable[Peer]) -> list[int]:
    return [pid for peer in peers for pid in peer.pids]


def _warm_up(measure: Measure, key: str, peer: Peer, measured: Measured) -> bool:
    """Warm up a system; returns whether it can do the measure."""
    if measure.is_fresh:
        return True
    warm_up = measure.warm_up
    return _try((lambda: _once(measure, peer, Meter(peer.pids))) if warm_up is None else (lambda: warm_up(peer)), key, measured)


def _repeat(
    measure: Measure, key: str, peers: Mapping[str, Peer], makers: Mapping[str, Callable[[], Peer]], measured: Measured
) -> None:
    def once() -> None:
        if measure.is_fresh:
            memory.use(FRESH_MB)
            with makers[key]() as peer:
                meter = Meter(peer.pids)
                figures = _once(measure, peer, meter)
        else:
            meter = Meter(peers[key].pids)
            figures = _once(measure, peers[key], meter)
        measured.runs.setdefault(key, []).append(figures)
        if meter.ended:
            measured.ends[key] = meter.ended

    _try(once, key, measured)


def _try(what: Callable[[], object], key: str, measured: Measured) -> bool:
    """Call `what`; returns whether it succeeded. If a system cannot do it, or fails, its result is a dash, with the figures so
    far."""
    try:
        what()
    except FAILURES as error:
        measured.dashes[key] = reason_of(error)
    else:
        return True
    measured.runs.pop(key, None)
    measured.ends.pop(key, None)
    return False


def reason_of(error: Exception) -> str:
    """The text on the page for one of `FAILURES`. If an interruption caused the failure, raises the interruption instead."""
    if isinstance(error, CannotDo):
        return str(error)
    if isinstance(error.__context__, SystemExit | KeyboardInterrupt):
        raise error.__context__ from None
    return f"{FAILED}: {' '.join(str(error).split())}"


def _once(measure: Measure, peer: Peer, meter: Meter) -> Figures:
    figures = {**measure.run(peer, meter), **meter.figures}
    if figures.get("messages") and "cpu_s" in figures:
        figures["cpu_s_per_million"] = figures["cpu_s"] / figures["messages"] * 1e6
    return figures
