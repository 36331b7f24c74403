"""The child process of `barnabas.testing.Broker`: the server, and a thread that detects the end of the parent.

The parent never writes to the pipe on standard input, so the end of the pipe means that the parent died or dropped the broker.
A parent death signal is no alternative: it comes at the end of the thread that started the child, and test runners use threads
that end.

The settings come in the environment, because they contain passwords: every user of the machine sees the arguments of a process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading

from barnabas.streams import open_missing_streams

TASK_VARIABLE = "BARNABAS_TESTING_TASK"


def main(task_text: str) -> int:
    """Run the broker that the JSON text describes until a signal stops it; returns the exit code."""
    from barnabas.errors import BarnabasError
    from barnabas.server.main import run

    task = json.loads(task_text)
    orphaned = threading.Event()
    threading.Thread(target=_watch_parent, args=(orphaned,), name="parent-watch", daemon=True).start()
    try:
        return run(task["properties"], metrics_listener=None, log_level=task["log_level"])
    except BarnabasError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if orphaned.is_set():
            shutil.rmtree(task["remove_when_orphaned"], ignore_errors=True)


def _watch_parent(orphaned: threading.Event) -> None:
    if os.read(0, 1) == b"":
        orphaned.set()
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    open_missing_streams()
    sys.exit(main(os.environ.pop(TASK_VARIABLE)))
