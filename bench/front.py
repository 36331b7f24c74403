"""The command line that the benches share: `--repeat`, `--quick`, `--json`, and the figures on a terminal and in a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.storage.result import Result, lines_of


def parser_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """The options that every bench has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of short measurements (default 3)")
    parser.add_argument("--quick", action="store_true", help="short measurements, for a look rather than for a page")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    return parser


def tell(page: dict[str, Any], file: str | None, **more: Any) -> int:
    """Print the figures, and write them to a file if one is named; returns the exit code.

    Args:
        more: further entries of the file.
    """
    for each in page["results"]:
        print("\n".join(lines_of(Result(**each))), flush=True)
    if file:
        Path(file).write_text(json.dumps({**page, **more}, indent=1) + "\n")
    return 0
