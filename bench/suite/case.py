"""A case of the suite: it measures running systems, or starts systems itself with their makers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from bench.figures import spread, values
from bench.peers.peer import Peer, PeerUnavailable
from bench.suite.measure import Measure, Measured, Options, take_turns
from bench.suite.results import describe_peer

Makers = Mapping[str, Callable[[], Peer]]
Say = Callable[[str], None]
_numbers = itertools.count()


def fresh_name(what: str) -> str:
    """The name of a topic that no earlier measurement used: a deleted topic still uses resources for some time."""
    return f"bench-{what}-x{next(_numbers)}"


@contextmanager
def fresh_topic(peer: Peer, what: str, partitions: int = 1, *, largest_bytes: int = 0) -> Iterator[str]:
    """A topic that exists for one measurement."""
    topic = fresh_name(what)
    peer.create(topic, partitions, largest_bytes=largest_bytes)
    try:
        yield topic
    finally:
        peer.delete(topic)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measurements of a case, and the measured systems."""

    peers: dict[str, dict[str, Any]]
    measured: list[Measured]


@dataclass(frozen=True, slots=True)
class Case:
    """`measures` are measured for all systems while all are up. `only` names the systems that can do the case, `why` says what
    the others lack."""

    name: str
    title: str
    text: str
    measures: Callable[[Options], Sequence[Measure]]
    only: tuple[str, ...] | None = None
    why: str = ""
    charts: tuple[str, ...] = ()  # names of the measures that share a bar chart

    def run(self, makers: Makers, options: Options, say: Say, wanted: Sequence[str] = ()) -> Outcome:
        """Run all measures, or those with the names in `wanted`."""
        peers: dict[str, Peer] = {}
        described: dict[str, dict[str, Any]] = {}
        with ExitStack() as running:
            for key, make in makers.items():
                if self.only is not None and key not in self.only:
                    described[key] = {"name": getattr(make, "name", key), "cannot": self.why}
                    continue
                try:
                    peers[key] = running.enter_context(make())
                except PeerUnavailable as error:
                    described[key] = {"name": getattr(make, "name", key), "unavailable": str(error)}
                    say(f"{key}: not measured: {error}")
                else:
                    described[key] = describe_peer(peers[key])
            measured, measures = [], [each for each in self.measures(options) if not wanted or each.name in wanted]
            are_up = not all(measure.is_fresh for measure in measures)
            if not are_up:
                running.close()  # stop the running systems: each measure starts its own
            for measure in measures:
                found = take_turns(measure, peers, makers, options.rounds, are_up=are_up)
                found.dashes |= {key: each["cannot"] for key, each in described.items() if "cannot" in each}
                measured.append(found)
                say(line_of(measured[-1]))
        return Outcome(described, measured)


def line_of(measured: Measured) -> str:
    """The lines of a measure for a terminal."""
    lines = []
    for found in measured.as_json():
        lines.append(f"{found['title']} ({found['unit']})")
        lines += [f"    {key:<10} {spread(values(found, key))}" for key in found["runs"]]
    lines += [f"    {key:<10} - {reason}" for key, reason in (measured.dashes | measured.ends).items()]
    return "\n".join(lines)
