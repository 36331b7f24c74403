"""Whole clusters in the simulator: seeds pass, a seed repeats itself, and brokers that replicate wrongly are caught."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest

from barnabas.testing.simulation import canaries
from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.runner import CLUSTER, run_seed

ALL_CRASH_SEEDS = 5
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
        (canaries.acknowledging_before_the_others_have_it, ("power-cut", "isolate", "expire")),
        (canaries.followers_that_do_not_truncate, ("kill", "isolate")),
    ],
)
def test_a_cluster_that_replicates_wrongly_is_caught(
    canary: Callable[[], AbstractContextManager[None]], blows: Sequence[str]
) -> None:
    with canary():
        assert any(ClusterSimulation(seed, blows=blows).run().failure for seed in range(60))


class AllCrash(ClusterSimulation):
    """All processes end at once, one of them with its machine, which is back first and alone for a while."""

    async def _fate(self) -> None:
        await asyncio.sleep(5.0)
        victim, *others = self._draw.sample(self.nodes, len(self.nodes))
        for node in self.nodes:
            node.kill(power=node is victim)
        await self._bring_back(victim)
        await asyncio.sleep(self._draw.choice((0.5, 20.0)))
        for node in others:
            await self._bring_back(node)


def test_who_lost_its_power_does_not_take_the_records_of_the_others_with_it() -> None:
    failed = [v for v in (AllCrash(seed).run() for seed in range(ALL_CRASH_SEEDS)) if v.failure]
    assert not failed, "\n".join(f"{v.seed}: {v.failure}" for v in failed)
    with canaries.losing_the_end_in_silence():
        assert any(AllCrash(seed).run().failure for seed in range(ALL_CRASH_SEEDS))
