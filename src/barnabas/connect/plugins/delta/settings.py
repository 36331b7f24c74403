"""The config keys of the sink of Delta tables: those of the sinks of files and databases, and of Confluent's sink for Delta tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type, invalid
from barnabas.connect.plugins.files.source_config import PLACE
from barnabas.connect.plugins.files.storage import define_store
from barnabas.connect.validators import Checked, NonEmptyString, Range, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
URL, MAP, TOPIC = "store.url", "delta.lake.topic2table.map", "${topic}"


def _mapped(name: str, value: Any) -> dict[str, str]:
    """The tables by topic. Raises ConfigError."""
    found = {}
    for each in value or ():
        topic, colon, table = each.partition(":")
        if not (colon and topic.strip() and table.strip()):
            raise invalid(name, value, "pairs such as topic1:table1,topic2:table2")
        found[topic.strip()] = table.strip()
    return found


def _check_map(name: str, value: Any) -> None:
    _mapped(name, value)


CONFIG = define_store(
    ConfigDef()
    .define(
        URL, Type.STRING, importance=HIGH, validator=PLACE,
        documentation="Where the tables are: an absolute path, or a URL of an object store such as s3://bucket/prefix. Each table is a "
        "folder below it.",
    )
    .define(
        "table.name.format", Type.STRING, TOPIC, importance=MEDIUM, validator=NonEmptyString(),
        documentation="The folder of a table below store.url; ${topic} stands for the topic.",
    )
    .define(
        MAP, Type.LIST, "", importance=MEDIUM, validator=Checked(_check_map, "pairs of a topic and a table"),
        documentation="Tables of topics that table.name.format does not fit, such as topic1:table1,topic2:table2.",
    )
    .define(
        "insert.mode", Type.STRING, "insert", importance=HIGH, validator=one_of("insert", "upsert"),
        documentation="insert: each record is a row more. upsert: the row with the same key is replaced.",
    )
    .define(
        "pk.mode", Type.STRING, "none", importance=HIGH, validator=one_of("none", "kafka", "record_key", "record_value"),
        documentation="Where the columns of the key come from: nowhere, the topic, partition and offset of the record, its key, or its "
        "value.",
    )
    .define(
        "pk.fields", Type.LIST, "", importance=MEDIUM,
        documentation="The columns of the key. record_key: fields of the key, or the name of the column for a key that is no struct. "
        "record_value: fields of the value. Empty: all fields.",
    )
    .define("fields.whitelist", Type.LIST, "", importance=MEDIUM, documentation="The fields of values that are written. Empty: all.")
    .define(
        "delete.enabled", Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether a record without a value deletes the row with its key. Needs insert.mode=upsert and pk.mode=record_key.",
    )
    .define(
        "behavior.on.null.values", Type.STRING, "fail", importance=LOW, validator=one_of("fail", "ignore"),
        documentation="What becomes of a record without a value that deletes nothing: it is an error, or it is left out.",
    )
    .define("auto.create", Type.BOOLEAN, True, importance=MEDIUM, documentation="Whether tables that are missing are created.")
    .define("auto.evolve", Type.BOOLEAN, False, importance=MEDIUM, documentation="Whether columns that are missing are added.")
    .define(
        "partition.field.name", Type.LIST, "", importance=MEDIUM, documentation="The columns that partition a table when it is created.",
    )
    .define(
        "flush.size", Type.INT, 1_000_000, importance=HIGH, validator=Range(1),
        documentation="The rows that a task gathers for a commit.",
    )
    .define(
        "flush.interval.ms", Type.LONG, 300_000, importance=HIGH, validator=Range(1),
        documentation="The time after which a task commits the rows that it has, in milliseconds.",
    )
    .define(
        "buffer.memory", Type.LONG, 256 << 20, importance=LOW, validator=Range(1),
        documentation="The bytes in memory that a task gathers at most.",
    )
    .define(
        "parquet.codec", Type.STRING, "snappy", importance=LOW, validator=one_of("none", "snappy", "gzip", "zstd", "lz4"),
        documentation="The compression of the files.",
    )
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The parsed config; `lakes/sink.py: LakeChoice` explains those that all lake tables have."""

    connector: str
    place: str
    table_format: str
    tables: Mapping[str, str]
    upserts: bool
    pk_mode: str
    pk_fields: Sequence[str]
    whitelist: frozenset[str]
    deletes: bool
    ignores_nulls: bool
    creates: bool
    evolves: bool
    partition_by: Sequence[str]
    flush_size: int
    interval_s: float
    most_bytes: int
    codec: str

    def table_of(self, topic: str) -> str:
        """The name of the table of a topic."""
        return self.tables.get(topic) or self.table_format.replace(TOPIC, topic)


def settings_of(config: Config) -> Settings:
    """The settings in a config."""
    fields = tuple(config["pk.fields"])
    if config["pk.mode"] == "kafka" and not fields:
        fields = ("__connect_topic", "__connect_partition", "__connect_offset")
    return Settings(
        connector=config["name"], place=config[URL].rstrip("/") or "/", table_format=config["table.name.format"],
        tables=_mapped(MAP, config[MAP]), upserts=config["insert.mode"] == "upsert", pk_mode=config["pk.mode"], pk_fields=fields,
        whitelist=frozenset(config["fields.whitelist"]), deletes=config["delete.enabled"],
        ignores_nulls=config["behavior.on.null.values"] == "ignore", creates=config["auto.create"], evolves=config["auto.evolve"],
        partition_by=tuple(config["partition.field.name"]), flush_size=config["flush.size"],
        interval_s=config["flush.interval.ms"] / 1000, most_bytes=config["buffer.memory"], codec=config["parquet.codec"],
    )  # fmt: skip


def errors_of(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What is wrong with keys that must fit to each other, by key."""
    try:
        parsed = CONFIG.parse(config)
    except ConfigError:
        return {}
    found: dict[str, Sequence[str]] = {}
    upserts, mode = parsed["insert.mode"] == "upsert", parsed["pk.mode"]
    if upserts and mode == "none":
        found["insert.mode"] = ["insert.mode upsert needs a key: set pk.mode"]
    if parsed["delete.enabled"] and not (upserts and mode == "record_key"):
        found["delete.enabled"] = ["Deletes are only supported for insert.mode upsert and pk.mode record_key"]
    if mode == "kafka" and len(parsed["pk.fields"]) not in {0, 3}:
        found["pk.fields"] = [f"pk.mode kafka needs three names of columns, or none; there are {len(parsed['pk.fields'])}"]
    if ".." in parsed["table.name.format"].split("/"):
        found["table.name.format"] = ["table.name.format does not leave store.url"]
    return found
