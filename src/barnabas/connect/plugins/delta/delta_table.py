"""A Delta table, by the library deltalake: appends and merges, each with the offsets of its records as transaction identifiers.

The identifier of a topic partition is `CONNECTOR/TOPIC/PARTITION`, and its version the offset behind the last record. The format of Delta
refuses a commit if another one has changed the same identifier since the table was opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.databases.columns import last_of_each
from barnabas.connect.plugins.lakes.gathering import Place, Rows
from barnabas.connect.plugins.lakes.sink import Overtaken

OLD, NEW, DELETES = "target", "source", "__deletes"
CODECS = {"none": "UNCOMPRESSED", "snappy": "SNAPPY", "gzip": "GZIP", "zstd": "ZSTD", "lz4": "LZ4_RAW"}
_AWAY = ("Generic", "timed out", "error sending request", "Too Many Requests", "SlowDown", "503")
_DENIED = ("403", "Forbidden", "AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "credential", "Unauthenticated")
_FULL = "os error 28"  # the disk is full: the library says it like an error of a store


class Delta:
    """See `lakes/sink.py: LakeTable`.

    Args:
        keys: columns of the key, for merges; empty: rows are appended.
    """

    def __init__(self, table: DeltaTable, connector: str, keys: Sequence[str], codec: str) -> None:
        self._table, self._connector, self._keys = table, connector, keys
        self._writer = WriterProperties(compression=CODECS[codec])  # type: ignore[arg-type]  # a name of its list
        columns: Any = table.schema()  # pyarrow takes it by the interface of C
        self.schema: pa.Schema = pa.schema(columns)

    def add_columns(self, fields: Sequence[pa.Field[Any]]) -> None:
        wanted: Any = Schema.from_arrow(pa.schema(fields)).fields
        with told("change", self._table.table_uri):
            self._table.alter.add_columns(wanted)

    def offsets(self, places: Sequence[Place]) -> Mapping[Place, int]:
        found = {place: self._table.transaction_version(identifier(self._connector, place)) for place in places}
        return {place: offset for place, offset in found.items() if offset is not None}

    def commit(self, rows: Rows, ends: Mapping[Place, int]) -> None:
        known = [Transaction(identifier(self._connector, place), end) for place, end in ends.items()]
        properties = CommitProperties(app_transactions=known)
        with told("write", self._table.table_uri):
            if self._keys:
                self._merge(rows, properties)
            else:
                write_deltalake(
                    self._table, rows.rows, mode="append", writer_properties=self._writer, commit_properties=properties
                )

    def _merge(self, rows: Rows, properties: CommitProperties) -> None:
        which = last_of_each(rows.rows, list(self._keys))
        source = rows.rows.take(which).append_column(DELETES, pa.array(rows.deletes[np.asarray(which)], pa.bool_()))
        same = " AND ".join(f"{OLD}.{_quoted(each)} = {NEW}.{_quoted(each)}" for each in self._keys)
        columns = {_quoted(each): f"{NEW}.{_quoted(each)}" for each in rows.rows.column_names}
        is_row = f"{NEW}.{DELETES} = false"
        merger = self._table.merge(
            source, same, source_alias=NEW, target_alias=OLD, writer_properties=self._writer, commit_properties=properties
        )
        if pc.any(source.column(DELETES)).as_py():
            merger = merger.when_matched_delete(f"{NEW}.{DELETES} = true")
        merger.when_matched_update(columns, is_row).when_not_matched_insert(columns, is_row).execute()


def opened(url: str, options: Mapping[str, str]) -> DeltaTable | None:
    """The table of a folder; None if there is none. Raises ConnectError."""
    with told("read", url):
        try:
            return DeltaTable(url, storage_options=dict(options))
        except TableNotFoundError:
            return None


def create(url: str, options: Mapping[str, str], schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Create a table, unless there is one. Raises ConnectError."""
    if missing := [each for each in partition_by if each not in schema.names]:
        raise ConnectError(
            f"partition.field.name names {missing[0]}, which the records lack; they have {', '.join(schema.names)}"
        )
    given = list(partition_by) or None
    with told("create", url):
        try:
            DeltaTable.create(url, _without_times(schema), mode="ignore", partition_by=given, storage_options=dict(options))
        except Exception:
            if not DeltaTable.is_deltatable(url, dict(options)):  # otherwise another task was first
                raise


def alter_offsets(table: DeltaTable, connector: str, offsets: Mapping[Place, int | None]) -> None:
    """Record other offsets. A table cannot forget one, and 0 says the same."""
    known = [Transaction(identifier(connector, place), offset or 0) for place, offset in offsets.items()]
    with told("change", table.table_uri):
        table.create_write_transaction([], "append", table.schema(), commit_properties=CommitProperties(app_transactions=known))


def identifier(connector: str, place: Place) -> str:
    """The transaction identifier of a topic partition. The names of topics have no slash."""
    return f"{connector}/{place[0]}/{place[1]}"


def _without_times(schema: pa.Schema) -> pa.Schema:
    """Delta has no type for times of a day: they become texts."""
    return pa.schema([pa.field(each.name, _text_of_time(each.type)) for each in schema])


def _text_of_time(kind: Any) -> pa.DataType:
    if pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _text_of_time(each.type)) for each in kind])
    found: pa.DataType = kind
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def told(verb: str, url: str) -> Iterator[None]:
    """Errors of the library as ours, in one line."""
    try:
        yield
    except CommitFailedError as error:
        raise Overtaken(_line(error)) from None
    except Exception as error:  # noqa: BLE001 - the library raises errors of storage and of types as Exception alone
        text = _line(error)
        is_denied = _FULL in text or any(each in text for each in _DENIED)
        if not is_denied and any(each in text for each in _AWAY):
            raise RetriableError(f"cannot {verb} the table {url}: {text}") from None
        raise ConnectError(f"cannot {verb} the table {url}: {text}") from None


def _line(error: BaseException) -> str:
    """An error of the library in one line."""
    return " ".join(str(error).split())[:500]
