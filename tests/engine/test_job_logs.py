"""The logs of jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

from barnabas.engine.folders import job_log
from barnabas.engine.job_logs import JobLogs, close_log
from barnabas.engine.rotating_log import last_lines


def test_a_job_that_was_dropped_and_made_again_has_a_log(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    logs.open("sold").warning("first")
    shutil.rmtree(job_log(tmp_path, "sold").parent)
    logs.open("sold").warning("second")
    (line,) = last_lines(job_log(tmp_path, "sold"), 10)
    assert line.endswith("level=WARNING second")
    close_log(logs.open("sold"))


def test_jobs_with_names_that_are_alike_have_logs_of_their_own(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    names = ("shop.sold", "shop_sold", "shop")
    loggers = [logs.open(name) for name in names]
    for name, logger in zip(names, loggers, strict=True):
        logger.warning("line of %s", name)
        close_log(logger)
    for name in names:
        (line,) = last_lines(job_log(tmp_path, name), 10)
        assert line.endswith(f"line of {name}")
