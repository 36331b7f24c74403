"""Stream and batch processing of topics: the decoder from record batches to Arrow, and the Spark data source over it.

Importing this package imports none of numpy, pyarrow, numba or pyspark. `decode` (with `kernels` and `codecs`) knows neither Spark
nor sockets; `options`, `offsets`, `planner` know no Spark; `source`, `reader`, `writer` are the thin face that Spark sees.
"""
