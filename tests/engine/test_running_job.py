"""The life of a job in a loop: start, failure, restart, pause, end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from barnabas.engine.jobs import Desired, Job, JobState, State
from barnabas.engine.running_job import RunningJob
from tests.engine.cluster import view
from tests.waiting import wait_until


class FakeWork:
    """A job whose end and progress a test decides."""

    def __init__(self, refuses: str | None = None) -> None:
        self.refuses = refuses
        self.settled = self.stopped = self.cancelled = False
        self.fault: str | None = None

    def start(self) -> None:
        if self.refuses is not None:
            raise OSError(self.refuses)

    def failure(self) -> str | None:
        return self.fault

    def has_settled(self) -> bool:
        return self.settled

    def cancel(self) -> None:
        self.cancelled = True

    def stop(self) -> None:
        self.stopped = True


class Following:
    """A running job, and its state as the topic would have it."""

    def __init__(self, make: Callable[[Job], FakeWork], job: Job) -> None:
        self.running, self.job, self.now_s = RunningJob(job, make), job, 100.0
        self.known: JobState | None = None

    def step(self, job: Job | None = None) -> JobState | None:
        """One look, with the job as it is wanted."""
        self.running.step(job or self.job, self.now_s)
        found = self.running.state(self.known, self.now_s, 0)
        self.known = found or self.known
        return self.known

    def until(self, state: State, error: str | None = None, job: Job | None = None) -> None:
        wait_until(lambda: (found := self.step(job)) is not None and (found.state, found.error) == (state, error))

    def until_made(self, made: list[FakeWork], count: int) -> None:
        """Wait until so many jobs were started."""
        wait_until(lambda: self.step() is not None and len(made) >= count)


def test_a_failed_view_starts_again_and_its_error_stays_until_it_goes_on() -> None:
    made: list[FakeWork] = []

    def make(_: Job) -> FakeWork:
        made.append(FakeWork())
        return made[-1]

    following = Following(make, view("v"))
    following.until(State.RUNNING)
    made[0].fault = "row 7 is bad"
    following.until(State.WAITING, "row 7 is bad")
    assert made[0].stopped
    following.now_s += 5
    following.until(State.STARTING, "row 7 is bad")
    wait_until(lambda: len(made) == 2)
    for _ in range(3):
        assert following.step() is not None
    assert following.known is not None
    assert (following.known.state, following.known.error) == (State.STARTING, "row 7 is bad")
    made[1].settled = True
    following.until(State.RUNNING)


def test_a_view_that_cannot_start_waits_longer_each_time() -> None:
    made: list[FakeWork] = []

    def make(_: Job) -> FakeWork:
        made.append(FakeWork("no room"))
        return made[-1]

    following = Following(make, view("v"))
    pauses = []
    for _ in range(3):
        following.until(State.WAITING, "no room")
        pauses.append(following.running.life.next_try_s - following.now_s)
        following.now_s = following.running.life.next_try_s
        following.until_made(made, len(made) + 1)
    assert pauses == sorted(pauses)
    assert pauses[2] > pauses[0]
    assert all(each.stopped for each in made[:3])


def test_a_paused_view_rests_and_another_definition_starts_it_anew() -> None:
    made: list[FakeWork] = []

    def make(_: Job) -> FakeWork:
        made.append(FakeWork())
        return made[-1]

    job = view("v")
    following = Following(make, job)
    following.until(State.RUNNING)
    following.until(State.PAUSED, job=msgspec.structs.replace(job, desired=Desired.PAUSED))
    assert made[0].stopped
    again = msgspec.structs.replace(job, restarts=1)
    following.until(State.RUNNING, job=again)
    assert len(made) == 2
    following.running.end(10.0)
    assert made[1].stopped


def test_a_slow_start_holds_up_nobody() -> None:
    gate = threading.Event()

    def make(_: Job) -> FakeWork:
        gate.wait(60)
        return FakeWork()

    following = Following(make, view("v"))
    for _ in range(3):
        found = following.step()
        assert found is None or found.state is State.STARTING
    gate.set()
    following.until(State.RUNNING)
