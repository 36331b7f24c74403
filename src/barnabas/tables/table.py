"""A topic as a table, for Python: read it whole, in part, or by a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa

from barnabas.client.config import ClientConfig
from barnabas.tables.client_source import ClientSource
from barnabas.tables.errors import TableError
from barnabas.tables.folder_source import DataFolder, FolderSource
from barnabas.tables.formats import Raw
from barnabas.tables.predicate import Predicate
from barnabas.tables.scan import Columns, Scan
from barnabas.tables.source import Snapshot, TopicSource


def table(
    topic: str,
    bootstrap_servers: str | None = None,
    *,
    data_folder: DataFolder | None = None,
    settings: Mapping[str, str] | None = None,
) -> Table:
    """The table of a topic, of a cluster or straight from the data folder of a broker that runs or is stopped.

    Args:
        bootstrap_servers: `host:port` pairs of any Kafka cluster.
        data_folder: in place of servers: the broker's `log.dirs`, as one path, several with commas between them, or a list of paths.
        settings: of the client, by Kafka's names, such as `security.protocol`.

    Raises:
        ConfigError: a setting has a bad value.
        TableError: neither servers nor a folder are given, or both; or there is no such folder.
    """
    return Table(_source(topic, bootstrap_servers, data_folder, settings), Columns(Raw("_key"), Raw("value")))


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


class Table:
    """A topic with columns. Each reading sees the committed records of one moment.

    Args:
        source: where the records are.
        columns: what the records become.
        at: the offsets to read; None: those of the moment of each reading.
    """

    def __init__(self, source: TopicSource, columns: Columns, at: Snapshot | None = None) -> None:
        self._source, self._columns, self._at = source, columns, at

    def __enter__(self) -> Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release connections and files."""
        self._source.close()

    @property
    def topic(self) -> str:
        return self._source.topic

    @property
    def schema(self) -> pa.Schema:
        """The columns of the value, `_key`, `_partition`, `_offset` and `_timestamp`. A scan may also name `_headers` and `_value`."""
        return self._columns.schema

    def snapshot(self) -> Table:
        """The table at this moment; all its readings see the same records."""
        return Table(self._source, self._columns, self._source.snapshot())

    def read(self, columns: Sequence[str] | None = None, predicate: Predicate | None = None) -> Scan:
        """A scan of the rows for which the predicate may hold. Raises UnknownColumn, TableError."""
        names = self.schema.names if columns is None else columns
        return Scan(self._source, self._at or self._source.snapshot(), self._columns, names, predicate)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, as Arrow batches that are made as they are taken."""
        return self.read(columns).batches()

    def reader(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The rows as a stream."""
        scan = self.read(columns)
        return pa.RecordBatchReader.from_batches(scan.schema, scan.batches())

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows."""
        scan = self.read(columns)
        return pa.Table.from_batches(scan.batches(), scan.schema)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        """All rows as a `pandas.DataFrame`."""
        return self.arrow(columns).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for libraries with the PyCapsule interface."""
        return self.reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # the stubs leave its types out
