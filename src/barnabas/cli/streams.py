"""Standard output whose reader has gone away: a closed pipe, a closed terminal."""

from __future__ import annotations

import os
import sys


def drop_standard_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not fail on it again."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
