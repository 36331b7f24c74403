"""The Spark process of all views: `python -m barnabas.engine.driver`.

Its task is JSON in an environment variable, since it has passwords, and all users of a machine can see arguments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from barnabas.engine.child import Child
from barnabas.engine.life import Life
from barnabas.engine.rotating_log import RotatingLog
from barnabas.engine.unit import Unit

TASK_VARIABLE = "BARNABAS_ENGINE_TASK"
COMMAND = (sys.executable, "-m", "barnabas.engine.driver")
LOG, LOCK = "driver.log", "driver.lock"


class SparkUnit(Unit):
    """The driver.

    Args:
        settings: of the client, with `bootstrap.servers`.
        folder: of the engine.
        master, conf: Spark's master and settings.
        say: told a line for people.
        command: of the process.
    """

    def __init__(
        self, settings: Mapping[str, str], folder: Path, master: str, conf: Mapping[str, str], say: Callable[[str], None], *,
        command: Sequence[str] = COMMAND, life: Life | None = None,
    ) -> None:  # fmt: skip
        super().__init__("driver", life)
        self._folder, self._say, self._command = folder, say, command
        self._task = json.dumps({"settings": dict(settings), "folder": str(folder), "master": master, "conf": dict(conf)})
        self.first_job = ""  # for whose sake it starts

    def spawn(self) -> Child:
        self._say(f"starting Spark for the job {self.first_job}; this takes some seconds")
        log = RotatingLog(self._folder / LOG)
        return Child(self._command, {TASK_VARIABLE: self._task}, log, lock=self._folder / LOCK, announces=True)

    def became_ready(self, seconds: float) -> None:
        self._say(f"Spark is ready after {seconds:.1f} s")
