"""Many runs, on several processes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from barnabas.signals import die_with_parent
from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.mirroring.simulation import MirrorSimulation
from barnabas.testing.simulation.simulated_run import SimulatedRun, Verdict
from barnabas.testing.simulation.simulation import Simulation
from barnabas.testing.simulation.transactions.replicated import ReplicatedTransactions
from barnabas.testing.simulation.transactions.single import TransactionSimulation

CLUSTER = "cluster"  # profile of runs with several brokers
TRANSACTIONS, REPLICATED_TRANSACTIONS = "transactions", "transactions-cluster"  # profiles of runs with transactional clients
MIRROR = "mirror"  # profile of runs with two clusters and a mirror link
WHOLE_PROFILES: dict[str, type[ClusterSimulation | TransactionSimulation]] = {
    CLUSTER: ClusterSimulation,
    MIRROR: MirrorSimulation,
    TRANSACTIONS: TransactionSimulation,
    REPLICATED_TRANSACTIONS: ReplicatedTransactions,
}
SEEDS_AT_ONCE = 5  # seeds given to a process at once


def begin_process() -> None:
    """Prepare one of several processes: it ends with its parent, and prints no log."""
    die_with_parent()
    keep_quiet()


def keep_quiet() -> None:
    """Do not print the broker's log: the simulation itself checks it."""
    logging.getLogger("barnabas").addHandler(logging.NullHandler())
    logging.getLogger("barnabas").propagate = False


def simulation(seed: int, profile: str | None = None, *, echo: bool = False) -> SimulatedRun:
    """The run of a seed, not started yet.

    Args:
        profile: the kind of run; None draws it from the seed.
        echo: print the events while they happen.
    """
    whole = WHOLE_PROFILES.get(profile or "")
    if whole is not None:
        return whole(seed, echo=echo)
    return Simulation(seed, echo=echo, profile=profile)


def run_seed(seed: int, profile: str | None = None) -> Verdict:
    """Run a seed to its end; returns its verdict."""
    return simulation(seed, profile).run()


def run_seeds(seeds: Iterable[int], profile: str | None = None, processes: int = 1) -> Iterator[Verdict]:
    """The verdicts in the order of the seeds."""
    run = partial(run_seed, profile=profile)
    if processes == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), begin_process) as pool:
        yield from pool.map(run, seeds, chunksize=SEEDS_AT_ONCE)
