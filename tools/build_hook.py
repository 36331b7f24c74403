"""Compiles the check of records while the package is built, where that can be done: a hook of hatchling, named in `pyproject.toml`.

Owns `src/barnabas/protocol/records/_walk*.so`, the compiled copy of `walk.py`. mypyc and a C compiler make it; without a compiler or
Python's headers, or with `BARNABAS_PURE=1` in the environment, the package is built without it and works the same, slower.

Rules
  1. A build never fails for want of the compiled copy; it says on standard error why there is none.
  2. The copy carries the checksum of the text that it was made of, so that `scan` does not use one that is out of date.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("barnabas/protocol/records")
SOURCE, COMPILED = "walk.py", "_walk"
TIMEOUT_S = 300
COMPILER_PACKAGES = ["mypy>=1.13", "setuptools>=65"]


class CompileHook(BuildHookInterface[Any]):
    """Adds the compiled copy to a wheel, or puts it beside the source for an editable installation."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if why_not() else COMPILER_PACKAGES

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        target = Path(self.root) / "src" / FOLDER
        reason = why_not() or compile_into(target)
        if reason:
            print(f"barnabas: records are checked in plain Python, {reason}", file=sys.stderr)
            return
        build_data["artifacts"].append(f"src/{FOLDER}/{COMPILED}*.so")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def why_not() -> str:
    """What stands against compiling; empty if nothing does."""
    if os.environ.get("BARNABAS_PURE"):
        return "as BARNABAS_PURE asks for"
    if not any(map(shutil.which, ((sysconfig.get_config_var("CC") or "cc").split()[0], "cc"))):
        return "for there is no C compiler"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "for Python's C headers are missing (Debian package: python3-dev)"
    return ""


def compile_into(target: Path) -> str:
    """Compile `walk.py` of the folder `target` into it; what went wrong, or nothing."""
    for old in target.glob(f"{COMPILED}*.so"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="barnabas-build-") as temporary:
        folder = Path(temporary) / FOLDER
        folder.mkdir(parents=True)
        for package in (folder, *folder.parents[: len(FOLDER.parts) - 1]):
            (package / "__init__.py").touch()
        (folder / f"{COMPILED}.py").write_text(with_checksum((target / SOURCE).read_bytes()))
        command = [sys.executable, "-m", "mypyc", f"{FOLDER}/{COMPILED}.py"]
        try:
            done = subprocess.run(command, cwd=temporary, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"for mypyc could not be run: {error}"
        made = list(folder.glob(f"{COMPILED}*.so"))
        if done.returncode or not made:
            return f"for mypyc failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        for library in made:  # one with the code, and one that is named as the module
            shutil.copy(library, target)
    return ""


def with_checksum(source: bytes) -> str:
    """The text to compile: `source`, and the checksum by which `scan` knows it."""

    return f"{source.decode()}\n\nSOURCE_CHECKSUM = {zlib.crc32(source)}\n"


if __name__ == "__main__":
    sys.exit(why_not() or compile_into(Path(__file__).resolve().parent.parent / "src" / FOLDER) or 0)
