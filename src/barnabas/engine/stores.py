"""The topics of jobs, states and progress, followed and changed by key."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from barnabas import limits
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
