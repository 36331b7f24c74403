"""The build makes machine code of the check of records where it can, and goes on without where it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import build_hook

from barnabas.protocol.records import crc, walk

QUESTION = """
from importlib.machinery import EXTENSION_SUFFIXES
from barnabas.protocol.records import _walk
good = bytes([12, 0, 0, 0, 0, 0, 0])
walk = _walk.walk_records
print(_walk.__file__.endswith(tuple(EXTENSION_SUFFIXES)), _walk.SOURCE_CHECKSUM, walk(good, 1), walk(good, 0))
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
    (tmp_path / "_walk.old.so").touch()
    assert "the C compiler failed" in build_hook.compile_into(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [build_hook.SOURCE]


@pytest.mark.skipif(bool(build_hook.why_not()), reason=build_hook.why_not())
def test_the_compiled_copy_works_and_knows_its_source(tmp_path: Path) -> None:
    folder = tmp_path / build_hook.FOLDER
    folder.mkdir(parents=True)
    for package in (folder, *folder.parents[:2]):
        (package / "__init__.py").touch()
    source = Path(walk.__file__).with_name(build_hook.SOURCE)
    for path in (source, crc.__file__):  # and what it loads
        shutil.copy(str(path), folder)
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
