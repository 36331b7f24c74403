"""The jobs of views, as the sessions of a server see them: followed once for all sessions.

The server's own client follows the topics of jobs; a session writes with its caller's rights.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import KeyedTopic
from barnabas.engine.jobs import Job, JobProgress, JobState, State
from barnabas.engine.membership import active_engine
from barnabas.engine.report import Report, reports
from barnabas.engine.stores import jobs_of, progress_of, states_of

AGE_S = 0.01  # of what statements that wait may be told
WORKING = (State.STARTING, State.RUNNING)


class ViewJobs:
    """Follows jobs, states and progress; the connections open with the first look."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._client: BlockingClient | None = None
        self.store: KeyedTopic[Job] = jobs_of(config)
        self._states, self._progress = states_of(config), progress_of(config)

    def jobs(self) -> Mapping[str, Job]:
        """By name. Raises ClientError, KafkaError, like the others."""
        return self.store.follow()

    def states(self, max_age_s: float = 0.0) -> Mapping[str, JobState]:
        return self._states.follow(max_age_s=max_age_s)

    def progress(self, max_age_s: float = 0.0) -> Mapping[str, JobProgress]:
        return self._progress.follow(max_age_s=max_age_s)

    def has_engine(self, until_s: float, check: Callable[[], None]) -> bool:
        """Whether an engine works for this cluster.

        Args:
            until_s: time of `time.monotonic` until which to wait for one that starts.
        """
        while True:
            with self._lock:
                self._client = self._client or BlockingClient(self._config)
                if active_engine(self._client) is not None:
                    return True
            check()
            if time.monotonic() >= until_s:
                return False
            time.sleep(0.05)

    def reports(self) -> list[Report]:
        """Reports about all jobs."""
        jobs, states, progress = self.jobs(), self.states(), self.progress()
        if not jobs:
            return []
        with self._lock:
            self._client = self._client or BlockingClient(self._config)
            return reports(self._client, jobs, states, progress)

    def close(self) -> None:
        """Release the connections."""
        for each in (self.store, self._states, self._progress):
            each.close()
        with self._lock:
            if self._client is not None:
                self._client.close()
