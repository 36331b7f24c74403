"""A program: an engine as a service, with the fake driver. Its argument is JSON; see `processes.py`."""

from __future__ import annotations

import json
import sys

from barnabas.engine.service import EngineService
from barnabas.services.host import Place, run
from barnabas.services.listener import parse_listener
from barnabas.web.service import ServiceEntry


def main() -> int:
    task = json.loads(sys.argv[1])
    entry = ServiceEntry(
        "engine", "engine", 8086, "engine", (), lambda context: EngineService(context, driver=tuple(task["driver"]))
    )
    place = Place(entry, parse_listener(task["listener"], 8086), "--listener")
    return run([place], task["properties"], ends_with_input=True)


if __name__ == "__main__":
    sys.exit(main())
