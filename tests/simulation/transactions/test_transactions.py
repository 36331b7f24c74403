"""Transactional clients in the simulator: seeds pass, a seed repeats itself, and brokers whose transactions are wrong are caught."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import pytest

from barnabas.testing.simulation.runner import REPLICATED_TRANSACTIONS, TRANSACTIONS, run_seed
from barnabas.testing.simulation.simulated_run import Verdict
from barnabas.testing.simulation.transactions import canaries
from barnabas.testing.simulation.transactions.replicated import COORDINATORS, ReplicatedTransactions
from barnabas.testing.simulation.transactions.scenario import Clients
from barnabas.testing.simulation.transactions.single import TransactionSimulation

SEEDS, SLICES = 25, 5  # `make sim` runs 2,000 seeds
CLUSTER_SEEDS = 6
CANARY_SEEDS = 40


@pytest.mark.parametrize("part", range(SLICES))
def test_seeds_pass(part: int) -> None:
    failed = [v for v in (run_seed(seed, TRANSACTIONS) for seed in range(part, SEEDS, SLICES)) if v.failure]
    assert not failed, "\n".join(f"--profile {TRANSACTIONS} --seed {v.seed}: {v.failure}" for v in failed)


def test_seeds_of_clusters_pass() -> None:
    failed = [v for v in (run_seed(seed, REPLICATED_TRANSACTIONS) for seed in range(CLUSTER_SEEDS)) if v.failure]
    assert not failed, "\n".join(f"--profile {REPLICATED_TRANSACTIONS} --seed {v.seed}: {v.failure}" for v in failed)


def test_a_seed_is_one_run() -> None:
    assert run_seed(1, TRANSACTIONS) == run_seed(1, TRANSACTIONS)


def first_failure(verdicts: Iterable[Verdict], names: tuple[str, ...]) -> str:
    """The first failure that says one of `names`."""
    return next((v.failure for v in verdicts if v.failure and any(name in v.failure for name in names)), "")


def hasty_clients_of_the_older_flow(clients: Clients) -> None:
    """They give a batch up as soon as an answer is lost, and the batch arrives later."""
    clients.late_requests = 0.3
    for client in clients.clients:
        for how in client.instances:
            how.second, how.patience_s, how.transactions = False, 0.0, 12


def clients_of_the_newer_flow(clients: Clients) -> None:
    """Their requests come late, and twice."""
    clients.late_requests = 0.3
    for client in clients.clients:
        for how in client.instances:
            how.second, how.transactions = True, 12


def as_drawn(_: Clients) -> None:
    """Clients are what they are."""


@pytest.mark.parametrize(
    ("canary", "adapt", "names"),
    [
        (canaries.without_verification, hasty_clients_of_the_older_flow, ("hanging transaction",)),
        (canaries.without_verification, hasty_clients_of_the_older_flow, ("aborted read",)),
        (canaries.without_an_epoch_for_each_end, clients_of_the_newer_flow, ("pre-committed read", "torn transaction", "holds")),
        (canaries.readers_pass_the_last_stable_offset, as_drawn, ("pre-committed read", "aborted read")),
        (canaries.one_marker_is_enough, as_drawn, ("hanging transaction",)),
        (canaries.zombies_are_not_fenced, as_drawn, ("were both told", "zombie")),
    ],
)
def test_a_broker_whose_transactions_are_wrong_is_caught(
    canary: Callable[[], AbstractContextManager[None]], adapt: Callable[[Clients], None], names: tuple[str, ...]
) -> None:
    with canary():
        assert first_failure((TransactionSimulation(seed, adapt=adapt).run() for seed in range(CANARY_SEEDS)), names)


def test_a_broker_that_forgets_what_was_aborted_is_caught() -> None:
    runs = (TransactionSimulation(seed, wrap_files=canaries.forgetting_what_was_aborted).run() for seed in range(CANARY_SEEDS))
    assert "aborted read" in first_failure(runs, ("aborted read",))


class CoordinatorDiesAlone(ReplicatedTransactions):
    """The coordinator of transactions is cut off from the other brokers, but not from its clients, and dies soon after."""

    async def _befall(self) -> None:
        for _ in range(4):
            await asyncio.sleep(1.0)
            leader = next((node for node in self.nodes if self._coordinates(node.number)), None)
            if leader is None:
                continue
            others = [node.host for node in self.nodes if node is not leader]
            for other in others:
                self.world.network.block(leader.host, other)
                self.world.network.block(other, leader.host)
            await asyncio.sleep(0.8)
            leader.kill()
            self.world.network.heal()
            await self.fault_injector.bring_back(leader)

    def _coordinates(self, number: int) -> bool:
        process = self.nodes[number - 1].process
        found = None if process is None else process.broker.partitions.get(*COORDINATORS[0])
        return found is not None and found.is_leader


def test_a_coordinator_that_answers_before_its_record_is_committed_is_caught() -> None:
    assert CoordinatorDiesAlone(0).run().failure is None
    with canaries.answering_before_the_record_is_committed():
        assert first_failure((CoordinatorDiesAlone(seed).run() for seed in range(10)), ("lost write", "aborted read", "torn"))
