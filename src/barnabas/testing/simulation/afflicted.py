"""A cluster of a run, as those see it who inject its faults and check its invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.testing.simulation.ensemble import Ensemble
from barnabas.testing.simulation.history import TopicPartition, Violation
from barnabas.testing.simulation.logged_errors import LoggedErrors
from barnabas.testing.simulation.loop import World
from barnabas.testing.simulation.node import Node

R = TypeVar("R")


class Afflicted(Protocol):
    """See the module.

    Args:
        nodes: the machines of the cluster.
        lasting: partitions whose leaders are killed.
        flushed: every topic has flush.messages=1.
        bystanders: machines that may connect while no client may.
    """

    world: World
    ensemble: Ensemble
    counts: dict[str, int]
    logged_errors: LoggedErrors
    flushed: bool
    bystanders: tuple[str, ...]

    @property
    def nodes(self) -> Sequence[Node]: ...

    @property
    def lasting(self) -> Sequence[TopicPartition]: ...

    def is_over(self) -> bool: ...

    def is_at_rest(self) -> bool: ...

    def report_violation(self, violation: Violation) -> None: ...

    def gone(self, node: Node) -> None: ...

    def start_elsewhere(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    async def elsewhere(self, task: asyncio.Task[R]) -> R: ...

    async def until(self, condition: Callable[[], bool]) -> None: ...

    async def audit(self, *, may_lose_tail: bool) -> None: ...
