"""Whole clusters in the simulator: seeds pass, and a seed repeats itself."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.cluster_scenario import draw_cluster
from barnabas.testing.simulation.runner import CLUSTER, keep_quiet, run_seed, run_seeds

SEEDS = 40  # `make sim` runs 2,000
SLICES = 4


@pytest.mark.timeout(600)  # 14 s on an idle core, much more on a busy machine
@pytest.mark.parametrize("part", range(SLICES))
def test_seeds_pass(part: int) -> None:
    keep_quiet()
    size = SEEDS // SLICES
    seeds = range(part * size, (part + 1) * size)
    failed = [v for v in run_seeds(seeds, CLUSTER) if v.failure]
    assert not failed, "\n".join(f"--profile {CLUSTER} --seed {v.seed}: {v.failure}" for v in failed)


def test_a_seed_is_one_run() -> None:
    assert run_seed(1, CLUSTER) == run_seed(1, CLUSTER)


@pytest.mark.parametrize(("kind", "seed"), [("blackout", 1), ("flushed", 2)])
def test_a_cluster_comes_back_by_itself_when_all_machines_have_lost_power(kind: str, seed: int) -> None:
    drawn = draw_cluster(Random(seed), kind, ("blackout",))
    verdict = ClusterSimulation(seed, scenario=replace(drawn, brokers=3)).run()
    assert verdict.failure is None
    assert verdict.counts["blackout"] >= 1
