"""The logs of jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

from barnabas.engine.driver.job_logs import JobLogs
from barnabas.engine.folders import job_log
from barnabas.engine.rotating_log import last_lines


def test_a_job_that_was_dropped_and_made_again_has_a_log(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    logs.open("sold").warning("first")
    shutil.rmtree(job_log(tmp_path, "sold").parent)
    logs.open("sold").warning("second")
    (line,) = last_lines(job_log(tmp_path, "sold"), 10)
    assert line.endswith("level=WARNING second")
    logs.open("sold").handlers[0].close()
