"""Transforms that Kafka lacks: any SELECT, and any Python function over a batch.

`barnabas.Sql` runs a query over the table `records`, whose columns are the fields of the value, and `_key`, `_topic`, `_partition`,
`_timestamp` and `_headers`. The columns of the result are the fields of the value; those of the names above become what they name. The
query is asked for each topic by itself, so the topic stays if it selects none; other parts that it does not select are null.

`barnabas.Python` calls a function `module:name` with the batch as a `pyarrow.Table` (`connect/api.py`); it returns another.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import Transform, column, fields_of, struct_of, with_column

PARTS = ("key", "topic", "partition", "timestamp", "headers")
TABLE = "records"


class Sql(Transform):
    """See the module."""

    config = ConfigDef().define(
        "query", Type.STRING, importance=Importance.HIGH, documentation="A SELECT over the table records, in DuckDB's SQL."
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        import duckdb

        self._query = config["query"]
        self._connection = duckdb.connect(config={"enable_external_access": "false", "threads": 1})
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        kinds = {each.type for each in self._statements()}
        if kinds != {duckdb.StatementType.SELECT} or len(self._statements()) != 1:
            raise ConfigError(f"Invalid value {self._query} for configuration query: it is not one SELECT")

    def _statements(self) -> list[Any]:
        import duckdb

        try:
            return list(self._connection.extract_statements(self._query))
        except duckdb.Error as error:
            raise ConfigError(f"Invalid value {self._query} for configuration query: {error}") from None

    def apply(self, records: pa.Table) -> pa.Table:
        topics = column(records, "topic")
        names: list[Any] = list(dict.fromkeys(topics.to_pylist()))
        if len(names) == 1:
            return self._asked(records, names[0])
        parts = [self._asked(records.filter(pc.equal(topics, name)), name) for name in names]
        return pa.concat_tables(parts, promote_options="permissive").combine_chunks()

    def _asked(self, records: pa.Table, topic: str) -> pa.Table:
        import duckdb

        fields = fields_of(column(records, "value"), "sql")
        parts = {f"_{name}": column(records, name) for name in PARTS if name in records.column_names}
        columns: dict[str, Any] = {**fields, **parts}
        try:
            with self._connection.cursor() as cursor:
                cursor.register(TABLE, pa.table(columns))
                answer: Any = cursor.sql(self._query).to_arrow_table()
        except duckdb.Error as error:
            raise ConnectError(f"the query of the transform failed: {' '.join(str(error).split())}") from None
        found: pa.Table = answer.combine_chunks()
        own = {name: column(found, name) for name in found.column_names if name.removeprefix("_") not in PARTS or name[0] != "_"}
        made = pa.table({"value": struct_of(own, pa.repeat(True, found.num_rows))})
        for name in PARTS:
            if f"_{name}" in found.column_names:
                made = with_column(made, name, column(found, f"_{name}"))
        return made if "topic" in made.column_names else with_column(made, "topic", pa.repeat(topic, made.num_rows))


class Python(Transform):
    """See the module."""

    runs_code_of_users = True

    config = ConfigDef().define(
        "function", Type.STRING, importance=Importance.HIGH, documentation="A function over a batch, as module:name."
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        module, _, name = config["function"].partition(":")
        try:
            self._function = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(f"Invalid value {config['function']} for configuration function: {error}") from None

    def apply(self, records: pa.Table) -> pa.Table:
        made = self._function(records)
        if not isinstance(made, pa.Table) or "value" not in made.column_names or "topic" not in made.column_names:
            raise ConnectError("a function of a transform returns a pyarrow.Table with the columns topic and value")
        return made.combine_chunks()
