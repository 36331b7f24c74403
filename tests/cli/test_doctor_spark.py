"""`barnabas doctor` finds out whether the processes that Spark starts have barnabas."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from barnabas.cli.doctor_spark import check_spark

pytest.importorskip("pyspark")


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A PATH with a Java and a Python without barnabas."""
    script(tmp_path / "bin", "java", "exit 0")
    script(tmp_path / "bin", "python3", "echo \"ModuleNotFoundError: No module named 'barnabas'\" >&2; exit 1")
    return tmp_path / "bin"


def found(**environment: str) -> dict[str, tuple[bool, str]]:
    return {check: (is_good, detail) for check, is_good, detail in check_spark({"HOME": os.environ["HOME"], **environment})}


def test_a_python_without_barnabas_is_named_with_the_way_out(others: Path) -> None:
    is_good, detail = found(PATH=str(others))["spark's workers"]
    assert not is_good
    for part in ("python3 of the PATH", "No module named 'barnabas'", "DATA_SOURCE_NOT_FOUND", "session()", "PYSPARK_PYTHON=/"):
        assert part in detail


def test_this_python_is_good_and_the_way_to_write_updates_is_told(others: Path) -> None:
    checks = found(PATH=str(others), PYSPARK_PYTHON=sys.executable, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert checks["spark's workers"] == (True, f"{sys.executable} finds barnabas")
    assert "write_stream" in checks["spark"][1]
    assert "spark's driver" not in checks


def test_a_command_of_the_driver_that_is_no_python_is_found(others: Path) -> None:
    checks = found(PATH=str(others), PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON="jupyter")
    assert not checks["spark's driver"][0]
    assert "PYSPARK_DRIVER_PYTHON=jupyter: there is none" in checks["spark's driver"][1]


def test_java_is_looked_for(tmp_path: Path) -> None:
    assert found(PATH=str(tmp_path), PYSPARK_PYTHON=sys.executable)["spark's java"] == (
        False,
        "there is no java by the PATH: Spark needs Java 17 or later",
    )
