"""A process that runs tasks of connectors until it is killed or one of them fails: `python -m tests.torture.databases.worker JSON`."""

from __future__ import annotations

import json
import logging
import sys
import time

from barnabas.connect.runtime.opening import opened
from barnabas.engine.jobs import ConnectorWork, Job

JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
LOOK_S = 0.05


def main() -> int:
    given = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.WARNING)
    tasks = []
    for name, (kind, plugin, config) in given["connectors"].items():
        work = ConnectorWork(name, 0, 1, kind, plugin, {"name": name, **config}, JSON)
        tasks.append(opened(Job(name, work), given["settings"], logging.getLogger("torture")))
        tasks[-1].start()
    while True:
        for each in tasks:
            if reason := each.failure():
                sys.exit(f"{each.job.name}: {reason}")
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
