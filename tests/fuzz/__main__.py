"""`python -m tests.fuzz --seconds N --requests M`: every target for its share of the time, and the campaign, each in a process of its own.

Coverage-guided targets take the interpreter over and do not come back, and a broker's memory is measured, so none shares a process.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGETS = [["fuzz_frames"], ["fuzz_records"], ["fuzz_values"], ["fuzz_postgres"]]
GUIDED = [["fuzz_frames", "--guided", "corpus"]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for all targets at decoders together (default 60)")
    parser.add_argument("--requests", type=int, default=2_000_000, help="to a live broker (default 2,000,000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    targets = TARGETS + (GUIDED if importlib.util.find_spec("atheris") else [])
    share = str(max(1, options.seconds // len(targets)))
    runs = [[*target, "--seconds", share] for target in targets] + [["campaign", "--requests", str(options.requests)]]
    failed = [" ".join(each) for each in runs if run(each, options.seed)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(target: list[str], seed: int) -> int:
    """One target; the folder with the input that failed is kept and named."""
    name, *flags = target
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    folder = tempfile.mkdtemp(prefix="barnabas-fuzz-")
    command = [sys.executable, "-m", f"tests.fuzz.{name}", "--seed", str(seed), *flags]
    code = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=False).returncode
    if code:
        print(f"{' '.join(target)} ended with {code}; its files are in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
