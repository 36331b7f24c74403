"""Clusters that replicate wrongly are caught by the simulator, each classical fault by one of its checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import Any

import pytest

from barnabas.cluster.metadata.store_entries import PARTITIONS
from barnabas.testing.simulation import cluster_canaries as canaries
from barnabas.testing.simulation.clients import Producing
from barnabas.testing.simulation.cluster import ClusterSimulation
from barnabas.testing.simulation.cluster_scenario import ClusterScenario, draw_cluster
from barnabas.testing.simulation.scenario import Topic

pytestmark = pytest.mark.timeout(600)  # some seconds on idle cores, much more on a busy machine
MOST_SEEDS = 60
HEALTHY_SEEDS = 2
Canary = Callable[[], AbstractContextManager[None]]
# A leader that leads too early has rarely lost a record that a consumer read.
FIRST_SEED: dict[Canary, int] = {canaries.leading_before_all_are_back: 120}


def scenario(seed: int, kind: str, incidents: Sequence[str]) -> ClusterScenario:
    drawn = draw_cluster(Random(seed), kind, incidents)
    drawn.admins, drawn.churned = {}, None  # only the incidents change anything, so that the check catches the canary
    drawn.members.clear()
    return drawn


@pytest.mark.parametrize(
    ("canary", "kind", "incidents", "anomaly"),
    [
        (canaries.acknowledging_before_the_others_have_it, "faults", ("power-cut", "isolate", "expire"), "are committed"),
        (canaries.followers_that_do_not_truncate, "faults", ("kill", "isolate"), "between the brokers"),
        (canaries.in_sync_changes_that_are_lost, "faults", ("isolate",), "are committed"),
        (canaries.leading_before_all_are_back, "faults", ("blackout",), " was lost: "),
        (canaries.elections_in_the_same_epoch, "faults", ("kill-leader",), "two leaders in epoch"),
    ],
)
def test_it_is_caught(canary: Canary, kind: str, incidents: Sequence[str], anomaly: str) -> None:
    first = FIRST_SEED.get(canary, 0)
    seeds = range(first, first + MOST_SEEDS)
    with canary():
        failures = (ClusterSimulation(seed, scenario=scenario(seed, kind, incidents)).run().failure for seed in seeds)
        assert any(failure is not None and anomaly in failure for failure in failures), f"no seed says {anomaly!r}"


def test_commits_of_generations_that_are_over_are_caught() -> None:
    def run(seed: int) -> ClusterSimulation:
        drawn = scenario(seed, "faults", ("disconnect",))
        drawn.members = [None, None, None]
        return ClusterSimulation(seed, scenario=drawn)

    simulation = run(1)
    assert simulation.run().failure is None
    assert simulation.counts["generations"] > 1
    with canaries.members_that_are_not_fenced():
        failures = (run(seed).run().failure or "" for seed in range(MOST_SEEDS))
        assert any("a commit of generation" in failure for failure in failures)


class Story(ClusterSimulation):
    """A run in which one thing happens, told by the test."""

    incidents: Sequence[str] = ()

    def __init__(self, seed: int) -> None:
        drawn = scenario(seed, "faults", ("disconnect",))
        drawn.brokers = 3
        drawn.topics = [Topic("t", 1, {"cleanup.policy": "delete", "retention.ms": "-1", "delete.retention.ms": "1000"})]
        drawn.producers = [(("t", 0), self.producing())]
        drawn.properties["replica.lag.time.max.ms"] = "1000"
        super().__init__(seed, scenario=drawn)

    def producing(self) -> Producing:
        return Producing(idempotent=True, acks=-1, batches=30, pause_s=0.4, value_bytes=20)


class AllCrash(Story):
    """All processes end at once, one of them with its machine, which is back first and alone for a while."""

    async def _befall(self) -> None:
        await asyncio.sleep(5.0)
        victim, *others = self.random.sample(self.nodes, len(self.nodes))
        for node in self.nodes:
            node.kill(power=node is victim)
        await self.fault_injector.bring_back(victim)
        await asyncio.sleep(self.random.choice((0.5, 20.0)))
        for node in others:
            await self.fault_injector.bring_back(node)


class AllKilled(Story):
    """All processes end at once, more than once."""

    async def _befall(self) -> None:
        for _ in range(3):
            await asyncio.sleep(1.5)
            for node in self.nodes:
                node.kill()
            for node in self.nodes:
                await self.fault_injector.bring_back(node)


class LastStanding(Story):
    """Both followers die; the leader goes on alone, with a producer that does not wait for others; then it dies, and they are back."""

    def producing(self) -> Producing:
        return Producing(idempotent=False, acks=1, batches=80, pause_s=0.4, value_bytes=20)

    async def _befall(self) -> None:
        await asyncio.sleep(4.0)
        leader = next(n for n in self.nodes if n.process is not None and n.process.broker.partitions.require("t", 0).is_leader)
        others = [node for node in self.nodes if node is not leader]
        for node in others:
            node.kill()
            await asyncio.sleep(self.scenario.session_timeout_s + 1.0)
        await asyncio.sleep(2.0)
        leader.kill()
        for node in others:
            await self.fault_injector.bring_back(node)
        await asyncio.sleep(self.scenario.session_timeout_s + 2.0)
        await self.fault_injector.bring_back(leader)


class StaleController(Story):
    """A controller has decided what follows from a broker's death; before its write is sent, its session ends and another is elected."""

    async def _befall(self) -> None:
        await asyncio.sleep(4.0)
        controller = next(n for n in self.nodes if n.process is not None and n.process.broker.controller.is_controller)
        other = next(node for node in self.nodes if node is not controller)
        assert controller.process is not None, "it runs"
        loop = controller.process.loop
        run, sent_s = loop.run_in_executor, 2 * self.scenario.session_timeout_s
        held: list[object] = []

        def send_late(executor: Any, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
            # The write that removes the dead broker's registration goes out. The election after it is held.
            decides = getattr(function, "__name__", "") == "commit" and any(each.path.startswith(PARTITIONS) for each in args[0])
            if held or not decides:
                return run(executor, function, *args)
            held.append(function)
            answer: asyncio.Future[Any] = loop.create_future()

            def send() -> None:
                run(executor, function, *args).add_done_callback(lambda done: _hand_on(done, answer))

            loop.call_later(sent_s, send)
            return answer

        loop.run_in_executor = send_late  # type: ignore[method-assign, assignment]  # only in this process
        other.kill()
        await self.until(lambda: bool(held))
        self.ensemble.expire(controller.host)
        await asyncio.sleep(sent_s + 2.0)
        loop.run_in_executor = run  # type: ignore[method-assign]  # the original method
        await self.fault_injector.bring_back(other)


def _hand_on(done: asyncio.Future[Any], answer: asyncio.Future[Any]) -> None:
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)


@pytest.mark.parametrize(
    ("story", "canary", "anomaly"),
    [
        (AllCrash, canaries.losing_the_end_in_silence, "inconsistent offsets"),
        (AllKilled, canaries.truncating_to_the_high_watermark, "inconsistent offsets"),
        (StaleController, canaries.a_controller_without_a_fence, "epoch"),
        (LastStanding, canaries.the_last_replica_standing, "lost write"),
    ],
)
def test_a_story_ends_well_but_for_the_canary(story: type[Story], canary: Canary, anomaly: str) -> None:
    failed = [verdict for verdict in (story(seed).run() for seed in range(HEALTHY_SEEDS)) if verdict.failure]
    assert not failed, "\n".join(f"{verdict.seed}: {verdict.failure}" for verdict in failed)
    with canary():
        failures = [story(seed).run().failure for seed in range(HEALTHY_SEEDS)]
    assert any(failure is not None and anomaly in failure for failure in failures), failures
