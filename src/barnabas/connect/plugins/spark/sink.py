"""Writes records by any batch writer of Spark.

How often a record is in the target, after kills too:

    parquet, orc, avro, json, csv, text, xml with `path`: exactly once. Each batch has a folder of its own below the path, named by
    its records; a batch that comes again replaces its folder.

    others, such as jdbc, or `table`: at least once. A batch that was written and not committed is written again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Config, Identity, Sink
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type
from barnabas.connect.errors import BadRecords, ConnectError
from barnabas.connect.plugins.spark.jdbc import raise_if_driver_is_missing, with_driver
from barnabas.connect.plugins.spark.settings import HIGH, MEDIUM, OPTION, options_of, with_format
from barnabas.connect.runtime.frames import frame_of
from barnabas.connect.validators import one_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter

FILES = frozenset({"parquet", "orc", "avro", "json", "csv", "text", "xml"})
APPEND = "append"
SAVE_MODES = (APPEND, "overwrite", "ignore", "errorifexists")
BATCH = "batch"  # the column that the folders of batches make
KEYS = (
    with_format(ConfigDef())
    .define("table", Type.STRING, "", importance=HIGH, documentation="The name of a table of a catalog, in place of path.")
    .define(
        "mode", Type.STRING, APPEND, importance=MEDIUM, validator=one_of(*SAVE_MODES),
        documentation="What becomes of rows that are there: Spark's SaveMode. Each batch is written with it.",
    )
    .define(
        "record.fields", Type.LIST, "", importance=MEDIUM,
        documentation="Columns of the record that the rows have beside the fields of the value: key, topic, partition, offset, "
        "timestamp, headers.",
    )
    .define(
        "behavior.on.null.values", Type.STRING, "ignore", importance=MEDIUM, validator=one_of("ignore", "fail"),
        documentation="What becomes of records without a value: no row, or a failure of the record.",
    )
)  # fmt: skip


class SparkSink(Sink):
    """See the module."""

    families = (OPTION,)
    config = KEYS
    needs_spark: ClassVar[bool] = True

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        kind, path, table = (config.get(key, "").strip() for key in ("format", "path", "table"))
        if path and table:
            found["table"] = ["give path or table, not both"]
        if kind.lower() in FILES and not path and not table and "path" not in options_of(config):
            found["path"] = [f"format={kind} needs path or table"]
        if kind.lower() == "jdbc" and (missing := {"url", "dbtable"} - {each.lower() for each in options_of(config)}):
            found["format"] = [f"format=jdbc needs {OPTION}{min(missing)}"]
        return found

    def open(self, config: Config) -> None:
        self._config, self._kind, self._path = config, config["format"].strip(), config["path"].strip()
        self._options = with_driver(self._kind, options_of(config))
        self._by_folder = self._kind.lower() in FILES and bool(self._path) and config["mode"] == APPEND

    def write(self, records: pa.Table, identity: Identity) -> None:
        values = records.column("value")
        if values.null_count:
            if self._config["behavior.on.null.values"] == "fail":
                nulls = pc.indices_nonzero(pc.is_null(values)).to_pylist()
                raise BadRecords(
                    {row: "it has no value, and behavior.on.null.values is fail" for row in nulls if row is not None}
                )
            records = records.filter(pc.is_valid(values))
        if records.num_rows:
            self._write(records, identity)

    def _write(self, records: pa.Table, identity: Identity) -> None:
        frame = frame_of(self.spark, rows_of(records, self._config["record.fields"]))
        writer = frame.write.format(self._kind).options(**self._options)
        mode = self._config["mode"]
        try:
            if self._by_folder:
                writer.mode("overwrite").save(f"{self._path.rstrip('/')}/{BATCH}={name_of(identity)}")
            else:
                self._save(writer.mode(mode))
        except Exception as error:
            raise_if_driver_is_missing(error, self._kind, self._options)
            raise

    def _save(self, writer: DataFrameWriter) -> None:
        if self._config["table"]:
            writer.saveAsTable(self._config["table"])
        else:
            writer.save(self._path or None)


def name_of(identity: Identity) -> str:
    """The name of the folder of a batch: the same for the same records."""
    text = ",".join(f"{topic}-{place}:{begin}-{end}" for (topic, place), (begin, end) in sorted(identity.ranges.items()))
    return f"{identity.connector}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def rows_of(records: pa.Table, more: Sequence[str]) -> Any:
    """The fields of the values as columns, and columns of the records beside them. Raises ConnectError."""
    if unknown := [name for name in more if name not in records.column_names]:
        raise ConnectError(f"record.fields has {unknown[0]}; a record has {', '.join(records.column_names)}")
    value: Any = records.column("value").combine_chunks()
    if isinstance(value, pa.ChunkedArray):
        value = pa.concat_arrays(value.chunks)
    rows: Any = pa.Table.from_struct_array(value) if pa.types.is_struct(value.type) else pa.table({"value": value})
    for name in more:
        if name in rows.column_names:
            raise ConnectError(f"the value has a field {name} too, so record.fields cannot have it")
        rows = rows.append_column(name, records.column(name))
    return rows
