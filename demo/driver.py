"""The pipeline's driver in a process of its own, so that it can be killed: `python -m demo.driver HOST:PORT FOLDER`.

It prints lines of JSON: first the process id of Spark's JVM, then the progress of the query. It ends cleanly on SIGTERM, and
when its parent process ends (its standard input ends).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from pyspark import SparkContext

from demo import pipeline
from demo.session import spark_session
from demo.steps import stop_signals


def main(bootstrap: str, work: Path) -> None:
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    with spark_session(work) as spark, stop_signals() as stopped:
        gateway = SparkContext._gateway
        assert gateway is not None
        _say({"java": gateway.proc.pid})
        query = pipeline.start(spark, bootstrap, work / pipeline.CHECKPOINT)
        pipeline.follow(query, lambda status: _say(asdict(status)), lambda _: stopped.is_set())


def _say(message: object) -> None:
    print(json.dumps(message), flush=True)


def _stop_with_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
