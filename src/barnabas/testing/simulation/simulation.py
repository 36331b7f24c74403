"""One simulated run: a broker, its clients, what happens to them, and the verdict.

How it works: everything is drawn from the seed at the beginning (`scenario.py`) or while it goes on. The broker is brought up, producers
and consumers do their work, and a task that stands for fate kills, cuts and restarts. After each return of the broker only the auditor is
let in first: it reads all there is, and the history says whether that can be. At the end everything is healed, restarted and audited once
more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.errors import BarnabasError
from barnabas.storage.files import Files
from barnabas.testing.simulation.clients import EARLIEST, LATEST, Consumer, Producer, client_config, records_of
from barnabas.testing.simulation.files import FaultyFiles
from barnabas.testing.simulation.history import GroupHistory, PartitionHistory, TopicPartition, Violation
from barnabas.testing.simulation.loop import Stuck, VirtualLoop, World
from barnabas.testing.simulation.node import Node
from barnabas.testing.simulation.scenario import Blow, Scenario, draw
from barnabas.testing.simulation.trace import Trace

R = TypeVar("R")
AUDITOR = "auditor"
START_LIMIT_S = 60.0
GROUP_PATIENCE_MS = 20_000


@dataclass(slots=True)
class Verdict:
    """How a run went; `failure` is None where nothing was wrong."""

    seed: int
    scenario: str
    checksum: int
    events: int
    virtual_s: float
    failure: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


class _Errors(logging.Handler):
    """What the broker logs as an error of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage() + (f" ({record.exc_info[1]!r})" if record.exc_info else ""))


