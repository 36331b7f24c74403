"""Runs in a process of its own: every command line of standard input, each in a child with closed standard streams.

Prints a JSON list of [arguments, closed streams, exit code, traceback or None]. A child is a fork of this process, which has loaded
everything: separate processes would take minutes. The child does by hand what Python does at its start for a closed stream: the stream
becomes None. Help is tried with all streams closed only.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from importlib import import_module

from barnabas.cli import main
from barnabas.cli.reference import walk

CLOSED = ((0,), (1,), (2,), (0, 1, 2))
WHAT_COMMANDS_LOAD = (
    "barnabas.server.main",
    "barnabas.cli.wire",
    "confluent_kafka.admin",
    "barnabas.tls.authority",
    "barnabas.tables.table",
)
NAMES = ("stdin", "stdout", "stderr")
WENT_WRONG = 99


def child(arguments: list[str], closed: tuple[int, ...], report: int) -> int:
    """The exit code that the process would have."""
    for descriptor in closed:
        os.close(descriptor)
        setattr(sys, NAMES[descriptor], None)
        setattr(sys, f"__{NAMES[descriptor]}__", None)
    sys.argv = ["barnabas", *arguments]
    try:
        main.main()
    except SystemExit as end:
        sys.stdout.flush()
        return int(str(end.code))
    except BaseException:  # noqa: BLE001 - any error would end the process with a traceback
        os.write(report, traceback.format_exc().encode())
    return WENT_WRONG


def run(arguments: list[str], closed: tuple[int, ...]) -> tuple[list[str], tuple[int, ...], int, str | None]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = WENT_WRONG
        try:
            code = child(arguments, closed, writing)
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as report:
        text = report.read()
    return arguments, closed, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text or None


if __name__ == "__main__":
    lines = json.load(sys.stdin)
    for _ in walk(main.cli, "barnabas"):
        pass  # loads the modules of all commands
    for name in WHAT_COMMANDS_LOAD:
        import_module(name)
    gc.freeze()
    results = [
        run(arguments, closed) for arguments in lines for closed in CLOSED if arguments[-1] != "--help" or closed == CLOSED[-1]
    ]
    print(json.dumps(results))
