"""Spark's worker daemon with the decoder and the encoder in memory before any worker is forked from it.

`spark.python.daemon.module=barnabas.pipelines.daemon` makes the first task of a worker begin 0.7 s to 1.1 s sooner: pyarrow, pandas,
numba and the compiled kernels are there already. And it makes each task cheaper: Spark's workers run the collector after every task, which
looks at all that a worker loaded for itself (30,000 objects with pandas: 10 ms of CPU) and at nothing that was loaded and frozen here.

And its workers neither wait for the JVM nor let it wait where a few bytes are handed over (`quick_ack`).

No thread of Python's may run before the fork: pyarrow starts its pools when they are first used, which importing does not do, and pandas
starts none. Those that numpy's and pyarrow's allocators and libraries start for themselves mind the fork.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

from barnabas.pipelines import reading, source, writing
from barnabas.pipelines.exactly_once import executor
from barnabas.pipelines.quick_ack import acknowledging

PRELOADED = (reading, source, writing, executor)
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


if __name__ == "__main__":
    preload()
    daemon.worker = acknowledging(daemon.worker)
    daemon.manager()
