"""Removes what is left of jobs that are gone, and of generations before the present one: folders, states, progress."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from barnabas.client.blocking import BlockingClient
from barnabas.client.keyed_topic import KeyedTopic
from barnabas.engine.folders import job_folder, jobs_folder, safe_name
from barnabas.engine.jobs import Job, JobProgress, JobState, State

EVERY_S = 1.0
LEAVE_S = 10.0  # for the driver or the runner to end a job that is gone


class Cleaner:
    """See the module."""

    def __init__(
        self, folder: Path, jobs: KeyedTopic[Job], states: KeyedTopic[JobState], progress: KeyedTopic[JobProgress]
    ) -> None:
        self._folder, self._jobs, self._states, self._progress = folder, jobs, states, progress
        self._looked_s = -EVERY_S
        self._gone: dict[str, float] = {}  # since when, by the name of the folder

    def clean(self, client: BlockingClient, now_s: float, *, is_used: bool, units: Collection[str]) -> None:
        """Look, at most once a second. Raises KafkaError, ClientError.

        Args:
            is_used: whether the driver or the runner may still use a folder.
            units: the pipelines that may.
        """
        if now_s - self._looked_s < EVERY_S:
            return
        self._looked_s = now_s
        jobs = self._jobs.records
        self._clean_generations(is_used)
        leftovers = {safe_name(name): name for name in (*self._states.records, *self._progress.follow()) if name not in jobs}
        there = {safe_name(name) for name in (*jobs, *units)}
        folders = jobs_folder(self._folder)
        on_disk = {path.name for path in folders.iterdir()} - there if folders.is_dir() else set[str]()
        gone = (leftovers.keys() | on_disk) - {safe_name(name) for name in units}
        self._gone = {each: self._gone.get(each, now_s) for each in gone}
        for each, since_s in self._gone.items():
            if not is_used or now_s - since_s >= LEAVE_S:
                shutil.rmtree(folders / each, ignore_errors=True)
                if each in leftovers:
                    self._forget(client, leftovers[each])

    def _forget(self, client: BlockingClient, name: str) -> None:
        for topic in (self._states, self._progress):
            if name in topic.records:
                topic.put(client, {name: None})

    def _clean_generations(self, is_used: bool) -> None:
        for name, job in self._jobs.records.items():
            state = self._states.get(name)
            moved_on = state is not None and state.generation >= job.generation and state.state is State.RUNNING
            if is_used and not moved_on:
                continue
            folder = job_folder(self._folder, name)
            for path in folder.iterdir() if folder.is_dir() else ():
                if path.name.isdigit() and int(path.name) < job.generation:
                    shutil.rmtree(path, ignore_errors=True)
