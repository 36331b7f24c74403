"""The topics of jobs, states and progress, followed and changed by key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import KeyedTopic
from barnabas.engine.jobs import (
    ASSIGNMENTS,
    JOBS,
    PROGRESS,
    STATES,
    Assignment,
    Job,
    JobProgress,
    JobState,
    decode,
    encode,
)

R = TypeVar("R", Job, JobState, JobProgress, Assignment)
V = TypeVar("V")


class Records(Protocol[V]):
    """Values by key, as `client/keyed_topic.py: KeyedTopic` has them in a topic."""

    @property
    def records(self) -> Mapping[str, V]:
        """As of the last look; a snapshot that does not change."""

    def follow(self, *, max_age_s: float = 0.0) -> Mapping[str, V]:
        """As of now, or of a look that is at most so old."""

    def change(self, client: BlockingClient, decide: Callable[[Mapping[str, V]], Mapping[str, V | None]]) -> None:
        """Write what `decide` makes of the records; None deletes one."""

    def put(self, client: BlockingClient, values: Mapping[str, V | None]) -> None:
        """Write these values, whatever is there; None deletes one."""

    def close(self) -> None:
        """Release the connections."""


class JobStores(NamedTuple):
    """The jobs, their states and their progress."""

    jobs: Records[Job]
    states: Records[JobState]
    progress: Records[JobProgress]


class KeptRecords(Generic[V]):
    """Records in the memory of one process; see `Records`. For several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: Mapping[str, V] = {}

    @property
    def records(self) -> Mapping[str, V]:
        """As of now."""
        return self._records

    def follow(self, *, max_age_s: float = 0.0) -> Mapping[str, V]:
        """As of now."""
        del max_age_s
        return self._records

    def change(self, client: BlockingClient, decide: Callable[[Mapping[str, V]], Mapping[str, V | None]]) -> None:
        """Keep what `decide` makes of the records. Raises what `decide` raises."""
        del client
        with self._lock:
            merged = {**self._records, **decide(self._records)}
            self._records = {key: value for key, value in merged.items() if value is not None}

    def put(self, client: BlockingClient, values: Mapping[str, V | None]) -> None:
        """Keep these values; None deletes one."""
        self.change(client, lambda _: values)

    def close(self) -> None:
        """There is nothing to release."""


def stores_of(config: ClientConfig) -> JobStores:
    """Those of a cluster."""
    return JobStores(jobs_of(config), states_of(config), progress_of(config))


def jobs_of(config: ClientConfig) -> KeyedTopic[Job]:
    """The jobs of a cluster."""
    return _opened(config, JOBS, Job)


def states_of(config: ClientConfig) -> KeyedTopic[JobState]:
    """The states of the jobs of a cluster."""
    return _opened(config, STATES, JobState)


def progress_of(config: ClientConfig) -> KeyedTopic[JobProgress]:
    """The progress of the jobs of a cluster."""
    return _opened(config, PROGRESS, JobProgress)


def assignments_of(config: ClientConfig) -> KeyedTopic[Assignment]:
    """The engines that run the shared jobs of a cluster."""
    return _opened(config, ASSIGNMENTS, Assignment)


def _opened(config: ClientConfig, topic: str, kind: type[R]) -> KeyedTopic[R]:
    return KeyedTopic(
        config, topic, encode=encode, decode=partial(decode, kind=kind), most_records=limits.MAX_JOBS,
        most_bytes=limits.MAX_JOB_BYTES,
    )  # fmt: skip
