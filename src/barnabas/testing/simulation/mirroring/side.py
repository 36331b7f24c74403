"""The target of a run, as the fault injector and the invariant checker see a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.testing.simulation.convergence import is_at_rest
from barnabas.testing.simulation.ensemble import Ensemble
from barnabas.testing.simulation.node import Node

if TYPE_CHECKING:
    from barnabas.testing.simulation.cluster_scenario import ClusterScenario
    from barnabas.testing.simulation.history import TopicPartition, Violation
    from barnabas.testing.simulation.mirroring.simulation import MirrorSimulation

R = TypeVar("R")


class TargetSide:
    """Its machines, and what concerns the whole run."""

    flushed = False
    bystanders: tuple[str, ...] = ()

    def __init__(self, run: MirrorSimulation, scenario: ClusterScenario, brokers: int, report: Callable[[str], None]) -> None:
        self._run = run
        self.world = run.world
        self.counts = run.counts
        self.logged_errors = run.logged_errors
        self.ensemble = Ensemble(run.world, scenario.session_timeout_s)
        self.nodes = [
            Node(run.world, number, scenario.properties, report, ensemble=self.ensemble, host=f"target-{number}")
            for number in range(1, brokers + 1)
        ]

    @property
    def lasting(self) -> list[TopicPartition]:
        return self._run.lasting

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def is_over(self) -> bool:
        return self._run.is_over()

    def is_at_rest(self) -> bool:
        return is_at_rest(self.nodes)

    def report_violation(self, violation: Violation) -> None:
        self._run.report_violation(violation)

    def gone(self, node: Node) -> None:
        self._run.gone(node)

    def start_elsewhere(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._run.start_elsewhere(work)

    async def elsewhere(self, task: asyncio.Task[R]) -> R:
        return await self._run.elsewhere(task)

    async def until(self, condition: Callable[[], bool]) -> None:
        await self._run.until(condition)

    async def audit(self, *, may_lose_tail: bool) -> None:
        """The target never loses the power of all machines."""
        raise AssertionError("no blackout of a target")
