"""The process of the services beside a broker: reads its task from the environment and runs the host."""

from __future__ import annotations

import json
import os
import sys

from barnabas.services.host import EXIT_USAGE, Place, run
from barnabas.services.listener import option_of, parse_listener
from barnabas.services.supervisor import TASK_VARIABLE
from barnabas.services.table import entries
from barnabas.streams import open_missing_streams
from barnabas.web.service import ServiceError


def main() -> int:
    """Run the services of the task; returns the exit code."""
    task = json.loads(os.environ.pop(TASK_VARIABLE))
    try:
        places = [
            Place(entry, parse_listener(task["listeners"][entry.name], entry.port), option_of(entry))
            for entry in entries(task["listeners"])
        ]
    except ServiceError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    return run(places, task["properties"], log_level=task["log_level"], ends_with_input=True)


if __name__ == "__main__":
    open_missing_streams()
    sys.exit(main())
