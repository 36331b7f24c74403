"""Spark's worker daemon with the decoder and the encoder in memory before any worker is forked from it.

`spark.python.daemon.module=barnabas.pipelines.daemon` makes the first task of a worker begin 0.7 s to 1.1 s sooner: pyarrow, pandas,
numba and the compiled kernels are there already. And it makes each task cheaper: Spark's workers run the collector after every task, which
looks at all that a worker loaded for itself (30,000 objects with pandas: 10 ms of CPU) and at nothing that was loaded and frozen here.

The JVM writes what a task needs in several small pieces and waits with each for the acknowledgement of the one before (Nagle's algorithm),
which Linux delays by 40 ms where nothing is sent back meanwhile: most of what a small micro-batch took. Workers acknowledge at once here.

No thread of Python's may run before the fork: pyarrow starts its pools when they are first used, which importing does not do, and pandas
starts none. Those that numpy's and pyarrow's allocators and libraries start for themselves mind the fork.
"""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from pyspark import daemon

from barnabas.pipelines import reading, source, writing
from barnabas.pipelines.exactly_once import carrying

PRELOADED = (reading, source, writing, carrying)
OF_TASKS = (  # what a worker loads for the tasks of a Python source or sink
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pandas",
    "pyarrow.pandas_compat",
)


def preload() -> None:
    """Load what tasks will need, as far as it is installed, and keep it out of the collector's sight."""
    for name in OF_TASKS:
        with suppress(ImportError):  # pandas is not required, and a worker without it says so where it is
            import_module(name)
    gc.collect()
    gc.freeze()  # so that a worker's collector neither looks at what was loaded here nor copies its pages


def acknowledging(work: Callable[..., int]) -> Callable[..., int]:
    """Spark's function for a task on a connection to the JVM, with a connection that is acknowledged and written to without delay.

    To be set for each task, since the kernel goes back to delaying by itself.
    """

    def work_at_once(connection: socket.socket, *arguments: Any) -> int:
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_QUICKACK"):  # Linux
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(connection, *arguments)

    return work_at_once


if __name__ == "__main__":
    preload()
    daemon.worker = acknowledging(daemon.worker)
    daemon.manager()
