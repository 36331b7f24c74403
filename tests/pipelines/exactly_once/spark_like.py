"""Drivers and tasks that run the sink's protocol in any interleaving, with kills, zombies, speculation and restarts; one seed decides.

A driver runs batch after batch as Spark does: prepare, tasks, commit, its checkpoint. A killed driver stops for good or goes on as a
zombie; its tasks may too. The next driver begins with the first batch that the checkpoint does not have, with another number of tasks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from barnabas.pipelines.exactly_once import protocol as p
from tests.pipelines.exactly_once.world import World

ROWS = 6  # rows in a batch
QUERY = "q"


def rows_of(batch: int, task: int, tasks: int) -> list[tuple[int, int]]:
    return [(batch, row) for row in range(ROWS) if row % tasks == task]


@dataclass
class Task:
    """One attempt at one partition: claims, writes a row at a time, and is done. `run` makes a step with each `next`."""

    handout: p.Handout
    batch: int
    index: int
    tasks: int
    nonce: str
    wrote: p.Wrote | None = None
    ended: bool = False

    def run(self, world: World) -> Iterator[None]:
        try:
            yield from self._run(world)
        except (p.SinkTakenOver, p.BatchIsPast):
            pass
        finally:
            self.ended = True

    def _run(self, world: World) -> Iterator[None]:
        if p.is_written(self.handout, QUERY, self.batch):
            self.wrote = p.Wrote(self.handout, QUERY, self.batch)
            return
        rows = rows_of(self.batch, self.index, self.tasks)
        if not rows:
            self.wrote = p.Wrote(self.handout, QUERY, self.batch)
            return
        place = yield from stepwise(world, p.attempt(self.handout, self.index, self.nonce))
        for row in rows:
            if not world.write(place, [row]):
                return
            yield
        self.wrote = p.Wrote(self.handout, QUERY, self.batch, len(rows), {place.transactional_id: place.owner})


def stepwise(world: World, steps: p.Steps[Any]) -> Any:
    """Run a part of the protocol, one instruction for each `next`."""
    answer: Any = None
    try:
        while True:
            answer = world.step(steps, answer)
            yield
    except StopIteration as end:
        return end.value


@dataclass
class Cluster:
    """The shared state of all drivers: the world, Spark's checkpoint, and the running processes."""

    world: World
    rng: random.Random
    batches: int
    next_batch: int = 0
    lost: int = 0
    running: list[tuple[Task | None, Iterator[None]]] = field(default_factory=list)  # None stands for a driver
    nonces: int = 0

    def driver(self) -> Iterator[None]:
        """Half of the drivers hand out what their commit gives them, as in one process; the others prepare each batch."""
        keeps, kept = self.rng.random() < 0.5, None
        while self.next_batch < self.batches:
            batch, tasks = self.next_batch, self.rng.randint(1, 4)
            try:
                handout = kept or (yield from stepwise(self.world, p.prepare(self.world.sink)))
            except p.SinkTakenOver:
                return
            if self.rng.random() < 0.3:
                yield from stepwise(self.world, p.has_two_phase(self.world.sink))
            attempts = [self._start(handout, batch, index, tasks) for index in range(tasks)]
            winners: dict[int, p.Wrote] = {}
            while len(winners) < tasks:
                for each in attempts:
                    if each.wrote is not None:
                        winners.setdefault(each.index, each.wrote)
                self._again(handout, batch, attempts, winners, tasks)
                if len(attempts) > 8 * tasks:
                    yield from self._recover(handout)
                    return
                yield
            try:
                kept = yield from stepwise(self.world, p.commit([winners[index] for index in range(tasks)]))
                kept = kept if keeps else None
            except (p.SinkTakenOver, p.BatchLost) as error:
                self.lost += isinstance(error, p.BatchLost)
                yield from self._recover(handout)
                return
            self.next_batch = max(self.next_batch, batch + 1)

    def _recover(self, handout: p.Handout) -> Iterator[None]:
        yield from stepwise(self.world, p.recover(self.world.sink, handout.token if self.rng.random() < 0.8 else None))

    def _again(self, handout: p.Handout, batch: int, attempts: list[Task], winners: dict[int, p.Wrote], tasks: int) -> None:
        """Another attempt where one has failed, and now and then one beside those that run."""
        for index in range(tasks):
            mine = [each for each in attempts if each.index == index]
            failed = index not in winners and all(each.ended for each in mine)
            if failed or (len(mine) < 3 and self.rng.random() < 0.03):
                attempts.append(self._start(handout, batch, index, tasks))

    def _start(self, handout: p.Handout, batch: int, index: int, tasks: int) -> Task:
        self.nonces += 1
        task = Task(handout, batch, index, tasks, f"n{self.nonces}")
        self.running.append((task, task.run(self.world)))
        return task

    def play(self, steps: int, kills: float, timeouts: float = 0.0) -> None:
        """So many steps of anyone; then a last driver alone, to the end."""
        self.running.append((None, self.driver()))
        for _ in range(steps):
            if self.rng.random() < kills:
                self._trouble()
            if timeouts and self.rng.random() < timeouts and self.world.open_ids:
                self.world.time_out(self.rng.choice(self.world.open_ids))
            self._step(self.rng.randrange(len(self.running)) if self.running else None)
        for index in reversed(range(len(self.running))):
            if self.rng.random() < 0.7:  # the others become zombies
                self._kill(index)
        for _ in range(20):
            if self.next_batch == self.batches and not self._drivers():
                break
            self.running.append((None, self.driver()))
            while self._drivers():
                self._step(self.rng.choice((self.rng.randrange(len(self.running)), self._drivers()[0])))
        self.world.run(p.recover(self.world.sink, None))
        while self.running:  # late tasks
            self._step(self.rng.randrange(len(self.running)))

    def _drivers(self) -> list[int]:
        return [index for index, (task, _) in enumerate(self.running) if task is None]

    def _trouble(self) -> None:
        """Somebody is killed, or a driver is started beside what still runs."""
        if self.running and self.rng.random() < 0.6:
            self._kill(self.rng.randrange(len(self.running)))
        if not any(task is None for task, _ in self.running) or self.rng.random() < 0.3:
            self.running.append((None, self.driver()))

    def _kill(self, index: int) -> None:
        task, _ = self.running.pop(index)
        if task is not None:
            task.ended = True  # the driver of the task notices this

    def _step(self, index: int | None) -> None:
        if index is None:
            self.running.append((None, self.driver()))
            return
        task, one = self.running[index]
        try:
            next(one)
        except StopIteration:
            self.running.remove((task, one))
