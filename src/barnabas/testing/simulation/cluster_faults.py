"""The faults of a cluster while its clients work: in processes, machines, the network, and ZooKeeper.

Rules, so that records that all replicas in sync acknowledged must stay (`min.insync.replicas` is 2)
  1. Processes are killed, frozen, stopped and cut off at random: one, several, or all of them at a time.
  2. Only one machine at a time loses its unsynced changes or its disk, or has a disk that refuses changes. The next machine is
     not affected before the cluster has been at rest.
  3. In separate runs all machines lose power at once; with `flush.messages=1` one of them also loses its disk. Then no client
     may connect until the cluster has recovered by itself and the auditor has read it.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.errors import BarnabasError, StorageError
from barnabas.testing.simulation.auditor import AUDITOR
from barnabas.testing.simulation.cluster_scenario import ClusterIncident
from barnabas.testing.simulation.disk_faults import Fault, Operation
from barnabas.testing.simulation.faults import CHANGES
from barnabas.testing.simulation.node import Node

if TYPE_CHECKING:
    from barnabas.testing.simulation.afflicted import Afflicted

LONGEST_WAIT_S = 3.0  # for a process to die during a change; the change may never happen
SUPERVISOR_S = 1.0  # between attempts to start a broker that fails to start
LOOKS_S = 0.05
REST_LIMIT_S = 180.0
LOSSES = frozenset({"power-cut", "wipe", "disk-fails"})


class ClusterFaultInjector:
    """Executes the faults of one run."""

    def __init__(self, simulation: Afflicted, random: Random) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._nodes = simulation.nodes
        self._ensemble = simulation.ensemble
        self._random = random
        self._has_lost = False  # whether a machine has lost data since the cluster was last at rest

    async def run(self, incidents: list[ClusterIncident]) -> None:
        for incident in incidents:
            await asyncio.sleep(incident.after_s)
            if self._simulation.is_over():
                return
            await self._strike(incident)

    async def _strike(self, incident: ClusterIncident) -> None:
        kind, node = incident.kind, self._random.choice(self._nodes)
        if kind in LOSSES:
            self._has_lost = self._has_lost and not self._simulation.is_at_rest()
            if self._has_lost:
                kind = "kill"
            self._has_lost = True
        if kind.endswith("controller"):
            node = self._controller() or node
        self._world.note(f"fate: {kind} {node.host}")
        counts = self._simulation.counts
        counts[kind] = counts.get(kind, 0) + 1
        await getattr(self, "_" + kind.replace("-", "_"))(incident, node)

    def _controller(self) -> Node | None:
        """The broker that considers itself controller."""
        for node in self._nodes:
            if node.process is not None and node.process.broker.member is not None and node.process.broker.member.is_controller:
                return node
        return None

    # --- processes

    async def _kill(self, incident: ClusterIncident, node: Node) -> None:
        node.kill()
        await self._later(incident, partial(self.bring_back, node))

    _kill_controller = _kill

    async def _kill_leader(self, incident: ClusterIncident, node: Node) -> None:
        """Kill the leader of one of the partitions that clients use."""
        topic, index = self._random.choice(self._simulation.lasting)
        for each in self._nodes:
            found = None if each.process is None else each.process.broker.partitions.get(topic, index)
            if found is not None and found.is_leader:
                node = each
        await self._kill(incident, node)

    async def _kill_all(self, incident: ClusterIncident, _: Node) -> None:
        for node in self._nodes:
            node.kill()
        for node in self._random.sample(self._nodes, len(self._nodes)):
            await self._later(incident, partial(self.bring_back, node))

    async def _die_writing(self, incident: ClusterIncident, node: Node) -> None:
        """Kill the process in the middle of a change to the disk."""
        if node.process is None:
            return
        # the cleaner may be the process that dies, and its broker notices that before it is killed
        self._simulation.logged_errors.excuse("cleaner-dies")
        node.kill_in(incident.changes)
        waited_s = 0.0
        while node.process is not None and not node.has_died and waited_s < LONGEST_WAIT_S:
            await asyncio.sleep(LOOKS_S)
            waited_s += LOOKS_S
        await self._kill(incident, node)

    async def _restart(self, _: ClusterIncident, node: Node) -> None:
        if node.process is not None and node.process.broker.ready:
            await self._simulation.elsewhere(node.stop())
            self._simulation.gone(node)
            await self.bring_back(node)

    async def _roll(self, incident: ClusterIncident, _: Node) -> None:
        """Restart all brokers, one after the other, as for an upgrade."""
        for node in self._nodes:
            await self._restart(incident, node)

    async def _freeze(self, incident: ClusterIncident, node: Node) -> None:
        if node.process is not None:
            node.process.loop.frozen_until_s = self._world.now_s + incident.while_s
            self._ensemble.freeze(node.host, incident.while_s)

    # --- machines

    async def _power_cut(self, incident: ClusterIncident, node: Node) -> None:
        node.kill(power=True)
        await self._later(incident, partial(self.bring_back, node))

    async def _wipe(self, incident: ClusterIncident, node: Node) -> None:
        """The machine comes back with an empty disk."""
        node.kill(power=True)
        node.replace_disk()
        await self._later(incident, partial(self.bring_back, node))

    async def _disk_fails(self, incident: ClusterIncident, node: Node) -> None:
        """One log directory, or all of them, refuses changes. With all, the broker stops. With one of two, the broker
        continues, and other brokers lead the partitions of this directory. The broker is stopped or killed, and starts when the
        disk works again."""
        if node.process is None:
            return
        self._simulation.logged_errors.excuse("disk")
        where = self._random.choice([*node.directories, Path("/")])
        operations = self._random.choice((frozenset({Operation.SYNC}), frozenset({Operation.WRITE}), CHANGES))
        fault = Fault(operations, errno.EIO, after=self._random.randrange(10), times=1_000_000)
        fault.where = lambda path: path.is_relative_to(where)
        node.faults.armed.append(fault)
        waited_s = 0.0
        while node.process is not None and not node.process.broker.failure.done() and waited_s < incident.while_s:
            await asyncio.sleep(LOOKS_S)
            waited_s += LOOKS_S
        if self._random.random() < 0.5:
            await self._stop_with_error(node)
        node.kill()
        node.faults.heal()
        await self.bring_back(node)

    async def _stop_with_error(self, node: Node) -> None:
        """Wait for a process that ends by itself because of its disk; kill one that has not noticed the fault."""
        if node.process is not None and node.needs_operator:
            with suppress(StorageError):
                await self._simulation.elsewhere(node.stop())
        node.kill()

    async def _blackout(self, _: ClusterIncident, victim: Node) -> None:
        simulation, flushed = self._simulation, self._simulation.flushed
        for node in self._nodes:
            node.kill(power=True)
        if flushed and self._random.random() < 0.5:
            victim.replace_disk()
        self._world.network.admitted = frozenset({AUDITOR, *(node.host for node in self._nodes), *simulation.bystanders})
        for node in self._random.sample(self._nodes, len(self._nodes)):
            await asyncio.sleep(self._random.choice((0.1, 1.0, 12.0)) * self._random.random())
            simulation.start_elsewhere(self.bring_back(node))
        self.heal()
        async with asyncio.timeout(REST_LIMIT_S):
            await simulation.until(simulation.is_at_rest)
        await simulation.audit(may_lose_tail=not flushed)
        self._world.network.admitted = None

    # --- the network

    async def _isolate(self, incident: ClusterIncident, node: Node) -> None:
        """This broker and the others do not reach each other; clients and ZooKeeper reach them all."""
        network = self._world.network
        for other in self._nodes:
            if other is not node:
                network.block(node.host, other.host)
                network.block(other.host, node.host)
        await self._later(incident, self._heal_network)

    async def _one_way(self, incident: ClusterIncident, node: Node) -> None:
        other = self._random.choice([each for each in self._nodes if each is not node])
        self._world.network.block(node.host, other.host)
        await self._later(incident, self._heal_network)

    async def _disconnect(self, _: ClusterIncident, node: Node) -> None:
        ends = self._world.network.connections(node.host)
        if ends:
            self._world.network.cut(self._random.choice(ends))

    async def _linger(self, incident: ClusterIncident, node: Node) -> None:
        """The broker's peers give up their connections; the bytes that they have sent arrive later, in addition to the
        retries."""
        for end in self._world.network.connections(node.host):
            if end.server is not None:
                self._world.network.linger(end.peer, min(incident.while_s, 2.0))

    # --- ZooKeeper

    async def _cut_off(self, incident: ClusterIncident, node: Node) -> None:
        self._ensemble.cut_off(node.host)
        await self._later(incident, partial(self._reconnect, node))

    async def _zookeeper_away(self, incident: ClusterIncident, _: Node) -> None:
        """No broker reaches the ensemble."""
        for node in self._nodes:
            self._ensemble.cut_off(node.host)
        for node in self._nodes:
            await self._later(incident, partial(self._reconnect, node))

    async def _expire(self, _: ClusterIncident, node: Node) -> None:
        self._ensemble.expire(node.host)

    async def _expire_controller(self, incident: ClusterIncident, node: Node) -> None:
        """The controller's session expires, and the controller learns it late, while it has something to decide."""
        self._ensemble.be_late(node.host, 1.0)
        self._ensemble.expire(node.host)
        other = self._random.choice([each for each in self._nodes if each is not node])
        await self._kill(incident, other)

    async def _late_watches(self, incident: ClusterIncident, node: Node) -> None:
        self._ensemble.be_late(node.host, incident.while_s)

    async def _lose_reply(self, _: ClusterIncident, node: Node) -> None:
        self._ensemble.lose_reply(node.host)

    async def _lose_reply_of_controller(self, incident: ClusterIncident, node: Node) -> None:
        """Lose the reply to the controller's commit after another broker was killed."""
        self._ensemble.lose_reply(node.host)
        other = self._random.choice([each for each in self._nodes if each is not node])
        await self._kill(incident, other)

    # --- recovery

    def heal(self) -> None:
        """Remove all faults; processes that are down stay down."""
        self._world.network.heal()
        for node in self._nodes:
            node.faults.heal()
            self._ensemble.reconnect(node.host)
            if node.process is not None:
                node.process.loop.frozen_until_s = 0.0

    async def bring_back(self, node: Node) -> None:
        """Start the broker. It ends again while its former session exists, or without ZooKeeper; then a supervisor starts it
        again."""
        while node.process is None:
            starting = node.start()
            try:
                await self._simulation.elsewhere(starting)
            except (BarnabasError, OSError) as error:
                self._world.note(f"{node.host} does not start: {error}")
                node.kill()
                await asyncio.sleep(SUPERVISOR_S)

    async def _later(self, incident: ClusterIncident, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do `work` when the incident is over. Returns at once, so that the next incident may come before, unless the incident
        `waits`."""

        async def wait_and_work() -> None:
            await asyncio.sleep(incident.while_s)
            await work()

        task = self._simulation.start_elsewhere(wait_and_work())
        if incident.waits:
            await task

    async def _heal_network(self) -> None:
        self._world.network.heal()

    async def _reconnect(self, node: Node) -> None:
        self._ensemble.reconnect(node.host)
