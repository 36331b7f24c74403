"""`barnabas-python`: this environment's Python for the processes that Spark starts, with a faster start.

Spark puts `pyspark.zip` of its own folder and one of its jars before all other entries of PYTHONPATH. Python does not cache
compiled modules of an archive. So each process (a daemon for each kind of worker, a process for each streaming query) compiles
PySpark again. This takes 0.5 s of the 0.75 s of CPU before a query reads its first record. If the archive is part of the
installed package, the package has the same modules.

Rules
  1. It leaves out only `pyspark.zip` and jars in the folder of the installed `pyspark`, which Python also finds without them.
  2. Arguments, environment and the order of the other entries stay unchanged.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from barnabas.streams import open_missing_streams

if TYPE_CHECKING:
    from pathlib import Path

NAME = "barnabas-python"


def main() -> NoReturn:
    """Replace this process by Python, with the same arguments."""
    open_missing_streams()
    places = os.environ.get("PYTHONPATH")
    if places:
        kept = without_archives(places.split(os.pathsep), sys.path)
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


def command() -> str:
    """The value for PYSPARK_PYTHON: `barnabas-python` beside this Python, or this Python if the script is not installed."""
    beside = os.path.join(os.path.dirname(sys.executable), NAME)
    return beside if os.access(beside, os.X_OK) else sys.executable


def write_command(folder: Path, python: str = sys.executable) -> str:
    """Write the script that an installation would create, for a Python that finds barnabas only by PYTHONPATH."""
    script = folder / NAME
    script.write_text(f"#!{python}\nfrom barnabas.pipelines.interpreter import main\n\nmain()\n")
    script.chmod(0o755)
    return str(script)


def without_archives(places: Sequence[str], search: Sequence[str]) -> list[str]:
    """`places` without the archives of the installed PySpark, and without duplicates.

    Args:
        search: the whole module search path, including `places`.
    """
    packages = (os.path.join(place, "pyspark") for place in search)
    installed = next((package for package in packages if os.path.isfile(os.path.join(package, "__init__.py"))), None)
    if installed is None:
        return list(places)
    inside = os.path.realpath(installed) + os.sep
    return [place for place in dict.fromkeys(places) if not (_is_archive(place) and os.path.realpath(place).startswith(inside))]


def _is_archive(place: str) -> bool:
    return os.path.basename(place) == "pyspark.zip" or place.endswith(".jar")
