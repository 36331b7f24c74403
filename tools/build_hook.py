"""A build hook of hatchling (in `pyproject.toml`) that compiles the check of records, if possible.

Owns `src/barnabas/protocol/records/_request_scan*.so`, the compiled `_request_scan.c`. It needs a C compiler and Python's headers. Without
them, or with `BARNABAS_PURE=1` in the environment, the package is built without the compiled module: it works the same, but
slower.

Rules
  1. A build does not fail without the compiled module; it prints the reason to standard error.
  2. The module contains the checksum of its source, so that `scan` does not use an outdated one.
  3. It uses Python's stable interface only, so that one library and one wheel work with Python 3.11 and all later versions.
"""

from __future__ import annotations

import os
import shlex
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
NAME = "_request_scan"
SOURCE = f"{NAME}.c"
SUFFIX = ".abi3.so"
INTERFACE = "cp311-abi3"  # in the tag of a wheel: CPython 3.11 or later
TIMEOUT_S = 300
_IN_TAGS = str.maketrans("-.", "__")


class CompileHook(BuildHookInterface[Any]):
    """Adds the machine code to a wheel, or puts it beside the source for an editable installation."""

    PLUGIN_NAME = "custom"

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        target = Path(self.root) / "src" / FOLDER
        reason = why_not() or compile_into(target)
        if reason:
            print(f"barnabas: records are checked in plain Python, {reason}", file=sys.stderr)
            return
        build_data["artifacts"].append(f"src/{FOLDER}/{NAME}{SUFFIX}")
        build_data["pure_python"] = False
        build_data["tag"] = f"{INTERFACE}-{sysconfig.get_platform().translate(_IN_TAGS)}"


def why_not() -> str:
    """The reason why compiling is not possible; empty if it is possible."""
    if os.environ.get("BARNABAS_PURE"):
        return "as BARNABAS_PURE asks for"
    if not shutil.which(_linker()[0]):
        return "for there is no C compiler"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "for Python's C headers are missing (Debian package: python3-dev)"
    return ""


def compile_into(target: Path) -> str:
    """Compile the source in the folder `target`, with the result in the same folder; returns the error, or an empty text."""
    for old in target.glob(f"{NAME}*.so"):
        old.unlink()
    source = target / SOURCE
    command = [*_linker(), "-O3", "-fPIC", "-Wall", "-Wextra", f"-DSOURCE_CHECKSUM={checksum(source.read_bytes())}U"]
    with tempfile.TemporaryDirectory(prefix="barnabas-build-") as folder:
        made = Path(folder) / f"{NAME}{SUFFIX}"
        command += [f"-I{sysconfig.get_path('include')}", str(source), "-o", str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"for the C compiler could not be run: {error}"
        if done.returncode:
            return f"for the C compiler failed:\n{done.stderr[-2000:]}"
        shutil.copy(made, target)
    return ""


def checksum(source: bytes) -> int:
    """The checksum by which `scan` identifies the source of the compiled module."""
    return zlib.crc32(source)


def _linker() -> list[str]:
    """The command that links extensions of this Python, which also compiles; with `cc` if its compiler is not installed."""
    program, *flags = shlex.split(os.environ.get("LDSHARED") or sysconfig.get_config_var("LDSHARED") or "cc -shared")
    return [program if shutil.which(program) else "cc", *flags]


if __name__ == "__main__":
    sys.exit(why_not() or compile_into(Path(__file__).resolve().parent.parent / "src" / FOLDER) or 0)
