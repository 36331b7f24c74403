"""The runner's process: `python -m barnabas.engine.runner`, started by the engine (`runner_unit.py` has its settings)."""

from __future__ import annotations

import multiprocessing
import os
import sys
from importlib import import_module
from multiprocessing import forkserver

from barnabas.engine.runner import TASK_VARIABLE

PRELOAD = "barnabas.engine.runner.preload"


def main() -> int:
    """Start the fork server, which loads much, and then load the rest beside it; returns the exit code."""
    given = os.environ.pop(TASK_VARIABLE)  # it has passwords, which other processes need not see
    multiprocessing.set_forkserver_preload([PRELOAD])
    forkserver.ensure_running()
    code: int = import_module("barnabas.engine.runner.process").main(given)
    return code


if __name__ == "__main__":
    ended = main()
    sys.stdout.flush()
    # threads of jobs that do not end, and multiprocessing's wait for daemons, must not keep it; the guard kills the group
    os._exit(ended)