class Simulation:
    """One run.

    Args:
        seed: of every choice.
        echo: print what happens.
        wrap_files: something between the broker and its disk, for canaries.
        profile: the kind of run; drawn if None.
    """

    def __init__(
        self,
        seed: int,
        *,
        echo: bool = False,
        wrap_files: Callable[[FaultyFiles], Files] = lambda files: files,
        profile: str | None = None,
    ) -> None:
        self.seed = seed
        self.world = World(seed, Trace(echo=echo))
        self.scenario: Scenario = draw(Random(seed ^ 0x5CE9A510), profile)
        self.node = Node(self.world, self.scenario.properties, self._report, wrap_files)
        self.random = Random(self.world.random.getrandbits(64))
        self.histories: dict[TopicPartition, PartitionHistory] = {
            (topic.name, index): PartitionHistory(
                f"{topic.name}-{index}", flushed=self.scenario.flushed, retention_ms=topic.retention_ms
            )
            for topic in self.scenario.topics
            for index in range(topic.partitions)
        }
        self.groups = {key: GroupHistory(f"group-{key[0]}-{key[1]}") for key in self.histories}
        self.counts: dict[str, int] = {}
        self._problems: list[str] = []
        self._errors = _Errors()
        self._failed: BaseException | None = None
        self._loops = 0
        self._producing = 0

    def run(self) -> Verdict:
        """Until everything is done, or something is wrong."""
        logger = logging.getLogger("barnabas")
        logger.addHandler(self._errors)
        failure = None
        try:
            self._main()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in a run is its verdict
            failure = f"{type(error).__name__}: {error}"
        finally:
            logger.removeHandler(self._errors)
            self.node.kill()
        world = self.world
        return Verdict(
            self.seed,
            self.scenario.name,
            world.trace.checksum,
            world.trace.count,
            world.now_s,
            failure,
            self.counts,
            list(world.trace.last) if failure else [],
        )

    # --- the course of it

    def _main(self) -> None:
        self._start()
        self._finish(self._loop("admin").create_task(self._create_topics()))
        works = [*self._producers(), *self._consumers()]
        works.append(self._loop("fate").create_task(self._fate()))
        for task in works:
            task.add_done_callback(self._work_done)
        self._drive(lambda: all(task.done() for task in works), limit_s=600)
        for task in works:
            task.result()
        self.node.faults.heal()
        self._restart(clean=self.random.random() < 0.5)
        self.counts["records"] = sum(len(history.values) for history in self.histories.values())
        self.counts["lost_tail"] = sum(history.tail_losses for history in self.histories.values())
        self._stop()

    def _producers(self) -> list[asyncio.Task[None]]:
        tasks = []
        for number, (key, how) in enumerate(self.scenario.producers):
            loop = self._loop(f"producer-{number}")
            client = AsyncClient(client_config(self.node.address, loop.name))
            producer = Producer(self.world, client, f"p{number}", *key, self.histories[key], how)
            self._producing += 1
            tasks.append(loop.create_task(self._until_done(producer.run())))
        return tasks

    def _work_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed = self._failed or error

    async def _until_done(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._producing -= 1

    def _consumers(self) -> list[asyncio.Task[None]]:
        tasks = []
        for number, (key, history) in enumerate(self.histories.items()):
            loop = self._loop(f"consumer-{number}")
            client = AsyncClient(client_config(self.node.address, loop.name, patience_ms=3_000))
            consumer = Consumer(self.world, client, *key, history, self.groups[key], lambda: not self._producing)
            tasks.append(loop.create_task(consumer.run()))
        return tasks

    async def _create_topics(self) -> None:
        client = AsyncClient(client_config(self.node.address, "admin"))
        topics = [NewTopic(topic.name, topic.partitions, 1, topic.configs) for topic in self.scenario.topics]
        await client.create_topics(topics)
        await client.close()

    async def _fate(self) -> None:
        """What befalls the broker, one blow after the other, while producers are at work."""
        for blow in self.scenario.blows:
            await asyncio.sleep(blow.after_s)
            if not self._producing:
                return
            self.counts[blow.kind] = self.counts.get(blow.kind, 0) + 1
            match blow.kind:
                case "disconnect":
                    ends = self.world.network.connections(self.node.host)
                    if ends:
                        self.world.network.cut(self.random.choice(ends))
                case "restart":
                    await self._elsewhere(self.node.stop())
                    self._gone()
                    await self._come_back(blow, crashed=False)
                case _:
                    await self._crash(blow)

    async def _crash(self, blow: Blow) -> None:
        process = self.node.process
        assert process is not None, "only fate ends it"
        if blow.changes:
            process.files.kill_in = blow.changes
            waited_s = 0.0
            while not self.node.has_died and waited_s < 3:
                await asyncio.sleep(0.01)
                waited_s += 0.01
        power = blow.kind == "power-cut"
        self.node.kill(power=power)
        await asyncio.sleep(blow.down_s)
        await self._come_back(blow, crashed=True)

    async def _come_back(self, blow: Blow, *, crashed: bool) -> None:
        """Start again, with a second crash on the way if that is in store, and audit before anybody else connects."""
        power = blow.kind == "power-cut"
        self.world.network.admitted = AUDITOR
        if blow.again:
            starting = self.node.start()
            assert self.node.process is not None
            self.node.process.files.kill_in = blow.again
            waited_s = 0.0
            while not self.node.has_died and not starting.done() and waited_s < START_LIMIT_S:
                await asyncio.sleep(0.001)
                waited_s += 0.001
            crashed = True
            self.node.kill(power=power)
        try:
            await self._elsewhere(self.node.start())
        except (BarnabasError, OSError) as error:
            raise Violation(f"the broker does not start: {error}") from error
        await self._audit(crashed=crashed, power_cut=power)
        self.world.network.admitted = None

    async def _audit(self, *, crashed: bool, power_cut: bool) -> None:
        self._loops += 1
        loop = self._loop(f"{AUDITOR}-{self._loops}", AUDITOR)
        await self._elsewhere(loop.create_task(self._read_all(crashed=crashed, power_cut=power_cut)))

    async def _read_all(self, *, crashed: bool, power_cut: bool) -> None:
        client = AsyncClient(client_config(self.node.address, AUDITOR))
        for key, history in self.histories.items():
            start = (await client.list_offsets({key: EARLIEST}))[key].offset
            end = (await client.list_offsets({key: LATEST}))[key].offset
            self.world.note(f"audit {history.name} [{start}, {end})")
            history.restarted(crashed=crashed, power_cut=power_cut, end=end)
            history.started_at(start, self.world.now_ms())
            records: list[tuple[int, bytes]] = []
            position = start
            while position < end:
                found = records_of(await client.fetch(*key, position), position)
                if not found:
                    raise Violation(f"{history.name}: nothing is read at {position}, and the log ends at {end}")
                history.read(position, found, high_watermark=end, log_start=start)
                records += found
                position = found[-1][0] + 1
            history.audited(start, end, records)
        await self._check_groups(client, power_cut=power_cut)
        await client.close()

    async def _check_groups(self, client: AsyncClient, *, power_cut: bool) -> None:
        for key, group in self.groups.items():
            if power_cut and not self.scenario.flushed:
                group.lost_power()
            if group.asked:
                found = await client.committed_offsets(group.name, [key])
                group.read(found[key].offset)

    # --- start and stop from outside

    def _start(self) -> None:
        self._finish(self.node.start())

    def _restart(self, *, clean: bool) -> None:
        if clean:
            self._stop()
        else:
            self.node.kill()
        self._start()
        loop = self._loop(AUDITOR)
        self._finish(loop.create_task(self._read_all(crashed=not clean, power_cut=False)))

    def _stop(self) -> None:
        self._finish(self.node.stop())
        self._gone()

    def _gone(self) -> None:
        left = self.node.gone()
        if left:
            raise Violation(f"the broker stopped and left {left} files open")

    # --- letting things happen

    def _finish(self, task: asyncio.Task[R]) -> R:
        self._drive(task.done, limit_s=START_LIMIT_S)
        return task.result()

    def _drive(self, is_done: Callable[[], bool], limit_s: float) -> None:
        world = self.world
        end_s = world.now_s + limit_s
        while not is_done():
            world.step()
            if self._failed is not None:
                raise self._failed
            if self._problems or self._errors.seen:
                raise Violation(f"the broker met a fault of its own: {(self._problems + self._errors.seen)[0]}")
            if world.now_s > end_s:
                raise Stuck(f"not done after {limit_s:.0f} s")

    async def _elsewhere(self, task: asyncio.Task[R]) -> R:
        """Wait for a task of another process."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        task.add_done_callback(lambda _: loop.call_soon(done.set_result, None))
        await done
        return task.result()

    def _loop(self, name: str, host: str = "") -> VirtualLoop:
        return VirtualLoop(self.world, name, host or name, self._report)  # type: ignore[abstract]

    def _report(self, problem: str) -> None:
        self._problems.append(problem)
