"""Topics as tables: Arrow, DuckDB, Polars and pandas over the log, without Spark.

`table("orders", "127.0.0.1:9092")` is a topic of a cluster. `Table` has the ways to read it. The rooms: `source` is the seam to
the log, `formats` the seam to the bytes of values, `predicate` the conditions that a scan can use, `scan` puts them together.
"""

from __future__ import annotations

from barnabas.tables.errors import BadRecord, TableError
from barnabas.tables.table import Table, table

__all__ = ["BadRecord", "Table", "TableError", "table"]
