"""An engine's share of the tasks of connectors: the supervisor's part that every engine of a cluster has, not the active one alone.

Rules
  1. The active engine writes assignments. Each engine runs the jobs that are assigned to it, in a process of its own, the runner.
  2. The runner starts with the first job that should run, and ends some seconds after the last. It takes a second to be ready, so it
     starts while the job waits for its assignment.
  3. While the runner works, it writes the states of its jobs. Otherwise this part does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.engine import job_states
from barnabas.engine.assignments import assignment_changes
from barnabas.engine.jobs import Assignment, Job, JobState
from barnabas.engine.life import Life
from barnabas.engine.membership import Member
from barnabas.engine.runner_unit import RunnerUnit
from barnabas.engine.stores import assignments_of

logger = logging.getLogger(__name__)


class SharedJobs:
    """See the module.

    Args:
        member: this engine.
        make: the unit of the runner.
        linger_s: how long the runner stays without a job.
        warm_s: how long an engine that begins keeps a runner ready for its first job.
    """

    def __init__(
        self, config: ClientConfig, member: Member, make: Callable[[], RunnerUnit], linger_s: float, warm_s: float = 0.0
    ) -> None:
        self.member, self._make, self._linger_s = member, make, linger_s
        self._warm_s: float | None = warm_s  # until the first look
        self._warm_until_s = 0.0
        self.assignments = assignments_of(config)
        self.runner: RunnerUnit | None = None
        self._idle_since_s: float | None = None

    def close(self) -> None:
        """Release the connections."""
        self.assignments.close()

    def follow(self, jobs: Mapping[str, Job]) -> None:
        """Read the assignments, if there is something to assign. Raises ClientError, KafkaError."""
        if self.assignments.records or self.runner is not None or any(each.is_shared for each in jobs.values()):
            self.assignments.follow()

    def assign(
        self, client: BlockingClient, jobs: Mapping[str, Job], states: Mapping[str, JobState], members: Sequence[Member]
    ) -> None:
        """Decide, as the active engine, who runs what. Raises ClientError, KafkaError, KeyedTopicError."""
        ids = {each.id for each in members} or {self.member.id}

        def changes(known: Mapping[str, Assignment]) -> dict[str, Assignment | None]:
            return assignment_changes(jobs, known, states, ids)

        found = changes(self.assignments.records)
        if found:
            logger.info("event=jobs-assigned members=%d changes=%d", len(ids), len(found))
            self.assignments.change(client, changes)

    def mine(self, jobs: Mapping[str, Job]) -> dict[str, Job]:
        """The jobs of this engine."""
        return own_jobs(jobs, self.assignments.records, self.member.id)

    def step(self, jobs: Mapping[str, Job], states: Mapping[str, JobState], now_s: float) -> None:
        """Start, keep or end the runner."""
        due = any(job_states.should_run(job, states.get(name)) for name, job in self.mine(jobs).items())
        due = due or any(each.worker == self.member.id for each in states.values())  # it says that they have ended
        due = due or any(
            job.is_shared and name not in self.assignments.records and job_states.should_run(job, states.get(name))
            for name, job in jobs.items()
        )
        due = due or self.is_warm(now_s)
        if due and self.runner is None:
            self.runner = self._make()
        if self.runner is None:
            return
        if due:
            self._idle_since_s = None
        elif self._idle_since_s is None:
            self._idle_since_s = now_s
        lingers = self._idle_since_s is not None and now_s - self._idle_since_s < self._linger_s
        self.runner.step(now_s, wanted=due or (lingers and self.runner.life.is_there))

    def is_warm(self, now_s: float) -> bool:
        """Whether the runner is wanted for jobs that may come."""
        if self._warm_s is not None:
            self._warm_until_s, self._warm_s = now_s + self._warm_s, None
        return now_s < self._warm_until_s

    def state(self, job: Job, known: JobState | None, now_s: float, now_ms: int) -> JobState | None:
        """The state of a job of this engine; None while the runner says it."""
        life, began_ms = (Life(), 0) if self.runner is None else (self.runner.life, self.runner.began_ms)
        found = job_states.of_view(job, known, life, now_s, now_ms, began_ms=began_ms)
        return None if found is None else job_states.placed(found, self.member)


def own_jobs(jobs: Mapping[str, Job], assignments: Mapping[str, Assignment], worker: str) -> dict[str, Job]:
    """The shared jobs that are assigned to an engine."""
    return {
        name: job for name, job in jobs.items() if job.is_shared and (its := assignments.get(name)) and its.worker == worker
    }  # fmt: skip
