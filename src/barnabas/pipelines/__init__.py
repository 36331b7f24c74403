"""Stream and batch processing of topics: the decoder from record batches to Arrow, and the Spark data source over it.

`session` creates a Spark session with the settings for it, `write_stream` writes a stream to topics in every output mode.

Importing this package imports none of numpy, pyarrow, numba or pyspark. `decode` (with `codecs` and `protocol.records.kernels`)
depends on neither Spark nor sockets; `options`, `offsets`, `planner` do not depend on Spark. `source` and `sink` have the small
classes that Spark calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipelines.spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.pipelines.stream_writer import TopicStreamWriter

__all__ = ["session", "write_stream"]


def write_stream(frame: DataFrame) -> TopicStreamWriter:
    """`frame.writeStream.format("barnabas")` for every output mode: `append`, `update` and `complete`, each exactly once.

        write_stream(counts).outputMode("update").option("topic", "counts")….start()

    Args:
        frame: a stream with the columns to write: `value`, and optionally `key`, `topic`, `partition`, `headers`.

    Raises:
        OptionError: `frame` is not a stream, or is a stream of Spark Connect.
    """
    from barnabas.pipelines.stream_writer import TopicStreamWriter

    return TopicStreamWriter(frame)
