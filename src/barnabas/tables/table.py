"""A topic as a table, for Python: read it whole, in part, or by a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.config import ClientConfig
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.tables.client_source import ClientSource
from barnabas.tables.dataset import TopicDataset
from barnabas.tables.declared import Declaration, columns_of
from barnabas.tables.errors import TableError
from barnabas.tables.explanation import Explanation
from barnabas.tables.folder_source import DataFolder, FolderSource
from barnabas.tables.key_index import KeyIndex
from barnabas.tables.newest import NewestRows
from barnabas.tables.predicate import Every, Predicate
from barnabas.tables.reading import Reading, Rows
from barnabas.tables.scan import OFFSET, Columns, Scan
from barnabas.tables.source import Snapshot, TopicSource

if TYPE_CHECKING:
    import duckdb
    import polars as pl


def table(
    topic: str,
    bootstrap_servers: str | None = None,
    *,
    data_folder: DataFolder | None = None,
    settings: Mapping[str, str] | None = None,
    format: str = "raw",
    columns: Declaration | None = None,
    key: Declaration | None = None,
    registry: RegistryAddress | str | None = None,
    mode: str = "permissive",
    key_index: str | Path | None = None,
) -> Table:
    """The table of a topic, of a cluster or straight from the data folder of a broker that runs or is stopped.

    Args:
        bootstrap_servers: `host:port` pairs of any Kafka cluster.
        data_folder: in place of servers: the broker's `log.dirs`, as one path, several with commas between them, or a list of paths.
        settings: of the client, by Kafka's names, such as `security.protocol`.
        format, columns, key, registry, mode: what becomes of the bytes of a record; see `declared.columns_of`. With the key `row`, each
            reading gives the newest row of each name, as `newest_by_key` does.
        key_index: the folder of the indexes of keys; None: no index. A first reading with a condition on the key builds the index, and
            later ones read only the parts of the topic that may have the key. It takes some five bytes a record.

    Raises:
        ConfigError: a setting has a bad value.
        TableError: neither servers nor a folder are given, or both; there is no such folder; the folder of the indexes cannot be made;
            or the words for the columns do not fit.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """
    source = _source(topic, bootstrap_servers, data_folder, settings)
    made = columns_of(topic, format=format, columns=columns, key=key, registry=registry, mode=mode)
    return Table(
        source,
        made,
        newest=made.has_row_names,
        key_index=None if key_index is None else _made(Path(key_index)),
    )


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(f"the index of keys cannot have the folder {folder}: {error.strerror}") from error
    return folder


def _source(
    topic: str, bootstrap_servers: str | None, data_folder: DataFolder | None, settings: Mapping[str, str] | None
) -> TopicSource:
    if (bootstrap_servers is None) == (data_folder is None):
        raise TableError(f"the table {topic} needs either bootstrap servers or a data folder")
    if data_folder is not None:
        if settings:
            raise TableError(f"the table {topic} is read from a data folder, where settings of a client have no effect")
        return FolderSource(topic, data_folder)
    return ClientSource(topic, ClientConfig.from_options({**(settings or {}), "bootstrap.servers": bootstrap_servers or ""}))


class Table(TopicDataset):
    """A topic with columns. Each reading sees the committed records of one moment.

    It is also a `pyarrow.dataset.Dataset`: DuckDB takes a local variable as a table, and pushes columns and filters into it. Functions of
    pyarrow that know only files end with an error (see `dataset`).

    Args:
        source: where the records are.
        columns: what the records become.
        at: the offsets to read; None: those of the moment of each reading.
        newest: whether only the newest row of each key is read.
        key_index: the folder of the indexes of keys, by which readings with a condition on the key read less; None: no index.
    """

    def __init__(
        self,
        source: TopicSource,
        columns: Columns,
        at: Snapshot | None = None,
        *,
        newest: bool = False,
        key_index: Path | None = None,
    ) -> None:
        super().__init__(columns.schema)
        self._source, self._columns, self._at, self._newest, self._key_index = source, columns, at, newest, key_index

    def __enter__(self) -> Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{'newest rows of ' if self._newest else ''}table {self.topic}: {', '.join(self.schema.names)}>"

    def close(self) -> None:
        """Release connections and files."""
        self._source.close()

    @property
    def topic(self) -> str:
        return self._source.topic

    @property
    def source(self) -> TopicSource:
        """Where the records are."""
        return self._source

    @property
    def schema(self) -> pa.Schema:
        """The columns of the value, `_key`, `_partition`, `_offset` and `_timestamp`. A scan may also name `_headers` and `_value`."""
        return self._columns.schema

    def snapshot(self) -> Table:
        """The table at this moment; all its readings see the same records."""
        return Table(
            self._source, self._columns, self._at or self._source.snapshot(), newest=self._newest, key_index=self._key_index
        )

    def newest_by_key(self) -> Table:
        """The newest row of each key, without deletions (records whose value is null) and without records that have no key.

        A key belongs to its partition, as in compaction. Filters are applied to the newest rows. A reading takes two passes and the
        memory of the keys of one partition.
        """
        return Table(self._source, self._columns, self._at, newest=True, key_index=self._key_index)

    def read(self, columns: Sequence[str] | None = None, predicate: Predicate | None = None) -> Rows:
        """The rows for which the predicate may hold. Raises UnknownColumn, TableError."""
        names = self.schema.names if columns is None else columns
        at = self._at or self._source.snapshot()
        if self._newest:
            return NewestRows(self._source, at, self._columns, names, predicate or Every(), self._index(at))
        return Scan(self._source, at, self._columns, names, predicate, self._index(at))

    def _index(self, at: Snapshot) -> KeyIndex | None:
        """The index of keys; None if there is no folder for it, or the source does not tell what an index needs."""
        if self._key_index is None or self._columns.has_row_names or not at.epochs or not at.topic_id:
            return None
        return KeyIndex(self._key_index, at.topic, at.topic_id)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        *,
        limit: int | None = None,
        batch_size: int | None = None,
    ) -> Reading:
        """The rows for which the filter is true.

        Args:
            columns: their names; also `_headers` and `_value`.
            filter: such as `pyarrow.compute.field("_offset") >= 1_000`. Conditions on partition, offset, timestamp and key make the scan
                read less.
            limit: the rest is not read.
            batch_size: most rows of a batch.

        Raises:
            UnknownColumn: there is no column of this name.
            TableError: the filter does not fit, or the topic cannot be read.
        """
        return Reading(self.topic, self.read, self._columns, columns, filter, most=limit, batch_size=batch_size)

    def explain(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Explanation:
        """The account of a `scan` with these arguments, before it reads. `scan(…).explain()` also counts the rows that were read."""
        return self.scan(columns, filter).explain()

    def count(self, filter: pc.Expression | None = None) -> int:
        """The number of rows for which the filter is true."""
        return self.scan([OFFSET], filter).count_rows()

    def bad_records(self, limit: int | None = None) -> pa.Table:
        """The records that do not fit the columns, in any mode: `_partition`, `_offset`, `_key`, `_value` and `_reason`.

        Args:
            limit: the most rows; the rest is not read.
        """
        return Scan(self._source, self._at or self._source.snapshot(), self._columns, [OFFSET]).bad_records(limit)

    def batches(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, as Arrow batches that are made as they are taken."""
        return self.scan(columns, filter).batches()

    def reader(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return self.scan(columns, filter).to_reader()

    def arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """All rows."""
        return self.scan(columns, filter).to_table()

    def to_pandas(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Any:
        """All rows as a `pandas.DataFrame`."""
        return self.arrow(columns, filter).to_pandas()

    def to_polars(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pl.DataFrame:
        """All rows as a `polars.DataFrame`. Raises TableError without Polars."""
        frame: pl.DataFrame = _polars().from_arrow(self.arrow(columns, filter))
        return frame

    def scan_polars(self) -> pl.LazyFrame:
        """The table at this moment for Polars, which pushes columns, conditions and limits into it. Raises TableError without Polars."""
        _polars()
        from barnabas.tables.polars_source import lazy_frame

        return lazy_frame(self.snapshot().read, self._columns)

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The table at this moment as a relation of DuckDB.

        Args:
            connection: the relation belongs to it; None: DuckDB's default connection.

        Raises:
            TableError: DuckDB is not installed.
        """
        try:
            import duckdb
        except ImportError as error:
            raise TableError("DuckDB is not installed; `pip install 'barnabas[tables]'` installs it") from error
        return (connection or duckdb).from_arrow(self.snapshot())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for libraries with the PyCapsule interface."""
        return self.reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # the stubs leave its types out


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise TableError("Polars is not installed; `pip install polars` installs it") from error
    return polars
