"""What `barnabas doctor` says of Spark: whether the processes that a session starts from here will find the data source.

Rules
  1. Nothing of Spark is imported or started: the check asks the Pythons themselves, as the environment of this command names them.
  2. Without PySpark there is nothing to say.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from barnabas.pipelines.interpreter import command
from barnabas.pipelines.spark_session import DRIVERS, WORKERS

OLDEST = (4, 2)
DEFAULT_PYTHON = "python3"  # what Spark runs where the environment names nothing
ASK = "import barnabas.pipelines.source"
WITHIN_S = 30.0
UPDATES = "outputMode('update') is written by barnabas.pipelines.write_stream(frame), since Spark lets no Python sink take it"
Answer = tuple[bool, str]


def check_spark(environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, bool, str]]:
    """What was looked at, whether it is good, and the line about it."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return
    found = tuple(int(number) for number in re.findall(r"\d+", spark)[:2])
    wanted = "" if found >= OLDEST else "; the data source needs PySpark 4.2 or later (pip install 'barnabas[spark]')"
    yield "spark", not wanted, f"PySpark {spark}{wanted or f'; {UPDATES}'}"
    yield "spark's java", *_java(environment)
    workers = environment.get(WORKERS, DEFAULT_PYTHON)
    driver = environment.get(DRIVERS, workers)
    yield "spark's workers", *_python(WORKERS, workers, environment)
    if driver != workers:
        yield "spark's driver", *_python(DRIVERS, driver, environment)


def _java(environment: Mapping[str, str]) -> Answer:
    home = environment.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java", path=environment.get("PATH"))
    if java is None:
        where = f"JAVA_HOME={home}" if home else "the PATH"
        return False, f"there is no java by {where}: Spark needs Java 17 or later"
    return True, java


def _python(setting: str, python: str, environment: Mapping[str, str]) -> Answer:
    origin = f"{setting}={python}" if setting in environment else f"{python} of the PATH, since {WORKERS} is not set"
    path = shutil.which(python, path=environment.get("PATH"))
    wrong = "there is none" if path is None else _missing(path, environment)
    if wrong is None:
        return True, f"{path} finds barnabas"
    return False, (
        f"a session that does not come from barnabas.pipelines.session() runs {origin}: {wrong}. It ends in DATA_SOURCE_NOT_FOUND; use "
        f"that function, or set {setting}={command()}"
    )


def _missing(python: str, environment: Mapping[str, str]) -> str | None:
    """The last line of what Python says where it does not find the data source."""
    try:
        asked = subprocess.run(
            [python, "-c", ASK],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if asked.returncode == 0:
        return None
    return (asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"])[-1]
