"""One simulated run: a broker, its clients, the faults, and the verdict.

How it works: the seed determines all random choices, at the beginning (`scenario.py`) or during the run. The broker starts, and
producers, consumers and admins do their work. A task (`faults.py`) kills the broker, cuts connections and restarts. After each
restart only the auditor may connect first: it reads all records, and the history checks them. At the end all faults are
removed, and the broker is restarted and audited once more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from random import Random
from zlib import crc32

from barnabas.client.results import NewTopic
from barnabas.storage.files import Files
from barnabas.testing.simulation import admins
from barnabas.testing.simulation.auditor import AUDITOR, Auditor
from barnabas.testing.simulation.faults import FaultInjector
from barnabas.testing.simulation.files import FaultyFiles
from barnabas.testing.simulation.node import Node
from barnabas.testing.simulation.scenario import Scenario, draw
from barnabas.testing.simulation.workload import Workload

RUN_LIMIT_S = 600.0
PARTITION_FOLDER = re.compile(r"(?P<topic>.+)-(?P<index>\d+)(\.[0-9a-f]{32}-\w+)?")


class Simulation(Workload):
    """One run of a single broker.

    Args:
        seed: determines every choice.
        echo: print the events.
        wrap_files, wrap_cleaner_files: wrap the files of the broker or of its cleaner, for canaries.
        profile: the kind of run; drawn if None.
    """

    def __init__(
        self,
        seed: int,
        *,
        echo: bool = False,
        wrap_files: Callable[[FaultyFiles], Files] = lambda files: files,
        wrap_cleaner_files: Callable[[FaultyFiles], FaultyFiles] = lambda files: files,
        profile: str | None = None,
    ) -> None:
        scenario: Scenario = draw(Random(seed ^ 0x5CE9A510), profile)
        super().__init__(seed, echo=echo, flushed=scenario.flushed)
        self.scenario = scenario
        self.name = scenario.name
        self.node = Node(
            self.world,
            1,
            scenario.properties,
            self._report,
            directories=scenario.directories,
            wrap_files=wrap_files,
            wrap_cleaner_files=wrap_cleaner_files,
        )
        if scenario.has_cold_reads:
            self.node.faults.cold = lambda path: crc32(str(path).encode()) % 3 == seed % 3
        for topic in scenario.topics:
            self.keep_books(topic)

    @property
    def addresses(self) -> str:
        return self.node.address

    # --- the course of the run

    def _main(self) -> None:
        self._finish(self.node.start())
        self._finish(self._loop("admin").create_task(self._create_topics()))
        works = [*self._producers(), *self._consumers(), *self._admins()]
        fault_injector = FaultInjector(self, Random(self.random.getrandbits(64)))
        works.append(self._loop("fate").create_task(fault_injector.run(self.scenario.incidents)))
        self._work(works, RUN_LIMIT_S)
        self.node.faults.heal()
        clean = self.random.random() < 0.5
        if clean:
            self._stop()
        else:
            self.node.kill()
        self._finish(self.node.start())
        self._finish(self._loop(AUDITOR).create_task(self._read_all(crashed=not clean, may_lose_tail=False)))
        self._count()
        self._stop()

    def _count(self) -> None:
        histories = self.histories.values()
        self.counts["records"] = sum(len(history.values) for history in histories)
        self.counts["lost_tail"] = sum(history.tail_losses for history in histories)

    def _producers(self) -> list[asyncio.Task[None]]:
        return [self.produce(number, key, how) for number, (key, how) in enumerate(self.scenario.producers)]

    def _consumers(self) -> list[asyncio.Task[None]]:
        return [self.consume(number, key) for number, key in enumerate(self.lasting)]

    def _admins(self) -> list[asyncio.Task[None]]:
        tasks = []
        for name, pause_s in self.scenario.admins.items():
            loop, admin = self.admin(name, pause_s)
            match name:
                case "delete-records":
                    work = admins.delete_records(admin)
                case "tune":
                    work = admins.tune(admin, self.settings)
                case _:
                    work = admins.move(admin, [str(directory) for directory in self.node.directories])
            tasks.append(loop.create_task(work))
        if self.scenario.churned is not None:
            topic, how = self.scenario.churned
            loop, admin = self.admin("churn", how.pause_s)
            work = admins.churn(admin, topic.name, topic.configs, how, lambda name: self.history(topic, name))
            tasks.append(loop.create_task(work))
        return tasks

    async def _create_topics(self) -> None:
        _, client = self.client("admin")
        topics = [NewTopic(topic.name, topic.partitions, 1, topic.configs) for topic in self.scenario.topics]
        await client.create_topics(topics)
        await client.close()

    # --- for the fault injector

    async def audit(self, *, crashed: bool, may_lose_tail: bool) -> None:
        self._audits += 1
        loop = self._loop(f"{AUDITOR}-{self._audits}", AUDITOR)
        await self.elsewhere(loop.create_task(self._read_all(crashed=crashed, may_lose_tail=may_lose_tail)))

    async def _read_all(self, *, crashed: bool, may_lose_tail: bool) -> None:
        auditor = Auditor(self.world, self.node.address, crashed=crashed, may_lose_tail=may_lose_tail)
        await auditor.read_partitions(self.histories)
        await auditor.read_groups(self.groups, flushed=self.flushed)
        if "tune" in self.scenario.admins:
            await auditor.read_settings(self.settings)
        await auditor.close()

    def rotten(self, folder: str) -> None:
        """A bit was flipped in the partition of this folder, or in a copy that may replace it."""
        found = PARTITION_FOLDER.fullmatch(folder)
        history = None if found is None else self.histories.get((found["topic"], int(found["index"])))
        if history is not None:
            history.rotten += 1
            self.logged_errors.excuse("rot")

    def _stop(self) -> None:
        self._finish(self.node.stop())
        self.gone(self.node)

    def _end(self) -> None:
        self.node.kill()
