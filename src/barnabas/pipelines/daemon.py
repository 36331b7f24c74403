"""Spark's worker daemon that loads the decoder and the encoder before it forks any worker.

`spark.python.daemon.module=barnabas.pipelines.daemon` starts the first task of a worker 0.7 s to 1.1 s earlier: pyarrow,
pandas, numba and the compiled kernels are loaded already. It also makes each task cheaper. Spark's workers run the garbage
collector after every task. The collector visits all objects that the worker itself loaded (30,000 with pandas: 10 ms of CPU),
but not those that the daemon loaded and froze.

Its workers also exchange small messages with the JVM without delays (`quick_ack`).

No Python thread may run before the fork: pyarrow starts its thread pools at their first use, not at the import, and pandas
starts no threads. The threads of numpy's and pyarrow's allocators and libraries are safe with a fork.
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
OF_TASKS = (  # modules that a worker imports for a task of a Python source or sink
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pandas",
    "pyarrow.pandas_compat",
)


def preload() -> None:
    """Load the modules that tasks will need, if they are installed, and freeze their objects."""
    for name in OF_TASKS:
        with suppress(ImportError):  # pandas is optional; a task that needs it reports the missing module
            import_module(name)
    gc.collect()
    gc.freeze()  # otherwise each worker's garbage collector visits these objects, which copies their memory pages


if __name__ == "__main__":
    preload()
    daemon.worker = acknowledging(daemon.worker)
    daemon.manager()
