"""The config keys of the sink: those of Confluent's JDBC sink, and one of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type
from barnabas.connect.plugins.databases.address import Address
from barnabas.connect.plugins.databases.settings import HIGH, LOW, MEDIUM, address_in, url_errors, with_common
from barnabas.connect.plugins.databases.table_name import OFFSETS, TableName, table_name
from barnabas.connect.validators import NonEmptyString, Range, Timezone, ValidList, one_of

KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")
OFFSETS_TABLE = "barnabas.offsets.table"
TOPIC = "${topic}"
ANY_CASE = False

KEYS = (
    with_common(ConfigDef())
    .define(
        "insert.mode", Type.STRING, "insert", importance=HIGH, validator=one_of("insert", "upsert", "update"),
        documentation="insert: plain inserts. upsert: the row with the same primary key is replaced. update: it is updated if it is there.",
    )
    .define(
        "pk.mode", Type.STRING, "none", importance=HIGH, validator=one_of("none", "kafka", "record_key", "record_value"),
        documentation="Where the primary key comes from: nowhere, the topic, partition and offset of the record, its key, or its value.",
    )
    .define(
        "pk.fields", Type.LIST, "", importance=MEDIUM,
        documentation="The columns of the primary key. kafka: names for the three columns. record_key: fields of the key, or the "
        "name of the column for a key that is no struct. record_value: fields of the value. Empty: all fields.",
    )
    .define(
        "delete.enabled", Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether a record without a value deletes the row with its key. Needs pk.mode=record_key.",
    )
    .define("auto.create", Type.BOOLEAN, False, importance=MEDIUM, documentation="Whether tables that are missing are created.")
    .define("auto.evolve", Type.BOOLEAN, False, importance=MEDIUM, documentation="Whether columns that are missing are added.")
    .define(
        "table.name.format", Type.STRING, TOPIC, importance=MEDIUM, validator=NonEmptyString(),
        documentation="The name of the table; ${topic} stands for the topic.",
    )
    .define("fields.whitelist", Type.LIST, "", importance=MEDIUM, documentation="The fields of values that are written. Empty: all.")
    .define(
        "db.timezone", Type.STRING, "UTC", importance=MEDIUM, validator=Timezone(),
        documentation="The time zone of timestamps in the database.",
    )
    .define(
        "batch.size", Type.INT, 3000, importance=MEDIUM, validator=Range(0),
        documentation="How many rows go to the database at once. PostgreSQL and DuckDB take all rows of a transaction at once.",
    )
    .define(
        "max.retries", Type.INT, 10, importance=MEDIUM, validator=Range(0),
        documentation="How often a batch is tried again while the database cannot be reached, before the task fails.",
    )
    .define(
        "retry.backoff.ms", Type.INT, 3000, importance=MEDIUM, validator=Range(0),
        documentation="The time before a batch is tried again, in milliseconds.",
    )
    .define(
        "timestamp.fields.list", Type.LIST, "", importance=MEDIUM,
        documentation="Fields of values that are numbers since 1970, in the unit of timestamp.precision.mode, and become timestamps.",
    )
    .define(
        "timestamp.precision.mode", Type.STRING, "microseconds", importance=MEDIUM, validator=one_of("microseconds", "nanoseconds"),
        documentation="The unit of timestamp.fields.list. Databases have microseconds.",
    )
    .define(
        "date.timezone", Type.STRING, "DB_TIMEZONE", importance=MEDIUM, validator=one_of("DB_TIMEZONE", "UTC"),
        documentation="Without effect: a date has no zone, and is written as it is.",
    )
    .define(
        "table.types", Type.LIST, "TABLE", importance=LOW, validator=ValidList(("TABLE", "PARTITIONED TABLE", "VIEW")),
        documentation="Without effect: rows are written to whatever has the name.",
    )
    .define(
        "replace.null.with.default", Type.BOOLEAN, True, importance=MEDIUM,
        documentation="Without effect: value.converter.replace.null.with.default says it, where the schema is known.",
    )
    .define(
        "trim.sensitive.log", Type.BOOLEAN, False, importance=LOW,
        documentation="Without effect: the log has no values of rows but those that a database names in its errors.",
    )
    .define(
        "mssql.use.merge.holdlock", Type.BOOLEAN, True, importance=LOW, documentation="Without effect: for SQL Server alone.",
    )
    .define(
        OFFSETS_TABLE, Type.STRING, OFFSETS, importance=LOW,
        documentation="The table that has the offsets up to which records are in the database. It changes in the transactions that "
        "write the records, so each record is written exactly once. Empty: no such table; after a failure records may come again.",
    )
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The parsed config of a sink.

    Attributes:
        flattens_topics: whether a dot of a topic is `_` in the name of its table.
    """

    connector: str
    address: Address
    insert_mode: str
    pk_mode: str
    pk_fields: Sequence[str]
    deletes: bool
    creates: bool
    evolves: bool
    table_format: str
    whitelist: frozenset[str]
    quotes: bool
    timezone: str
    batch_size: int
    retries: int
    backoff_s: float
    offsets_table: TableName | None
    tolerates: bool
    time_fields: Sequence[str]
    time_unit: Literal["us", "ns"]
    flattens_topics: bool = False

    def table_of(self, topic: str) -> TableName:
        """The table of a topic."""
        return table_name(self.table_format.replace(TOPIC, topic.replace(".", "_") if self.flattens_topics else topic))


def settings_of(config: Config) -> Settings:
    """The settings in a config. Raises ConnectError."""
    fields = tuple(config["pk.fields"]) or (KAFKA_COLUMNS if config["pk.mode"] == "kafka" else ())
    return Settings(
        connector=config["name"], address=address_in(config),
        insert_mode=config["insert.mode"], pk_mode=config["pk.mode"], pk_fields=fields,
        deletes=config["delete.enabled"], creates=config["auto.create"], evolves=config["auto.evolve"],
        table_format=config["table.name.format"], whitelist=frozenset(config["fields.whitelist"]),
        quotes=config["quote.sql.identifiers"] == "always", timezone=config["db.timezone"],
        batch_size=config["batch.size"] or 3000, retries=config["max.retries"], backoff_s=config["retry.backoff.ms"] / 1000,
        offsets_table=table_name(config[OFFSETS_TABLE]) if config[OFFSETS_TABLE] else None,
        tolerates=str(config.get("errors.tolerance", "none")).strip().lower() == "all",
        time_fields=tuple(config["timestamp.fields.list"]),
        time_unit="ns" if config["timestamp.precision.mode"] == "nanoseconds" else "us",
    )  # fmt: skip


def errors_of(config: Mapping[str, str]) -> dict[str, list[str]]:
    """What is wrong with keys that must fit to each other, by key."""
    parsed = KEYS.parse(config)
    mode, insert, fields = parsed["pk.mode"], parsed["insert.mode"], parsed["pk.fields"]
    found: dict[str, list[str]] = {}
    if parsed["delete.enabled"] and mode != "record_key":
        found["delete.enabled"] = ["Deletes are only supported for pk.mode record_key"]
    if insert != "insert" and mode == "none":
        found["insert.mode"] = [f"insert.mode {insert} needs a primary key: set pk.mode"]
    if mode == "kafka" and fields and len(fields) != len(KAFKA_COLUMNS):
        found["pk.fields"] = [f"pk.mode kafka needs three names of columns, or none; there are {len(fields)}"]
    return found | url_errors(config)
