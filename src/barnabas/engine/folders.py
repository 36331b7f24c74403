"""The files of an engine.

FOLDER/lock                  the engine that uses the folder holds it
       cluster               the id of the cluster whose jobs are here
       driver.log            what Spark writes; the one before is driver.log.1
       jobs.ID/              of another cluster that the folder served before
       queries/              of Spark while the driver runs
       jobs/NAME/log         of one job
       jobs/NAME/GENERATION/ state of one job since it began from nothing
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
HASHED = 20  # characters of the hash in the name of a folder


def jobs_folder(folder: Path) -> Path:
    """The folder of all jobs."""
    return folder / "jobs"


def queries_folder(folder: Path) -> Path:
    """The folder of the checkpoints of Spark's queries. They end with the driver."""
    return folder / "queries"


def job_folder(folder: Path, name: str, generation: int | None = None) -> Path:
    """The folder of a job, or of its state in one generation."""
    found = jobs_folder(folder) / safe_name(name)
    return found if generation is None else found / str(generation)


def job_log(folder: Path, name: str) -> Path:
    """The log of a job."""
    return job_folder(folder, name) / "log"


def safe_name(name: str) -> str:
    """The name of a job's folder. Two names never share one."""
    if SAFE.fullmatch(name):
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60]
    return f".{readable}.{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:HASHED]}"
