"""The levels of loggers, in the words of Kafka Connect's interface."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

LEVELS = {
    "OFF": logging.CRITICAL + 10, "FATAL": logging.CRITICAL, "ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.INFO,
    "DEBUG": logging.DEBUG, "TRACE": logging.DEBUG - 5,
}  # fmt: skip
ROOT = "root"


class Levels:
    """Of the loggers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._applied: dict[str, str] = {}
        self._modified_ms: dict[str, int] = {}

    def all(self) -> dict[str, Any]:
        """Every logger with a level, by name."""
        with self._lock:
            named = [name for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)]
            return {name: self._shown(name) for name in sorted([ROOT, *named])}

    def one(self, name: str) -> dict[str, Any] | None:
        """The level of a logger; None if there is none of the name."""
        return self.all().get(name)

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and of those below it; returns the names of those that change."""
        with self._lock:
            below = [each for each in logging.root.manager.loggerDict if each.startswith(f"{name}.")]
            named = sorted([name, *below]) if name != ROOT else sorted([ROOT, *logging.root.manager.loggerDict])
            changed = [each for each in named if _logger(each).getEffectiveLevel() != LEVELS[level]]
            for each in named:
                _logger(each).setLevel(LEVELS[level])
            for each in changed:
                self._modified_ms[each] = time.time_ns() // 1_000_000
            return changed

    def apply(self, wanted: Mapping[str, str]) -> None:
        """Set the levels that were set for all workers, each once."""
        for name, level in wanted.items():
            if self._applied.get(name) != level and level in LEVELS:
                self._applied[name] = level
                self.set(name, level)

    def _shown(self, name: str) -> dict[str, Any]:
        number = _logger(name).getEffectiveLevel()
        level = next((text for text, each in LEVELS.items() if number >= each), "TRACE")
        return {"level": level, "last_modified": self._modified_ms.get(name)}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)
