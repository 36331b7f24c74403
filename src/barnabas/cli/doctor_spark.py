"""The checks of `barnabas doctor` for Spark: whether the processes of a Spark session from this environment find the data source.

Rules
  1. Spark is neither imported nor started. The check runs the Python interpreters that the environment of this
     command names.
  2. Without PySpark there is no line about Spark.
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
DEFAULT_PYTHON = "python3"  # Spark runs this interpreter if no environment variable names another
ASK = "import barnabas.pipelines.source"
WITHIN_S = 30.0
UPDATES = "for outputMode('update') use barnabas.pipelines.write_stream(frame), since Spark does not offer it to Python sinks"
Answer = tuple[bool, str]


def check_spark(environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, bool, str]]:
    """One check: its subject, its state, and the line to print."""
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
        f"a session that barnabas.pipelines.session() did not make runs {origin}: {wrong}. It ends in DATA_SOURCE_NOT_FOUND; use "
        f"that function, or set {setting}={command()}"
    )


def _missing(python: str, environment: Mapping[str, str]) -> str | None:
    """The last line of Python's error if it does not find the data source, else an empty text."""
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
