"""The states that the supervisor writes, by the job, the state before, and the life of the process."""

from __future__ import annotations

from barnabas import limits
from barnabas.engine.job_states import of_pipeline, of_view, should_run, stopped
from barnabas.engine.jobs import JobState, State
from barnabas.engine.life import Life
from tests.engine.cluster import PAUSED, pipeline, view


def failing(reason: str = "no") -> Life:
    life = Life()
    life.tick(0, wanted=True)
    life.ended(10, reason)
    return life


def running() -> Life:
    life = Life()
    life.tick(0, wanted=True)
    life.ready()
    return life


def test_a_job_runs_unless_it_is_paused_or_has_ended() -> None:
    assert should_run(view("a"), None)
    assert not should_run(view("a", desired=PAUSED), None)
    for state in (State.FAILED, State.COMPLETED):
        ended = JobState("a", 1, 1, state, 0)
        assert not should_run(view("a", generation=1, restarts=1), ended)
        assert should_run(view("a", generation=1, restarts=2), ended)
        assert should_run(view("a", generation=2, restarts=1), ended)
    assert should_run(view("a"), JobState("a", 0, 0, State.WAITING, 0))


def test_the_driver_writes_the_states_of_views_while_it_works() -> None:
    assert of_view(view("a"), None, running(), 0, 0) is None
    assert of_view(view("a", desired=PAUSED), None, running(), 0, 0) is None
    starting = of_view(view("a"), None, Life(), 0, 5)
    assert starting == JobState("a", 0, 0, State.STARTING, 5)
    assert of_view(view("a"), starting, Life(), 0, 9) == starting
    assert of_view(view("a", restarts=1), starting, Life(), 0, 9) == JobState("a", 0, 1, State.STARTING, 9)
    assert of_view(view("a", desired=PAUSED), None, Life(), 0, 5) == JobState("a", 0, 0, State.PAUSED, 5)
    failed = JobState("a", 0, 0, State.FAILED, 1, error="bad")
    assert of_view(view("a"), failed, failing(), 0, 5) is None


def test_a_state_that_the_driver_wrote_stays_before_its_line_is_seen() -> None:
    life = Life()
    life.tick(0, wanted=True)
    ran = JobState("a", 0, 0, State.RUNNING, 100)
    assert of_view(view("a"), ran, life, 0, 200, began_ms=100) is None
    assert of_view(view("a"), ran, life, 0, 200, began_ms=101) == JobState("a", 0, 0, State.STARTING, 200)
    life.ready()
    life.tick(1, wanted=False)
    assert of_view(view("a", desired=PAUSED), ran, life, 1, 200, began_ms=101) is None


def test_a_waiting_job_says_when_it_is_tried_again_and_keeps_to_it() -> None:
    first = of_view(view("a"), None, failing(), 10.25, 5_000)
    assert first == JobState("a", 0, 0, State.WAITING, 5_000, 1, "no", 5_750)
    assert of_view(view("a"), first, failing(), 10.5, 5_260) == first
    again = failing()
    again.tick(11, wanted=True)
    starting = of_view(view("a"), first, again, 11, 6_000, began_ms=6_000)
    assert starting == JobState("a", 0, 0, State.STARTING, 6_000, 1, "no")


def test_the_states_of_a_pipeline() -> None:
    job = pipeline("p", "x.py")
    assert of_pipeline(job, None, Life(), 0, 5, is_done=False) == JobState("p", 0, 0, State.STARTING, 5)
    assert of_pipeline(job, None, running(), 0, 5, is_done=False) == JobState("p", 0, 0, State.RUNNING, 5)
    done = of_pipeline(job, None, Life(), 0, 5, is_done=True)
    assert done == JobState("p", 0, 0, State.COMPLETED, 5)
    assert of_pipeline(job, done, Life(), 0, 6, is_done=True) is None
    paused = pipeline("p", "x.py", desired=PAUSED)
    assert of_pipeline(paused, None, running(), 0, 5, is_done=False) is None
    assert of_pipeline(paused, None, Life(), 0, 5, is_done=False) == JobState("p", 0, 0, State.PAUSED, 5)


def test_an_error_is_one_line_of_limited_length() -> None:
    found = of_view(view("a"), None, failing("a\n b" + "x" * 5_000), 10, 0)
    assert found is not None
    assert found.error is not None
    assert found.error.startswith("a bx")
    assert len(found.error) == limits.MAX_JOB_ERROR_CHARACTERS


def test_jobs_that_ran_say_that_the_engine_stopped() -> None:
    states = {name: JobState(name, 0, 0, State(name), 1) for name in ("running", "starting", "paused", "failed")}
    found = stopped(states, "why", 9)
    assert set(found) == {"running", "starting"}
    assert found["running"] == JobState("running", 0, 0, State.WAITING, 9, 0, "why")
