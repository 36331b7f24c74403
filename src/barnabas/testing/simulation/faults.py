"""The faults of a broker while its clients work: it is killed, loses power, loses its disk, is stopped and started.

Owns the sequence of a fault: the fault occurs, the broker is restarted, the auditor checks it, and only then clients may
connect again.
"""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from random import Random
from typing import Any, Protocol

from barnabas.errors import BarnabasError, StorageError
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.testing.simulation.disk import File
from barnabas.testing.simulation.disk_faults import Fault, Operation
from barnabas.testing.simulation.history import Violation
from barnabas.testing.simulation.logged_errors import LoggedErrors
from barnabas.testing.simulation.loop import World
from barnabas.testing.simulation.node import Node
from barnabas.testing.simulation.scenario import Incident

AUDITOR = "auditor"
START_LIMIT_S = 60.0
LONGEST_WAIT_S = 3.0  # for a process to die during a change; the change may never happen
LOOKS_S = 0.2  # between two checks by the operator
CHANGES = frozenset(Operation) - {Operation.READ}


class FaultTarget(Protocol):
    """The run of a single broker, as the fault injector sees it."""

    world: World
    node: Node
    logged_errors: LoggedErrors
    counts: dict[str, int]

    def is_over(self) -> bool: ...

    async def audit(self, *, crashed: bool, may_lose_tail: bool) -> None:
        """Read all records; the broker has started again, and no other client may connect."""
        ...

    async def elsewhere(self, task: asyncio.Task[Any]) -> Any:
        """Wait for a task of another process."""
        ...

    def rotten(self, folder: str) -> None:
        """A bit of the log in this folder was flipped."""
        ...

    def gone(self, node: Node) -> None:
        """The broker has stopped by itself."""
        ...


