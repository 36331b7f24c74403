"""Run the tests on all cores.

python -m tests.parallel                      all of them
python -m tests.parallel storage              those of tests/storage
python -m tests.parallel storage -- -k index  with options of pytest
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from tests.parallel.plan import TESTS

WITH_KERNELS = (
    "barnabas.sql.engine",
    "barnabas.tables.scalar_format",
    "barnabas.tables.avro_columns",
    "barnabas.columnar.encode",
    "barnabas.storage.compaction.kernels",
)
OPTIONS = ["-m", "not interop", "-p", "tests.parallel.plugin"]


def main(arguments: Sequence[str]) -> int:
    part, options = read(arguments)
    folder = TESTS / part
    if not is_part(folder):
        print(f"there is no part {part!r} of the tests; the parts are: {', '.join(parts())}", file=sys.stderr)
        return 2
    if part:
        options.insert(0, "--quick-first")
    compile_kernels()
    return int(pytest.main([*OPTIONS, "-n", str(workers(len(os.sched_getaffinity(0)))), *options, str(folder)]))


def compile_kernels() -> None:
    """Have numba compile its kernels, which a fresh checkout lacks. It takes half a minute of one core: without this step each worker and
    each process of a test would compile them at the same time, and tests would wait for that."""
    subprocess.run([sys.executable, "-c", f"import {', '.join(WITH_KERNELS)}"], check=True)


def read(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The part, empty for all, and the options of pytest."""
    ours = list(takewhile(lambda argument: argument != "--", arguments))
    parser = argparse.ArgumentParser(
        prog="python -m tests.parallel", description="Run the tests on all cores.", epilog="Options of pytest follow after --."
    )
    parser.add_argument("part", nargs="?", default="", help="a folder or file below tests/, such as storage")
    part: str = parser.parse_args(ours).part
    return part, list(arguments[len(ours) + 1 :])


def workers(cores: int) -> int:
    """Three for two cores: a third of the time a test waits for processes that it started, for disks and for timers."""
    return max(cores * 3 // 2, 1)


def is_part(path: Path) -> bool:
    """Whether tests are in it."""
    if not path.resolve().is_relative_to(TESTS):
        return False
    return (path.is_file() and path.name.startswith("test_")) or next(path.rglob("test_*.py"), None) is not None


def parts() -> list[str]:
    return sorted(path.name for path in TESTS.iterdir() if path.is_dir() and is_part(path))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
