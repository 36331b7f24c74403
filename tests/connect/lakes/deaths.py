"""Tasks that die at a step of a commit."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.engine.jobs import Job
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_kills import die_once
from tests.waiting import wait_until


def die_at(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, job: Job, *, after: bool) -> None:
    """Run a task until it dies at a call of a function, before it or after it."""
    with monkeypatch.context() as dying:
        died = die_once(dying, owner, step, after=after)
        task = tasks.start(job)
        wait_until(lambda: died and task.failure() is not None, "it did not die")
        tasks.stop(task)
