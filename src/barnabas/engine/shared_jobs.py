"""An engine's share of the tasks of connectors: the supervisor's part that every engine of a cluster has, not the active one alone.

Rules
  1. The active engine writes assignments. Each engine runs the jobs that are assigned to it, in a process of its own, the runner.
  2. The runner starts with the first job that should run, and ends some seconds after the last.
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
    """

    def __init__(self, config: ClientConfig, member: Member, make: Callable[[], RunnerUnit], linger_s: float) -> None:
        self.member, self._make, self._linger_s = member, make, linger_s
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
