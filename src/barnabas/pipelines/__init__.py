"""Stream and batch processing of topics: the decoder from record batches to Arrow, and the Spark data source over it.

Importing this package imports none of numpy, pyarrow, numba or pyspark. `decode` (with `codecs` and `protocol.records.kernels`)
knows neither Spark nor sockets; `options`, `offsets`, `planner` know no Spark; `source`, `sink` are the thin face that Spark sees.
"""
