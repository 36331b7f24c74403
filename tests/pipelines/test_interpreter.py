"""`barnabas-python`: the installed PySpark in place of the archive that Spark puts before it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyspark

from barnabas.pipelines.interpreter import command, without_archives, write_command

PACKAGE = Path(pyspark.__file__).parent
ARCHIVES = [str(next((PACKAGE / "python" / "lib").glob(f"{name}*.zip"))) for name in ("pyspark", "py4j")]
JAR = str(next((PACKAGE / "jars").glob("spark-core*.jar")))
ASK = """
import json, os, sys
from importlib.util import find_spec
print(json.dumps([sys.argv[1:], find_spec("pyspark").origin, os.environ["PYTHONPATH"]]))
"""


def test_archives_of_the_installed_package_are_left_out(tmp_path: Path) -> None:
    other = str(tmp_path / "lib" / "pyspark.zip")
    places = [*ARCHIVES, JAR, other, "/some/where", *ARCHIVES, "/some/where"]
    assert without_archives(places, [*places, str(PACKAGE.parent)]) == [ARCHIVES[1], other, "/some/where"]


def test_where_pyspark_is_not_installed_nothing_is_left_out(tmp_path: Path) -> None:
    places = [*ARCHIVES, JAR]
    assert without_archives(places, [*places, str(tmp_path)]) == places


def test_it_is_python_with_the_same_arguments(tmp_path: Path) -> None:
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*ARCHIVES, JAR, source])}
    told = subprocess.run(
        [write_command(tmp_path), "-c", ASK, "a b", ""], env=environment, check=True, capture_output=True
    ).stdout
    assert json.loads(told) == [["a b", ""], str(PACKAGE / "__init__.py"), os.pathsep.join([ARCHIVES[1], source])]


def test_the_command_is_there() -> None:
    assert os.access(command(), os.X_OK)
