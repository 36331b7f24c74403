"""The config keys of the source: the format and its options, and the keys of Confluent's JDBC source where they mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.plugins.spark.jdbc import JDBC, option, with_driver
from barnabas.connect.plugins.sql_source.settings import BOTH, BULK, INCREMENTING, TIMESTAMP
from barnabas.connect.validators import NonEmptyString, Range, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
STREAMING = "streaming"
OPTION = "spark.option."
NEVER_AGAIN = frozenset({"socket", "console", "memory"})  # formats whose rows cannot be read a second time


def with_format(made: ConfigDef) -> ConfigDef:
    """Add the keys that the source and the sink have in common."""
    return made.define(
        "format", Type.STRING, importance=HIGH, validator=NonEmptyString(),
        documentation="The format, by Spark's name: jdbc, parquet, json, csv, orc, avro, delta, iceberg, or the class of a data source.",
    ).define(
        "path", Type.STRING, "", importance=HIGH, documentation="The path of a format of files, on any file system that Spark knows.",
    )  # fmt: skip


KEYS = (
    with_format(ConfigDef())
    .define("topic", Type.STRING, importance=HIGH, validator=NonEmptyString(), documentation="The topic that gets the rows.")
    .define(
        "key.fields", Type.LIST, "", importance=HIGH,
        documentation="The columns that make the key of a record; one makes a key of it alone.",
    )
    .define(
        "mode", Type.STRING, BULK, importance=HIGH, validator=one_of(BULK, TIMESTAMP, INCREMENTING, BOTH, STREAMING),
        documentation="bulk: all rows at each poll. incrementing, timestamp, timestamp+incrementing: rows behind the greatest number and "
        "time so far. streaming: the format as a stream of Spark.",
    )
    .define("incrementing.column.name", Type.STRING, "", importance=MEDIUM, documentation="The column with a number that grows.")
    .define("timestamp.column.name", Type.STRING, "", importance=MEDIUM, documentation="The column with the time of the last change.")
    .define(
        "timestamp.delay.interval.ms", Type.LONG, 0, importance=MEDIUM, validator=Range(0),
        documentation="How old the time of a row must be before it is read, so that transactions may end, in milliseconds.",
    )
    .define(
        "poll.interval.ms", Type.LONG, 5000, importance=HIGH, validator=Range(-1),
        documentation="The pause between two polls, or two micro-batches of a stream, in milliseconds; -1: one poll, and with "
        "streaming all that is there.",
    )
    .define("schema", Type.STRING, "", importance=MEDIUM, documentation="The columns as DDL, such as `id BIGINT, name STRING`.")
    .define(
        "partition.column", Type.STRING, "", importance=MEDIUM,
        documentation="jdbc: the column by whose ranges Spark reads in parallel.",
    )
    .define(
        "partition.lower.bound", Type.STRING, "", importance=LOW,
        documentation="jdbc: where the ranges begin; without both bounds the connector asks the table.",
    )
    .define("partition.upper.bound", Type.STRING, "", importance=LOW, documentation="jdbc: where the ranges end.")
    .define("partition.count", Type.INT, 4, importance=MEDIUM, validator=Range(1), documentation="jdbc: the number of ranges.")
    .define(
        "checkpoint.location", Type.STRING, "", importance=MEDIUM,
        documentation="streaming: the folder in which Spark keeps what each micro-batch has, on storage that outlasts the machine.",
    )
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The parsed config of a source.

    Args:
        options: of the format, without its secrets hidden.
        bounds: of the ranges of `partition`; None: the table is asked.
    """

    format: str
    path: str
    options: Mapping[str, str]
    mode: str
    incrementing: str
    timestamp: str
    delay_ms: int
    poll_s: float | None
    schema: str
    partition: str
    bounds: tuple[str, str] | None
    count: int
    checkpoint: str
    key: Sequence[str]


def options_of(config: Mapping[str, object]) -> dict[str, str]:
    """The options of the format."""
    return {name.removeprefix(OPTION): str(value) for name, value in config.items() if name.startswith(OPTION)}


def settings_of(config: Config) -> Settings:
    """The settings in a config."""
    mode, poll_ms = config["mode"], config["poll.interval.ms"]
    low, high = config["partition.lower.bound"].strip(), config["partition.upper.bound"].strip()
    return Settings(
        format=config["format"].strip(), path=config["path"].strip(),
        options=with_driver(config["format"], options_of(config)), mode=mode,
        incrementing=config["incrementing.column.name"] if mode in (INCREMENTING, BOTH) else "",
        timestamp=config["timestamp.column.name"] if mode in (TIMESTAMP, BOTH) else "",
        delay_ms=config["timestamp.delay.interval.ms"], poll_s=None if poll_ms < 0 else poll_ms / 1000, schema=config["schema"],
        partition=config["partition.column"].strip(), bounds=(low, high) if low and high else None, count=config["partition.count"],
        checkpoint=config["checkpoint.location"].strip(), key=tuple(config["key.fields"]),
    )  # fmt: skip


def errors_of(config: Mapping[str, str]) -> dict[str, list[str]]:
    """What does not fit together, by key."""
    mode, kind = config.get("mode", BULK), config.get("format", "").strip().lower()
    found: dict[str, list[str]] = {}
    for key, modes in (("incrementing.column.name", (INCREMENTING, BOTH)), ("timestamp.column.name", (TIMESTAMP, BOTH))):
        if mode in modes and not config.get(key, "").strip():
            found[key] = [f"mode={mode} needs {key}"]
    if mode == STREAMING:
        if kind in NEVER_AGAIN:
            found["format"] = [f"the stream {kind} cannot give its rows again after a failure, so it cannot be read exactly once"]
        if not config.get("checkpoint.location", "").strip():
            found["checkpoint.location"] = ["mode=streaming needs checkpoint.location"]
    low, high = config.get("partition.lower.bound", "").strip(), config.get("partition.upper.bound", "").strip()
    if bool(low) != bool(high):
        found["partition.lower.bound" if high else "partition.upper.bound"] = ["give both bounds, or none"]
    if config.get("partition.column", "").strip() and kind != JDBC:
        found["partition.column"] = ["only format=jdbc reads by ranges of a column; Spark splits files by itself"]
    if kind == JDBC:
        options = options_of(config)
        if not option(options, "url"):
            found["format"] = ["format=jdbc needs spark.option.url"]
        elif bool(option(options, "dbtable")) == bool(option(options, "query")):
            found["format"] = ["format=jdbc needs spark.option.dbtable or spark.option.query"]
    return found
