"""The build makes machine code of the check of records where it can, and goes on without where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from tools import build_hook

from barnabas.protocol.records import request_scan

ROOT = Path(build_hook.__file__).resolve().parents[1]
QUESTION = """
from importlib.machinery import EXTENSION_SUFFIXES
from barnabas.protocol.records import _request_scan
good = bytes([12, 0, 0, 0, 0, 0, 0])
walk = _request_scan.walk_records
print(_request_scan.__file__.endswith(tuple(EXTENSION_SUFFIXES)), _request_scan.SOURCE_CHECKSUM, walk(good, 1), walk(good, 0))
"""


def test_a_build_without_compiler_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BARNABAS_PURE", "1")
    assert "BARNABAS_PURE" in build_hook.why_not()
    monkeypatch.delenv("BARNABAS_PURE")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no C compiler" in build_hook.why_not()


def test_where_the_compiler_of_this_python_is_missing_the_systems_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSHARED", "no-such-compiler -shared -Wl,-O1")
    assert build_hook._linker() == ["cc", "-shared", "-Wl,-O1"]


def test_a_source_that_cannot_be_compiled_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / build_hook.SOURCE).write_text("int broken(\n")
    (tmp_path / "_request_scan.old.so").touch()
    assert "the C compiler failed" in build_hook.compile_into(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [build_hook.SOURCE]


def _build_wheel(folder: Path, **environment: str) -> Path:
    """Of a copy, so that the library of this checkout stays as it is."""
    copy = folder / "copy"
    for name in ("src", "tools", "pyproject.toml", "README.md", "LICENSE"):
        found = ROOT / name
        if found.is_dir():
            shutil.copytree(found, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(found, copy / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=copy, env={**os.environ, **environment}, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.mark.skipif(bool(build_hook.why_not()), reason=build_hook.why_not())
def test_one_wheel_brings_the_machine_code_to_all_versions_of_python(tmp_path: Path) -> None:
    wheel = _build_wheel(tmp_path)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-cp311-abi3-{platform}.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    question = "from barnabas.protocol.records import scan; print(scan.walker.__file__)"
    command = [sys.executable, "-c", question]
    found = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "installed")}, capture_output=True, text=True)
    assert found.stdout.startswith(str(tmp_path / "installed")), found.stderr
    assert found.stdout.rstrip().endswith(f"{build_hook.NAME}{build_hook.SUFFIX}")


def test_a_wheel_without_machine_code_is_for_every_machine(tmp_path: Path) -> None:
    assert _build_wheel(tmp_path, BARNABAS_PURE="1").name.endswith("-py3-none-any.whl")


@pytest.mark.skipif(bool(build_hook.why_not()), reason=build_hook.why_not())
def test_the_compiled_copy_works_and_knows_its_source(tmp_path: Path) -> None:
    folder = tmp_path / build_hook.FOLDER
    source = Path(request_scan.__file__).with_name(build_hook.SOURCE)
    package = source.parents[len(build_hook.FOLDER.parts) - 1]
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    assert build_hook.compile_into(folder) == ""
    answer = subprocess.run(
        [sys.executable, "-c", QUESTION],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    checksum = build_hook.checksum(source.read_bytes())
    assert answer.stdout.strip() == f"True {checksum} (0, 0, False) None", answer.stderr
