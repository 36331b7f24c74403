"""A program: a supervisor with the fake driver, until it is killed. Its argument is JSON; see `processes.py`."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from barnabas.client.config import ClientConfig
from barnabas.engine.supervisor import EngineSettings, Supervisor


def main() -> None:
    task = json.loads(sys.argv[1])
    client = {"bootstrap.servers": task["bootstrap"]}
    settings = EngineSettings(client, Path(task["folder"]), pipelines=Path(task["pipelines"]), driver=tuple(task["driver"]))
    supervisor = Supervisor(ClientConfig.from_options(client), settings, print)
    supervisor.start()
    supervisor.activate(True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
