"""When the periodic jobs of a broker run, in virtual time."""

from __future__ import annotations

import pytest

from barnabas.server.metrics import Metrics
from barnabas.server.periodic_jobs import PeriodicJobs
from barnabas.testing.simulation.loop import VirtualLoop, World, new_loop


class Clock:
    """A loop in virtual time, and what ran on it: names and milliseconds since it began."""

    def __init__(self) -> None:
        self.world = World(1)
        self.errors: list[str] = []
        self.loop: VirtualLoop = new_loop(self.world, "broker", "10.0.0.1", self.errors.append)
        self.began_s = self.world.now_s
        self.ran: list[tuple[str, int]] = []

    def job(self, name: str) -> None:
        self.ran.append((name, self.ms))

    @property
    def ms(self) -> int:
        return round((self.world.now_s - self.began_s) * 1000)

    def run(self, ms: int) -> None:
        until = self.ms + ms
        self.loop.call_later(ms / 1000, lambda: None)
        self.world.run_until(lambda: self.ms >= until)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_jobs_of_one_interval_run_in_one_moment_whenever_they_end(clock: Clock) -> None:
    periodic_jobs = PeriodicJobs(clock.loop)

    async def slow() -> None:
        clock.job("slow")
        await clock.loop.run_in_executor(None, lambda: None)  # takes some time of the loop

    periodic_jobs.every(1_000, slow, "slow")
    periodic_jobs.every(1_000, lambda: clock.job("quick"), "quick")
    periodic_jobs.every(500, lambda: clock.job("twice"), "twice")
    clock.run(2_100)

    assert {ms for _, ms in clock.ran} == {500, 1_000, 1_500, 2_000}
    assert sorted(name for name, ms in clock.ran if ms == 2_000) == ["quick", "slow", "twice"]


def test_the_first_run_may_come_before_the_interval_is_over(clock: Clock) -> None:
    periodic_jobs = PeriodicJobs(clock.loop)
    periodic_jobs.every(1_000, lambda: clock.job("early"), "early", first_ms=300)
    clock.run(2_050)

    assert [ms for _, ms in clock.ran] == [300, 1_000, 2_000]


def test_what_was_missed_is_not_made_up_for(clock: Clock) -> None:
    periodic_jobs = PeriodicJobs(clock.loop)
    periodic_jobs.every(100, lambda: clock.job("job"), "job")
    clock.run(150)
    clock.loop.frozen_until_s = clock.world.now_s + 0.4  # the process stands still for 0.4 s
    clock.run(600)

    assert [ms for _, ms in clock.ran] == [100, 550, 600, 700]


def test_a_job_that_fails_runs_again(clock: Clock) -> None:
    periodic_jobs = PeriodicJobs(clock.loop)

    def fail() -> None:
        clock.job("fails")
        raise RuntimeError("no")

    periodic_jobs.every(100, fail, "fails")
    clock.run(250)

    assert [ms for _, ms in clock.ran] == [100, 200]


def test_the_loop_is_watched_closely_only_while_it_is_busy(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    looks: list[int] = []
    monkeypatch.setattr(metrics, "observe_loop_lag", lambda lag_ms: looks.append(clock.ms))
    periodic_jobs = PeriodicJobs(clock.loop)
    periodic_jobs.watch_loop(metrics)
    clock.run(1_050)
    assert looks == [100, 1_000]

    periodic_jobs.every(10, lambda: metrics.observe_request(0, 1_000_000), "requests")  # 10% of the loop's time
    looks.clear()
    clock.run(1_400)
    assert looks == [2_000, 2_100, 2_200, 2_300, 2_400]


def test_a_loop_that_stood_still_is_seen(clock: Clock) -> None:
    metrics = Metrics()
    periodic_jobs = PeriodicJobs(clock.loop)
    periodic_jobs.watch_loop(metrics)
    clock.run(150)
    clock.loop.frozen_until_s = clock.began_s + 1.25
    clock.run(1_200)

    assert metrics.loop_lag_max_ms == pytest.approx(250)
