"""The loggers of the jobs of a driver: each writes to the log file of its job."""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.engine.folders import job_log
from barnabas.engine.rotating_log import RotatingLog


class JobLogs:
    """Loggers by job.

    Args:
        folder: of the engine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handlers: dict[str, _JobLog] = {}

    def open(self, name: str) -> logging.Logger:
        """The logger of a job. Its file is opened anew: the folder of a job that was dropped is deleted."""
        logger = logging.getLogger(f"barnabas.job.{name.replace('.', '_')}")
        old = self._handlers.pop(name, None)
        if old is not None:
            logger.removeHandler(old)
            old.close()
        handler = self._handlers[name] = _JobLog(RotatingLog(job_log(self._folder, name)))
        logger.addHandler(handler)
        return logger


class _JobLog(logging.Handler):
    """Writes lines to the log of one job."""

    def __init__(self, log: RotatingLog) -> None:
        super().__init__()
        self._log = log
        self.setFormatter(logging.Formatter("%(asctime)s level=%(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write(self.format(record).encode(errors="replace") + b"\n")

    def close(self) -> None:
        self._log.close()
        super().close()
