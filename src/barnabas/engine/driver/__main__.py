"""The driver's process: `python -m barnabas.engine.driver`, started by the supervisor (`spark_unit.py` has its task)."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.client.config import ClientConfig
from barnabas.engine.driver.opening import Opener
from barnabas.engine.job_loop import JobLoop
from barnabas.engine.jobs import DRIVEN, Job
from barnabas.engine.spark_unit import TASK_VARIABLE
from barnabas.pipelines import session
from barnabas.pipelines.runs.process import LEAVE_S, guard_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
EXIT_OK, EXIT_SPARK_ENDED = 0, 3
SOCKET_TIMEOUT_S = 60
CONF = {
    "spark.scheduler.mode": "FAIR",
    "spark.log.level": "WARN",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # many jobs that start together on few cores let each other wait longer than Spark's 15 s
    "spark.python.authenticate.socketTimeout": f"{SOCKET_TIMEOUT_S}s",
}


def main() -> int:
    """Run the views of a cluster until standard input ends or SIGTERM comes; returns the exit code."""
    task = json.loads(os.environ.pop(TASK_VARIABLE))
    guard_group(LEAVE_S)
    logging.basicConfig(level="INFO", stream=sys.stderr, format="%(asctime)s level=%(levelname)s logger=%(name)s %(message)s")
    for noisy in ("py4j", "pyspark"):
        logging.getLogger(noisy).setLevel("WARNING")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    threading.Thread(target=_watch_input, args=(stopping,), daemon=True).start()
    settings: Mapping[str, str] = task["settings"]
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", str(SOCKET_TIMEOUT_S))  # this process's side of the same
    threading.Thread(target=_load, daemon=True).start()
    made: Future[SparkSession] = Future()
    opener = Opener(made.result, settings, Path(task["folder"]))
    driver = JobLoop(ClientConfig.from_options(settings), opener.open, _own, is_alive=lambda: _is_well(made))
    conf = {**CONF, **task["conf"]}
    if not run_beside(
        lambda: driver.run(stopping), made, lambda: session("barnabas", master=task["master"], conf=conf), stopping
    ):
        logger.error("event=spark-ended")
        return EXIT_SPARK_ENDED
    made.result().stop()
    return EXIT_OK


def _own(jobs: Mapping[str, Job]) -> Mapping[str, Job]:
    return {name: job for name, job in jobs.items() if isinstance(job.work, DRIVEN) and not job.is_shared}


def run_beside(
    run: Callable[[], bool], made: Future[SparkSession], make: Callable[[], SparkSession], stopping: threading.Event
) -> bool:  # fmt: skip
    """The result of the driver's work, which begins while Spark starts: connectors do not need it. Raises what either of them raises.

    Args:
        made: gets the session, or the error.
        stopping: ends the work.
    """
    with ThreadPoolExecutor(1, "driver") as threads:
        running = threads.submit(run)
        try:
            made.set_result(make())
        except BaseException as error:
            made.set_exception(error)
            stopping.set()
            raise
        print("ready", flush=True)
        return running.result()


def _load() -> None:
    """Import what the first micro-batch needs, while Spark starts."""
    for name in ("barnabas.tables.kernels.json_spans", "barnabas.columnar.encode", "barnabas.columnar.decode"):
        import_module(name)


def _watch_input(stopping: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    stopping.set()


def _is_well(made: Future[SparkSession]) -> bool:
    """Whether Spark works, or never did: then its error ends the process."""
    return not made.done() or made.exception() is not None or _is_alive(made.result())


def _is_alive(spark: Any) -> bool:
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception as error:  # noqa: BLE001 - the JVM is gone, in any of many ways
        logger.warning("event=spark-does-not-answer error=%r", str(error)[:200])
        return False


if __name__ == "__main__":
    sys.exit(main())
