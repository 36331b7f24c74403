"""The faults of a cluster, kind by kind: whom it strikes, how, and how it is taken back.

A kill is taken back when partitions can be written to again, all else after `HOLD_S`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.torture.cluster import wire
from tests.torture.cluster.clusters import BROKERS, QUORUM, Cluster
from tests.torture.cluster.load import PROBED
from tests.torture.cluster.network import Network

HOLD_S = 20.0


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault of a node, and the call that undoes it."""

    node: str
    undo: Callable[[], None]
    is_kill: bool


Fault = Callable[[Cluster, Network, random.Random], Strike]


def kill(choose: Callable[[Cluster, random.Random], str]) -> Fault:
    def strike(cluster: Cluster, _: Network, rng: random.Random) -> Strike:
        name = choose(cluster, rng)
        cluster.nodes[name].kill()
        return Strike(name, cluster.nodes[name].start, is_kill=True)

    return strike


def pause(choose: Callable[[Cluster, random.Random], str]) -> Fault:
    def strike(cluster: Cluster, _: Network, rng: random.Random) -> Strike:
        name = choose(cluster, rng)
        cluster.nodes[name].pause()
        return Strike(name, cluster.nodes[name].resume, is_kill=False)

    return strike


def cut(*, into: bool, out: bool, others: list[str]) -> Fault:
    """Cut the leader of most partitions off from `others`; clients still reach it."""

    def strike(cluster: Cluster, network: Network, _: random.Random) -> Strike:
        name = leader(cluster, _)
        for other in others:
            if other != name and into:
                network.block(other, name)
            if other != name and out:
                network.block(name, other)
        return Strike(name, network.heal, is_kill=False)

    return strike


def leader(cluster: Cluster, _: random.Random) -> str:
    return cluster.leader_of_most(PROBED)


def controller(cluster: Cluster, _: random.Random) -> str:
    return cluster.controller()


def coordinator(cluster: Cluster, rng: random.Random) -> str:
    return BROKERS[wire.coordinator(cluster.addresses, rng.choice(cluster.groups)) - 1]


def quorum(_: Cluster, rng: random.Random) -> str:
    return rng.choice(QUORUM)


EVERYONE = [*BROKERS, *QUORUM]
KINDS: dict[str, Fault] = {
    "kill-leader": kill(leader),
    "kill-controller": kill(controller),
    "kill-coordinator": kill(coordinator),
    "kill-quorum": kill(quorum),
    "stop-leader": pause(leader),
    "stop-controller": pause(controller),
    "stop-quorum": pause(quorum),
    "cut-leader": cut(into=True, out=True, others=EVERYONE),
    "cut-leader-in": cut(into=True, out=False, others=EVERYONE),
    "cut-leader-out": cut(into=False, out=True, others=EVERYONE),
    "cut-leader-from-quorum": cut(into=True, out=True, others=QUORUM),
    "cut-leader-from-brokers": cut(into=True, out=True, others=BROKERS),
}
CUTS = frozenset(kind for kind in KINDS if kind.startswith("cut-"))
