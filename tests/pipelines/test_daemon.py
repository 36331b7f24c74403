"""The daemon that workers are forked from: what is in its memory."""

from __future__ import annotations

import json
import subprocess
import sys

ASK = """
import gc, json, sys
from barnabas.pipelines import daemon
daemon.preload()
print(json.dumps([[name in sys.modules for name in daemon.OF_TASKS], len(gc.get_objects())]))
"""


def test_workers_find_everything_loaded_and_their_collector_nothing_to_do() -> None:
    told = subprocess.run([sys.executable, "-c", ASK], check=True, capture_output=True).stdout
    loaded, objects = json.loads(told)
    assert all(loaded)
    assert objects < 100
