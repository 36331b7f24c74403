"""Which columns of a table tell its changes: by the config, by its mappings of tables, or by what the database counts up itself."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from barnabas.connect.errors import ConnectError
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.table_name import TableName
from barnabas.connect.plugins.sql_source.settings import (
    BOTH,
    INCREMENTING,
    INCREMENTING_MAPPING,
    TIMESTAMP_MAPPING,
    Settings,
    TableColumns,
)


def of_table(database: Database, settings: Settings, table: TableName) -> Settings:
    """The settings for a table. Raises ConnectError if none of its columns is named, and none counts up."""
    if settings.timestamp_mapping:
        settings = replace(settings, timestamps=_mapped(settings, table, settings.timestamp_mapping, TIMESTAMP_MAPPING))
    if settings.incrementing_mapping:
        [column] = _mapped(settings, table, settings.incrementing_mapping, INCREMENTING_MAPPING)
        settings = replace(settings, incrementing=column)
    if settings.mode in {INCREMENTING, BOTH} and not settings.incrementing:
        found = database.incrementing(table)
        if found is None:
            raise ConnectError(
                f"the table {table} has no column that counts up by itself: incrementing.column.name must name one"
            )
        settings = replace(settings, incrementing=found)
    return settings


def _mapped(settings: Settings, table: TableName, mapping: Sequence[TableColumns], key: str) -> Sequence[str]:
    names = settings.names_of(str(table))
    found = [each.columns for each in mapping if any(java_pattern(each.tables).fullmatch(name) for name in names)]
    if len(found) != 1:
        raise ConnectError(f"the table {table} fits to {len(found)} entries of {key}, and each table must fit to one")
    return found[0]
