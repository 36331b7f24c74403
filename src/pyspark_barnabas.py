"""By this module Spark finds the data source `barnabas`: it imports every top-level module named `pyspark_*` and takes its `DefaultSource`.

It is imported whenever a format is looked up, also where barnabas' extras are missing or PySpark is older than 4.2: then it has no
`DefaultSource` and Spark goes on without us.
"""

from contextlib import suppress

with suppress(ImportError):
    from barnabas.pipelines.source import BarnabasDataSource as DefaultSource

    __all__ = ["DefaultSource"]
