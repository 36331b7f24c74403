"""A process that runs tasks of connectors until it is killed or one of them fails: `python -m tests.torture.databases.worker JSON`."""

from __future__ import annotations

import faulthandler
import json
import logging
import math
import signal
import sys

from barnabas.connect.runtime.opening import opened
from barnabas.engine.jobs import ConnectorWork, Job
from tests.waiting import wait_until

JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def main() -> None:
    given = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    tasks = []
    for name, (kind, plugin, config) in given["connectors"].items():
        work = ConnectorWork(name, 0, 1, kind, plugin, {"name": name, **config}, JSON)
        tasks.append(opened(Job(name, work), given["settings"], logging.getLogger("torture")))
        tasks[-1].start()
    wait_until(lambda: any(each.failure() for each in tasks), within_s=math.inf)
    sys.exit("\n".join(f"{each.job.name}: {each.failure()}" for each in tasks if each.failure()))


if __name__ == "__main__":
    main()
