"""The process that runs tasks of connectors: `python -m barnabas.engine.runner`. It has no Spark.

Its settings are JSON in an environment variable, as those of the driver. Its standard input gets a line of JSON for each change of the
levels of loggers: `{"levels": {"NAME": 10}}`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from barnabas.engine.child import Child
from barnabas.engine.life import Life
from barnabas.engine.membership import Member
from barnabas.engine.rotating_log import RotatingLog
from barnabas.engine.runner import TASK_VARIABLE
from barnabas.engine.unit import Unit

COMMAND = (sys.executable, "-m", "barnabas.engine.runner")
LOG = "runner.log"
LEAVE_S = 1.0  # for tasks whose runner was killed
MOST_PAUSE_S = 4.0  # its start is cheap, and other engines wait ten seconds at most for a dead one


class RunnerUnit(Unit):
    """The runner.

    Args:
        settings: of the client, with `bootstrap.servers`.
        folder: of the engine.
        member: the engine.
        root_level: of the root logger when the engine began.
        command: of the process.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        folder: Path,
        member: Member,
        *,
        root_level: int = logging.WARNING,
        command: Sequence[str] = COMMAND,
        pause_s: float = 1.0,
    ) -> None:
        super().__init__("runner", Life(first_pause_s=pause_s, most_pause_s=MOST_PAUSE_S))
        self._folder, self._command, self._root_level = folder, command, root_level
        self._task = {"settings": dict(settings), "folder": str(folder), "member": structs.asdict(member)}
        self._told: dict[str, int] = {}

    def spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._told = levels_of_loggers(self._root_level)
        task = json.dumps({**self._task, "levels": self._told})
        return Child(
            self._command, {TASK_VARIABLE: task}, RotatingLog(self._folder / LOG), lock=None, announces=True, leave_s=LEAVE_S
        )

    def step(self, now_s: float, *, wanted: bool) -> None:
        super().step(now_s, wanted=wanted)
        levels = levels_of_loggers(self._root_level)
        if self.child is not None and levels != self._told and self.child.tell(json.dumps({"levels": levels})):
            self._told = levels


def levels_of_loggers(begun: int) -> dict[str, int]:
    """The levels that loggers of this process have of their own. That of the root is under an empty name; tasks tell more than a service
    while nobody has set it.

    Args:
        begun: the level of the root when the engine began.
    """
    loggers = logging.root.manager.loggerDict
    found = {name: each.level for name, each in list(loggers.items()) if isinstance(each, logging.Logger) and each.level}
    return {**found, "": logging.INFO if logging.root.level == begun else logging.root.level}


def apply_levels(levels: Mapping[str, int]) -> None:
    """Give loggers of this process these levels."""
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)
