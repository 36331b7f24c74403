"""Decides what a job should do, and what its state says while the driver does not say it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from barnabas import limits
from barnabas.engine.jobs import Desired, Job, JobState, State
from barnabas.engine.life import Life, Phase
from barnabas.engine.membership import Member

ENDED = (State.FAILED, State.COMPLETED)  # such a job starts again only on request
ENGINE_STOPPED = "the engine was stopped"
HINDERED_TRIES = 2  # statements that wait for a job tell of an error after the second try


def should_run(job: Job, state: JobState | None) -> bool:
    """Whether a job needs its process."""
    if job.desired is not Desired.RUNNING:
        return False
    has_ended = state is not None and state.state in ENDED
    return not has_ended or (state.generation, state.restarts) != (job.generation, job.restarts)  # type: ignore[union-attr]  # it is there if it has ended


def of_view(job: Job, known: JobState | None, life: Life, now_s: float, now_ms: int, *, began_ms: int = 0) -> JobState | None:
    """The state of a view; None while the driver works, since it writes the states then.

    Args:
        began_ms: when the driver was started. It may have written a state before its line `ready` is seen here.
    """
    if life.phase in (Phase.RUNNING, Phase.ENDING):
        return None
    if life.phase is Phase.STARTING and known is not None and known.state is not State.STARTING and known.since_ms >= began_ms:
        return None
    if not should_run(job, known):
        return made(job, known, State.PAUSED, now_ms) if job.desired is Desired.PAUSED else None
    if life.phase is Phase.WAITING:
        return waiting(job, known, life, now_s, now_ms)
    return made(job, known, State.STARTING, now_ms, tries=life.tries, error=life.reason or (known.error if known else None))


def of_pipeline(job: Job, known: JobState | None, life: Life, now_s: float, now_ms: int, *, is_done: bool) -> JobState | None:
    """The state of a pipeline."""
    if not should_run(job, known):
        return made(job, known, State.PAUSED, now_ms) if job.desired is Desired.PAUSED and not life.is_there else None
    if is_done:
        return made(job, known, State.COMPLETED, now_ms)
    if life.phase is Phase.WAITING:
        return waiting(job, known, life, now_s, now_ms)
    if life.phase is Phase.RUNNING:
        return made(job, known, State.RUNNING, now_ms, tries=life.tries)
    return made(job, known, State.STARTING, now_ms, tries=life.tries, error=life.reason)


def waiting(job: Job, known: JobState | None, life: Life, now_s: float, now_ms: int) -> JobState:
    """The state of a job whose process starts again later."""
    next_try_ms = now_ms + int(max(life.next_try_s - now_s, 0) * 1000)
    if known is not None and known.state is State.WAITING and (known.tries, known.error) == (life.tries, _short(life.reason)):
        next_try_ms = known.next_try_ms or next_try_ms
    return made(job, known, State.WAITING, now_ms, tries=life.tries, error=life.reason, next_try_ms=next_try_ms)


def hindered(job: Job, known: JobState | None, reason: str, now_ms: int) -> JobState | None:
    """The state of a job while the engine itself cannot work; None if the job should not run."""
    return made(job, known, State.WAITING, now_ms, tries=HINDERED_TRIES, error=reason) if should_run(job, known) else None


def stopped(states: Mapping[str, JobState], reason: str, now_ms: int) -> dict[str, JobState]:
    """The states of jobs that ran, when the engine stops."""
    return {
        name: structs.replace(each, state=State.WAITING, since_ms=now_ms, error=reason, next_try_ms=None, worker=None)
        for name, each in states.items()
        if each.state in (State.STARTING, State.RUNNING)
    }


def made(
    job: Job, known: JobState | None, state: State, now_ms: int, *, tries: int = 0, error: str | None = None,
    next_try_ms: int | None = None,
) -> JobState:  # fmt: skip
    """A state of this job; one that goes on has the time of its begin."""
    goes_on = known is not None and (known.state, known.generation, known.restarts) == (state, job.generation, job.restarts)
    since_ms = known.since_ms if goes_on and known is not None else now_ms
    return JobState(job.name, job.generation, job.restarts, state, since_ms, tries, _short(error), next_try_ms)


def _short(error: str | None) -> str | None:
    return None if error is None else " ".join(error.split())[: limits.MAX_JOB_ERROR_CHARACTERS]


def placed(state: JobState, member: Member) -> JobState:
    """A state of a job that this engine runs."""
    return structs.replace(state, worker=member.id, url=member.url, worker_id=member.worker_id or None)


def released(state: JobState) -> JobState:
    """The state of a job that its engine has ended, so that another one may start it."""
    found = State.STARTING if state.state is State.RUNNING else state.state
    return structs.replace(state, state=found, worker=None)
