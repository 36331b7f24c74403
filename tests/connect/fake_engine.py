"""An engine without Spark: it says of every job that it does what it should, or fails as the test wishes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.engine.jobs import Desired, Job, JobState, State
from barnabas.engine.membership import Member, take_part
from barnabas.engine.stores import jobs_of, states_of


class FakeEngine:
    """Follows the jobs and writes their states, until `close`.

    Args:
        failing: errors by the names of jobs; may change meanwhile.
    """

    def __init__(self, bootstrap: str, failing: Mapping[str, str] | None = None) -> None:
        config = ClientConfig.from_options({"bootstrap.servers": bootstrap})
        self._client, self.jobs, self._states = BlockingClient(config), jobs_of(config), states_of(config)
        self.failing = dict(failing or {})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._election = threading.Thread(target=lambda: asyncio.run(self._take_part(config)), daemon=True)
        self._election.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._election.join()
        for each in (self._client, self.jobs, self._states):
            each.close()

    async def _take_part(self, config: ClientConfig) -> None:
        """Be a member of the group of engines."""
        election = take_part(config, Member("http://127.0.0.1:1", "fake"), lambda _active, _members: None)
        election.start()
        await asyncio.to_thread(self._stopping.wait)
        await election.close()

    def _run(self) -> None:
        while not self._stopping.wait(0.05):
            jobs = self.jobs.follow()

            def changes(known: Mapping[str, JobState], jobs: Mapping[str, Job] = jobs) -> dict[str, JobState | None]:
                now = {name: self._state(job) for name, job in jobs.items()}
                gone = dict.fromkeys(known.keys() - now.keys())
                return {**{name: each for name, each in now.items() if not _is_same(each, known.get(name))}, **gone}

            if changes(self._states.follow()):
                self._states.change(self._client, changes)

    def _state(self, job: Job) -> JobState:
        error = self.failing.get(job.name)
        state = State.PAUSED if job.desired is Desired.PAUSED else State.RUNNING if error is None else State.WAITING
        return JobState(job.name, job.generation, job.restarts, state, int(time.time() * 1000), error=error)


def _is_same(now: JobState, known: JobState | None) -> bool:
    return known is not None and (now.state, now.generation, now.restarts, now.error) == (
        known.state, known.generation, known.restarts, known.error,
    )  # fmt: skip
