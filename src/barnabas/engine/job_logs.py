"""The loggers of the jobs of a driver: each writes to the log file of its job."""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.engine.folders import job_log
from barnabas.engine.rotating_log import RotatingLog

PARENT = "barnabas.job"


class JobLogs:
    """Loggers by job.

    Args:
        folder: of the engine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handlers: dict[str, JobLog] = {}

    def open(self, name: str) -> logging.Logger:
        """The logger of a job, which no other job has. Its file is opened anew: the folder of a job that was dropped is deleted."""
        logger = logging.Logger(f"{PARENT}.{name}")  # not by `getLogger`, for which a dot in a name is a parent's
        logger.parent = logging.getLogger(PARENT)
        old = self._handlers.pop(name, None)
        if old is not None:
            old.close()
        handler = self._handlers[name] = JobLog(RotatingLog(job_log(self._folder, name)))
        logger.addHandler(handler)
        return logger


def close_log(logger: logging.Logger) -> None:
    """Release the file of a logger; a later line opens it again."""
    for each in logger.handlers:
        each.close()


class JobLog(logging.Handler):
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
