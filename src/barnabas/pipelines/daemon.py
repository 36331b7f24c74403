"""Spark's worker daemon with the decoder and the encoder in memory before any worker is forked from it.

`spark.python.daemon.module=barnabas.pipelines.daemon` makes the first task of a worker begin 0.4 s to 0.6 s sooner: pyarrow, numba and the
compiled kernels are there already.

No thread may run before the fork. pyarrow starts its pools when they are first used, which importing does not do.
"""

from __future__ import annotations

import gc

from pyspark import daemon

from barnabas.pipelines import reading, source, writing
from barnabas.pipelines.exactly_once import carrying

PRELOADED = (reading, source, writing, carrying)

if __name__ == "__main__":
    gc.freeze()  # so that a worker's collector does not copy the pages of what was loaded here
    daemon.manager()
