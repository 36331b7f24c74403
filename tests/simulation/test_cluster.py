"""Whole clusters in the simulator: seeds pass, a seed repeats itself, and brokers that replicate wrongly are caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest

from barnabas.testing.simulation import canaries
from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.runner import CLUSTER, run_seed

SEEDS = 24
SLICES = 3


@pytest.mark.parametrize("part", range(SLICES))
def test_seeds_pass(part: int) -> None:
    failed = [v for v in (run_seed(seed, CLUSTER) for seed in range(part, SEEDS, SLICES)) if v.failure]
    assert not failed, "\n".join(f"--profile {CLUSTER} --seed {v.seed}: {v.failure}" for v in failed)


def test_a_seed_is_one_run() -> None:
    assert run_seed(1, CLUSTER) == run_seed(1, CLUSTER)


@pytest.mark.parametrize(
    ("canary", "blows"),
    [
        (canaries.acknowledging_before_the_others_have_it, ("power-cut", "one-way", "isolate")),
        (canaries.followers_that_do_not_truncate, ("kill", "isolate")),
    ],
)
def test_a_cluster_that_replicates_wrongly_is_caught(
    canary: Callable[[], AbstractContextManager[None]], blows: Sequence[str]
) -> None:
    with canary():
        assert any(ClusterSimulation(seed, blows=blows).run().failure for seed in range(60))
