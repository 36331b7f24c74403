"""Debezium's sink of JDBC, by its class name and keys: events of Debezium, or rows, into tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import pyarrow as pa
from msgspec.structs import replace

from barnabas.connect.api import Config, Identity
from barnabas.connect.config_def import NO_DEFAULT, ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.errors import BadRecords, ConnectError, RetriableError
from barnabas.connect.plugins.databases.settings import FAMILIES
from barnabas.connect.plugins.databases.table_name import OFFSETS, TableName
from barnabas.connect.plugins.dialects.debezium_rows import rows_of
from barnabas.connect.plugins.dialects.translation import Row, Texts, TranslatedSink, defined, idle, refusing
from barnabas.connect.plugins.sql_sink.settings import OFFSETS_TABLE, TOPIC, Settings
from barnabas.connect.plugins.sql_sink.sink import SqlSink, Step
from barnabas.connect.transforms.interface import column, fields_of, struct_of, with_column
from barnabas.connect.validators import NonEmptyString, Range, Timezone, ValidString, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
FORMAT, FORMER_FORMAT = "collection.name.format", "table.name.format"
ZONE, FORMER_ZONE = "use.time.zone", "database.time_zone"
EVOLUTION, QUOTES, KEY_MODE = "schema.evolution", "quote.identifiers", "primary.key.mode"
INCLUDED, EXCLUDED = "field.include.list", "field.exclude.list"
PLACEHOLDER = re.compile(r"\$\{(?!topic\})[^}]*\}")
HEADER = "record_header"
KEYS = (
    Row("connection.url", Type.STRING, NO_DEFAULT, HIGH, "JDBC url of the database.", NonEmptyString()),
    Row("connection.username", Type.STRING, None, HIGH, "The user that connects."),
    Row("connection.password", Type.PASSWORD, None, HIGH, "The password of the user."),
    Row(
        "insert.mode", Type.STRING, "insert", HIGH,
        "insert: plain inserts. upsert: the row with the same primary key is replaced. update: it is updated if it is there.",
        ValidString(("insert", "upsert", "update"), is_case_sensitive=False),
    ),
    Row("delete.enabled", Type.BOOLEAN, False, MEDIUM, "Whether deletions delete rows. Otherwise they are left out."),
    Row(
        KEY_MODE, Type.STRING, "none", HIGH,
        "Where the primary key comes from: nowhere, the topic, partition and offset of the record, its key, or its row.",
        ValidString(("none", "kafka", "record_key", "record_value", HEADER), is_case_sensitive=False),
    ),
    Row(
        "primary.key.fields", Type.LIST, "", MEDIUM,
        "The columns of the primary key: fields of the key or of the row, or the name of the column for a key that is no struct.",
    ),
    Row(
        EVOLUTION, Type.STRING, "none", HIGH, "basic: tables that are missing are created, and columns that are missing are added.",
        ValidString(("none", "basic"), is_case_sensitive=False),
    ),
    Row(
        FORMAT, Type.STRING, TOPIC, MEDIUM, "The name of the table; ${topic} stands for the topic with _ in place of each dot.",
        NonEmptyString(),
    ),
    Row(FORMER_FORMAT, Type.STRING, None, LOW, f"The former name of {FORMAT}."),
    Row(QUOTES, Type.BOOLEAN, False, MEDIUM, "Whether statements have names of tables and columns in quotes."),
    Row(ZONE, Type.STRING, "UTC", MEDIUM, "The time zone in which times with a zone are written.", Timezone()),
    Row(FORMER_ZONE, Type.STRING, None, LOW, f"The former name of {ZONE}."),
    Row(INCLUDED, Type.LIST, "", MEDIUM, "The fields of rows that are written, as FIELD or TOPIC:FIELD. Empty: all."),
    Row(EXCLUDED, Type.LIST, "", MEDIUM, "The fields of rows that are not written, as FIELD or TOPIC:FIELD."),
    Row("batch.size", Type.INT, 500, MEDIUM, "How many rows go to the database at once, where these go one by one.", Range(1)),
    Row("flush.max.retries", Type.INT, 5, LOW, "How often a batch is tried again while the database cannot be reached.", Range(0)),
    Row("flush.retry.delay.ms", Type.LONG, 1000, LOW, "The time before a batch is tried again, in milliseconds.", Range(0)),
    Row(
        "column.naming.strategy", Type.STRING, "", LOW, "The strategy for names of columns, which stay as they are.",
        one_of("", "io.debezium.connector.jdbc.naming.DefaultColumnNamingStrategy"),
    ),
    Row(
        "collection.naming.strategy", Type.STRING, "", LOW, f"The strategy for names of tables, by {FORMAT}.",
        one_of("", "io.debezium.sink.naming.DefaultCollectionNamingStrategy"),
    ),
    Row(
        "table.naming.strategy", Type.STRING, "", LOW, "The former name of collection.naming.strategy.",
        one_of("", "io.debezium.connector.jdbc.naming.DefaultTableNamingStrategy"),
    ),
    Row(OFFSETS_TABLE, Type.STRING, OFFSETS, LOW, "A key of barnabas: the table with the offsets up to which records are written."),
)  # fmt: skip
IDLE = {  # reasons, with the keys that do nothing
    "a task has one connection": (
        "connection.provider", "connection.pool.min_size", "connection.pool.max_size", "connection.pool.acquire_increment",
        "connection.pool.timeout",
    ),
    "a lost connection is always made again": ("connection.restart.on.errors",),
    "of several changes of a row in a batch the last one is written": ("use.reduction.buffer",),
    "rows go by COPY": ("dialect.postgres.unnest.insert.enabled",),
    "geometries are JSON": ("dialect.postgres.postgis.schema",),
    "for SQL Server alone": ("dialect.sqlserver.identity.insert",),
    "events of CloudEvents are not known": ("cloud.events.schema.name.pattern",),
}  # fmt: skip
REFUSED = {"truncate.enabled": "a table that was emptied at its source stays as it is"}


def _definition() -> ConfigDef:
    made = defined(ConfigDef(), *KEYS)
    for reason, names in IDLE.items():
        idle(made, reason, *names)
    return refusing(made, REFUSED, {"truncate.enabled": "false"})


class DebeziumJdbcSink(TranslatedSink, SqlSink):
    """io.debezium.connector.jdbc.JdbcSinkConnector."""

    config = _definition()
    behind = SqlSink.config
    families = (*FAMILIES, "hibernate.")
    refused: ClassVar[Mapping[str, str]] = REFUSED
    renamed: ClassVar[Mapping[str, str]] = {
        "connection.username": "connection.user", KEY_MODE: "pk.mode", "primary.key.fields": "pk.fields",
        FORMAT: "table.name.format", ZONE: "db.timezone", "flush.max.retries": "max.retries",
        "flush.retry.delay.ms": "retry.backoff.ms", QUOTES: "quote.sql.identifiers",
    }  # fmt: skip
    values: ClassVar[Mapping[str, str]] = {"auto.create=true": f"{EVOLUTION}=basic", "auto.evolve=true": f"{EVOLUTION}=basic"}

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        found[FORMER_FORMAT] = given.get(FORMER_FORMAT) or given[FORMAT]
        found["db.timezone"] = given.get(FORMER_ZONE) or given[ZONE]
        found["quote.sql.identifiers"] = "always" if given[QUOTES].lower() == "true" else "never"
        found["auto.create"] = found["auto.evolve"] = str(given[EVOLUTION].lower() == "basic").lower()
        for name in ("insert.mode", "pk.mode"):
            found[name] = found[name].lower()
        if found["pk.mode"] == HEADER:
            raise invalid(KEY_MODE, HEADER, "the primary key cannot come from headers")
        if others := PLACEHOLDER.search(found[FORMER_FORMAT]):
            raise invalid(
                FORMAT, found[FORMER_FORMAT], f"{others[0]} is not known; a transform such as RegexRouter changes the topic"
            )
        if given.get(INCLUDED) and given.get(EXCLUDED):
            raise invalid(EXCLUDED, given[EXCLUDED], f"{INCLUDED} is set too")
        return found

    @classmethod
    def settings(cls, config: Config) -> Settings:
        return replace(super().settings(config), flattens_topics=True)

    def open(self, config: Config) -> Mapping[tuple[str, int], int] | None:
        self._deletes: bool = config["delete.enabled"]
        self._takes = _field_filter(config[INCLUDED], config[EXCLUDED])
        return super().open(config)

    def write(self, records: pa.Table, identity: Identity) -> None:
        rows = rows_of(records, deletes=self._deletes)
        try:
            super().write(rows.records, identity)
        except BadRecords as error:
            raise BadRecords({rows.numbers[row]: self.told(text) for row, text in error.reasons.items()}) from error
        except RetriableError:
            raise
        except ConnectError as error:
            raise ConnectError(self.told(str(error))) from error

    def _run(self, settings: Settings, table: TableName, run: pa.Table, *, has_values: bool, is_mixed: bool) -> list[Step]:
        values = column(run, "value")
        if self._takes is not None and has_values and pa.types.is_struct(values.type):
            topic = str(column(run, "topic")[0])
            fields = {name: each for name, each in fields_of(values, "a row").items() if self._takes(topic, name)}
            run = with_column(run, "value", struct_of(fields, values))
        return super()._run(settings, table, run, has_values=has_values, is_mixed=is_mixed)


def _field_filter(included: Sequence[str], excluded: Sequence[str]) -> Callable[[str, str], bool] | None:
    """Whether the field of a topic is written; None: all are."""
    chosen = frozenset(included or excluded)
    if not chosen:
        return None
    return lambda topic, field: bool(chosen & {field, f"{topic}:{field}"}) is bool(included)
