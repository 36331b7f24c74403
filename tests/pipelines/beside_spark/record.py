"""Ask Spark's connector what it makes of the cases, against a broker of ours: `python -m tests.pipelines.beside_spark.record`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.spark.compare import connector_jars, connector_python

from barnabas.testing import Broker
from tests.pipelines.beside_spark.cases import CASES, Case
from tests.pipelines.beside_spark.topics import made

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
MOST_CHARACTERS = 400
OF_THE_RUN = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"^An error occurred while calling o\d+\.\w+\.\n: ",
        r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ",
        r"^.*most recent failure: Lost task [^:]*: ",
        r"\s*SQLSTATE: .*$",
    )
]


def ask(python: str, source: str, cases: list[Case], *jars: str) -> list[dict[str, Any]]:
    """The result of each case, in a session of its own."""
    environment = {**os.environ, "PYTHONPATH": "" if jars else os.environ.get("PYTHONPATH", ""), "PYSPARK_PYTHON": python}
    with Broker() as broker, made(broker.bootstrap_servers), tempfile.TemporaryDirectory() as folder:
        given, output = Path(folder, "cases"), Path(folder, "output")
        given.write_text(json.dumps(cases))
        command = [python, str(HERE / "run.py"), broker.bootstrap_servers, source, str(given), str(output), *jars]
        subprocess.run(command, env=environment, check=True, timeout=1800, stdout=sys.stderr)
        found: list[dict[str, Any]] = json.loads(output.read_text())
        return found


def main() -> None:
    outcomes = ask(str(connector_python()), "kafka", CASES, str(connector_jars()))
    save({case.name: outcome for case, outcome in zip(CASES, outcomes, strict=True)})


def save(outcomes: dict[str, dict[str, Any]]) -> None:
    """One case a line, its message without what each run has of its own."""
    lines = []
    for name, outcome in outcomes.items():
        kept = {"refused": subject_of(outcome["refused"])} if "refused" in outcome else outcome
        lines.append(f"  {json.dumps(name)}: {json.dumps(kept)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def subject_of(message: str) -> str:
    for pattern in OF_THE_RUN:
        message = pattern.sub("", message)
    return " ".join(message.split())[:MOST_CHARACTERS]


if __name__ == "__main__":
    main()
