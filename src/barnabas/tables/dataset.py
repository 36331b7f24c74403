"""The methods of a `pyarrow.dataset.Dataset` over a table, so that DuckDB and others push columns and filters into it.

How it works: DuckDB and Polars accept a subclass of Dataset and call its `scanner` or `to_batches`. pyarrow's own functions go past
these methods to a dataset in C++. For them the C++ part has one file that refuses to be read, so they end with an error that names
the way out. Without a C++ part they would end the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any, NoReturn, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from barnabas.tables.errors import TableError
from barnabas.tables.reading import Reading, no_rows

REFUSAL = "pyarrow cannot read a topic by this function; give it table.reader(), or table.arrow() if it fits in memory"


class _Refusing:
    """A file that nobody can read."""

    closed = False
    mode = "rb"

    def _refuse(self, *arguments: object) -> NoReturn:
        raise TableError(REFUSAL)

    read = seek = tell = size = _refuse

    def close(self) -> None:
        """Nothing to release."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


_LAYOUT = pads.IpcFileFormat()
# Made once, and not by a dataset: the C++ part keeps the first refusal, and with it the frames that lead there. A frame of a dataset's
# own would keep the dataset, and with it the connections and files of its source.
_FRAGMENT = _LAYOUT.make_fragment(cast("IO[bytes]", _Refusing()))


class TopicDataset(pads.FileSystemDataset):
    """A dataset whose rows come from `scan`.

    It has no files. The base class only makes it a Dataset for DuckDB, Polars and pyarrow; its one file refuses to be read.
    """

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__([_FRAGMENT], schema, _LAYOUT)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        *,
        limit: int | None = None,
        batch_size: int | None = None,
    ) -> Reading:
        """A reading of the table."""
        raise NotImplementedError

    def scanner(  # type: ignore[override]  # a Reading has the methods of a Scanner that libraries call
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        **settings: object,
    ) -> Reading:
        """A reading, as libraries ask for it; the settings of pyarrow's scans of files have no meaning here."""
        return self.scan(columns, filter, batch_size=batch_size)

    def to_batches(  # type: ignore[override]  # without the settings of files
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        **settings: object,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, as Arrow batches that are made as they are taken."""
        return self.scan(columns, filter, batch_size=batch_size).batches()

    def to_table(  # type: ignore[override]  # without the settings of files
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **settings: object,
    ) -> pa.Table:
        """All rows."""
        return self.scan(columns, filter).to_table()

    def head(  # type: ignore[override]  # without the settings of files
        self,
        num_rows: int = 5,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **settings: object,
    ) -> pa.Table:
        """The first rows; the rest is not read."""
        return self.scan(columns, filter, limit=num_rows).to_table()

    def count_rows(  # type: ignore[override]  # without the settings of files
        self,
        filter: pc.Expression | None = None,
        **settings: object,
    ) -> int:
        """The number of rows."""
        return self.scan(["_offset"], filter).count_rows()

    def filter(self, expression: pc.Expression) -> NoReturn:
        """Not here: a reading takes its filter as an argument."""
        raise TableError("a table has no filter of its own; give the filter to scan, to_table, count or another reading")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, at least one; `polars.from_arrow` reads a table so."""
        reading = self.scan()
        yield from chain(reading.batches(), [no_rows(reading.schema)])

    def __reduce__(self) -> Any:
        raise TypeError("a table cannot be pickled; open it again in the other process")