class FaultInjector:
    """Executes the faults of one run."""

    def __init__(self, simulation: FaultTarget, random: Random) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._node = simulation.node
        self._random = random

    async def run(self, incidents: list[Incident]) -> None:
        for incident in incidents:
            await self._pause(incident.after_s)
            if self._simulation.is_over():
                return
            self._world.note(f"fate: {incident.kind}")
            counts = self._simulation.counts
            counts[incident.kind] = counts.get(incident.kind, 0) + 1
            await getattr(self, "_" + incident.kind.replace("-", "_"))(incident)
        while not self._simulation.is_over():
            await self._pause(LOOKS_S)

    async def _pause(self, pause_s: float) -> None:
        """Wait. Restart a broker that cannot continue, or that continues without a log directory, as an operator would."""
        end_s = self._world.now_s + pause_s
        while self._world.now_s < end_s:
            await asyncio.sleep(min(LOOKS_S, end_s - self._world.now_s))
            if self._node.needs_operator:
                await self._stop()
                self._node.faults.heal()
                self._node.disk.capacity_bytes = None
                await self._come_back(Incident("restart", 0), crashed=True, may_lose_tail=True)

    # --- faults that the broker survives

    async def _disconnect(self, _: Incident) -> None:
        ends = self._world.network.connections(self._node.host)
        if ends:
            self._world.network.cut(self._random.choice(ends))

    async def _full(self, incident: Incident) -> None:
        """The disk is full for a while."""
        self._simulation.logged_errors.excuse("disk")
        disk = self._node.disk
        disk.capacity_bytes = disk.used_bytes + self._random.choice((0, 500, 5_000))
        await asyncio.sleep(incident.down_s)
        disk.capacity_bytes = None

    async def _short_writes(self, _: Incident) -> None:
        self._node.faults.arm(Operation.WRITE, errno=0, after=self._random.randrange(20), times=self._random.randint(1, 3))

    async def _reads_fail(self, _: Incident) -> None:
        self._simulation.logged_errors.excuse("disk")
        self._node.faults.arm(Operation.READ, after=self._random.randrange(5), times=self._random.randint(1, 3))

    async def _cleaner_dies(self, incident: Incident) -> None:
        process = self._node.process
        assert process is not None, "only fate ends it"
        self._simulation.logged_errors.excuse("cleaner-dies")
        process.cleaner.files.kill_in = incident.changes

    # --- faults that stop the broker

    async def _restart(self, incident: Incident) -> None:
        await self._stop()
        await self._come_back(incident, crashed=False, may_lose_tail=False)

    async def _kill(self, incident: Incident) -> None:
        await self._die(incident)
        await asyncio.sleep(incident.down_s)
        await self._come_back(incident, crashed=True, may_lose_tail=False)

    async def _power_cut(self, incident: Incident) -> None:
        await self._die(incident, power=True)
        await asyncio.sleep(incident.down_s)
        await self._come_back(incident, crashed=True, may_lose_tail=True)

    async def _disk_fails(self, incident: Incident) -> None:
        """One log directory, or all of them, refuses changes until the broker starts again."""
        self._simulation.logged_errors.excuse("disk")
        where = self._random.choice([*self._node.directories, Path("/")])
        operations = self._random.choice((frozenset({Operation.SYNC}), frozenset({Operation.WRITE}), CHANGES))
        fault = Fault(operations, errno.EIO, after=self._random.randrange(10), times=1_000_000)
        fault.where = lambda path: path.is_relative_to(where)
        self._node.faults.armed.append(fault)
        await asyncio.sleep(incident.down_s)
        if self._node.needs_operator or self._random.random() < 0.5:
            await self._stop()
        else:
            self._node.kill()
        self._node.faults.heal()
        await self._come_back(incident, crashed=True, may_lose_tail=True)

    async def _rot(self, incident: Incident) -> None:
        """Flip a bit of a sealed segment."""
        await self._stop()
        sealed = self._sealed()
        if sealed:
            path, file = self._random.choice(sealed)
            position = self._random.randrange(len(file.data))
            self._world.note(f"bit rots in {path} at {position}")
            self._node.disk.flip_bit(file, position)
            self._simulation.rotten(path.parent.name)
        await self._come_back(incident, crashed=False, may_lose_tail=False)

    def _sealed(self) -> list[tuple[Path, File]]:
        logs: dict[Path, list[tuple[Path, File]]] = {}
        for path, file in self._node.disk.files():
            if path.suffix == LOG_SUFFIX and file.data and not path.parent.name.startswith("__"):
                logs.setdefault(path.parent, []).append((path, file))
        return [each for segments in logs.values() for each in segments[:-1]]

    # --- stop and restart

    async def _stop(self) -> None:
        try:
            await self._simulation.elsewhere(self._node.stop())
        except StorageError:
            if not self._node.faults.armed:
                raise
            self._node.kill()  # the process ends with an error
        else:
            self._simulation.gone(self._node)

    async def _die(self, incident: Incident, *, power: bool = False) -> None:
        if incident.changes:
            self._simulation.logged_errors.excuse(
                "cleaner-dies"
            )  # the cleaner may be the process that dies, and the broker notices that before it is killed
            self._node.kill_in(incident.changes)
            waited_s = 0.0
            while not self._node.has_died and waited_s < LONGEST_WAIT_S:
                await asyncio.sleep(0.01)
                waited_s += 0.01
        self._node.kill(power=power)

    async def _come_back(self, incident: Incident, *, crashed: bool, may_lose_tail: bool) -> None:
        """Start the broker again, with a second crash in between if the incident has one. Audit it before any other client
        connects."""
        power = incident.kind == "power-cut"
        self._node.faults.heal()  # a broker need not start while its disk fails
        self._world.network.admitted = frozenset({AUDITOR})
        if incident.again:
            starting = self._node.start()
            self._node.kill_in(incident.again)
            waited_s = 0.0
            while not self._node.has_died and not starting.done() and waited_s < START_LIMIT_S:
                await asyncio.sleep(0.001)
                waited_s += 0.001
            crashed = True
            self._node.kill(power=power)
        try:
            await self._simulation.elsewhere(self._node.start())
        except (BarnabasError, OSError) as error:
            raise Violation(f"the broker does not start: {error}") from error
        await self._simulation.audit(crashed=crashed, may_lose_tail=may_lose_tail)
        self._world.network.admitted = None
