"""The faults, kind by kind: whom each strikes, and how it is taken back."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.mirroring.load import PLAIN
from tests.server.mirroring.clusters import set_paused
from tests.torture.cluster.network import Network
from tests.torture.mirroring.clusters import Side, Target
from tests.torture.mirroring.distance import LongWay

DELAYS_MS, LOSSES = (20, 50, 100), (0.0, 0.01, 0.05)


@dataclass(frozen=True, slots=True)
class Arena:
    """All that can be struck; `way` is None without network namespaces."""

    source: Side
    target: Target
    network: Network
    way: LongWay | None


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault, in words, and the call that undoes it.

    Args:
        stops_copying: nothing gets to the target while it lasts.
    """

    told: str
    undo: Callable[[], None]
    stops_copying: bool = False


Fault = Callable[[Arena, random.Random], Strike]


def _kill(cluster: Side, name: str) -> Strike:
    cluster.nodes[name].kill()
    return Strike(f"kill -9 {name}", cluster.nodes[name].start)


def kill_source(arena: Arena, _: random.Random) -> Strike:
    return _kill(arena.source, arena.source.leader_of_most(PLAIN))


def kill_target(arena: Arena, _: random.Random) -> Strike:
    return _kill(arena.target, arena.target.leader_of_most(PLAIN))


def kill_source_controller(arena: Arena, _: random.Random) -> Strike:
    return _kill(arena.source, arena.source.controller())


def kill_target_controller(arena: Arena, _: random.Random) -> Strike:
    return _kill(arena.target, arena.target.controller())


def cut(arena: Arena, _: random.Random) -> Strike:
    """Nothing gets from one cluster to the other, in silence."""
    for one in arena.source.brokers:
        for other in arena.target.brokers:
            arena.network.block(one, other)
            arena.network.block(other, one)
    return Strike("cut", arena.network.heal, stops_copying=True)


def cut_answers(arena: Arena, _: random.Random) -> Strike:
    """Requests arrive in the source, and no answer comes back."""
    for one in arena.source.brokers:
        for other in arena.target.brokers:
            arena.network.block(one, other)
    return Strike("cut the answers", arena.network.heal, stops_copying=True)


def far(arena: Arena, rng: random.Random) -> Strike:
    """Packets between the clusters take long, and some are lost."""
    assert arena.way is not None
    delay_ms, loss = rng.choice(DELAYS_MS), rng.choice(LOSSES)
    arena.way.set(delay_ms, loss)
    return Strike(f"{delay_ms} ms each way, {loss:.0%} lost", arena.way.set)


def kill_both_far(arena: Arena, rng: random.Random) -> Strike:
    """A leader of each cluster dies, and the way between them is long."""
    strikes = (far(arena, rng), kill_source(arena, rng), kill_target(arena, rng))

    def undo() -> None:
        for each in strikes:
            each.undo()

    return Strike(", ".join(each.told for each in strikes), undo)


def lag(arena: Arena, _: random.Random) -> Strike:
    """The link is paused, so that deletion and compaction of the source go on past the copies."""
    set_paused(arena.target.bootstrap, paused=True)
    return Strike("paused the link", lambda: set_paused(arena.target.bootstrap, paused=False), stops_copying=True)


KINDS: dict[str, Fault] = {
    "kill-source": kill_source,
    "kill-target": kill_target,
    "far": far,
    "cut": cut,
    "kill-source-controller": kill_source_controller,
    "kill-target-controller": kill_target_controller,
    "kill-both-far": kill_both_far,
    "cut-answers": cut_answers,
    "lag": lag,
}
NEED_NETWORK = frozenset({"far", "cut", "kill-both-far", "cut-answers"})
