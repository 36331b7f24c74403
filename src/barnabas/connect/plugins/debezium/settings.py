"""Config keys that Debezium's connectors have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.databases.table_name import OFFSETS
from barnabas.connect.plugins.debezium.envelope import DELETE, TOMBSTONE
from barnabas.connect.plugins.debezium.signals import CONSUMER, with_signals
from barnabas.connect.validators import NonEmptyString, Range, ValidList, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
FORMAT = "barnabas.format"
REST_S = 0.05  # between two batches of a stream that has no more: a batch of many changes costs little more than one of a few


class Patterns(NamedTuple):
    """Lists of regular expressions."""

    def __call__(self, name: str, value: Any) -> None:
        for each in value or ():
            try:
                java_pattern(each)
            except re.error as error:
                raise invalid(
                    name, each, f"A comma-separated list of valid regular expressions is expected, but got {error}"
                ) from None

    def __str__(self) -> str:
        return "list of regular expressions"


def with_lists(made: ConfigDef, name: str) -> ConfigDef:
    """Add the lists of the databases or schemas that are captured."""
    return made.define(
        f"{name}.include.list", Type.LIST, "", importance=HIGH, validator=Patterns(),
        documentation=f"Regular expressions of the {name}s that are captured. Empty: all.",
    ).define(
        f"{name}.exclude.list", Type.LIST, "", importance=MEDIUM, validator=Patterns(),
        documentation=f"Regular expressions of the {name}s that are not captured.",
    )  # fmt: skip


def with_common(made: ConfigDef, *, port: int) -> ConfigDef:
    """Add the keys."""
    return with_signals(
        made.define(
            "database.hostname", Type.STRING, importance=HIGH, validator=NonEmptyString(), documentation="The host of the database server."
        )
        .define("database.port", Type.INT, port, importance=HIGH, validator=Range(1, 65535), documentation="Its port.")
        .define("database.user", Type.STRING, importance=HIGH, documentation="The user that connects.")
        .define("database.password", Type.PASSWORD, None, importance=HIGH, documentation="The password of the user.")
        .define(
            "topic.prefix", Type.STRING, importance=HIGH, validator=NonEmptyString(),
            documentation="The name of the server in topics: PREFIX.SCHEMA.TABLE.",
        )
        .define(
            "table.include.list", Type.LIST, "", importance=HIGH, validator=Patterns(),
            documentation="Regular expressions of the tables, SCHEMA.TABLE, that are captured. Empty: all.",
        )
        .define(
            "table.exclude.list", Type.LIST, "", importance=MEDIUM, validator=Patterns(),
            documentation="Regular expressions of the tables, SCHEMA.TABLE, that are not captured.",
        )
        .define(
            "column.exclude.list", Type.LIST, "", importance=MEDIUM, validator=Patterns(),
            documentation="Regular expressions of the columns, SCHEMA.TABLE.COLUMN, that events leave out. The key keeps its columns.",
        )
        .define(
            "tombstones.on.delete", Type.BOOLEAN, True, importance=MEDIUM,
            documentation="Whether a record without a value follows each deletion, so that compaction removes the key.",
        )
        .define(
            "skipped.operations", Type.LIST, "t", importance=LOW, validator=ValidList(("c", "u", "d", "t", "none")),
            documentation="Operations without events: c (insert), u (update), d (delete), t (truncate); none: all have events.",
        )
        .define(
            "decimal.handling.mode", Type.STRING, "precise", importance=MEDIUM, validator=one_of("precise", "double", "string"),
            documentation="The form of decimals: precise (Kafka Connect's Decimal), double, or string.",
        )
        .define(
            "time.precision.mode", Type.STRING, "adaptive", importance=MEDIUM,
            validator=one_of("adaptive", "adaptive_time_microseconds", "connect"),
            documentation="The form of times: adaptive (numbers as precise as the column), or connect (Kafka Connect's types).",
        )
        .define(
            "heartbeat.interval.ms", Type.INT, 0, importance=MEDIUM, validator=Range(0),
            documentation="How often a record goes to the topic of heartbeats, in milliseconds; 0: never.",
        )
        .define(
            "topic.heartbeat.prefix", Type.STRING, "__debezium-heartbeat", importance=LOW,
            documentation="The topic of heartbeats is this text, a dot, and topic.prefix.",
        )
        .define(
            "heartbeat.action.query", Type.STRING, None, importance=LOW,
            documentation="A statement that runs in the database with each heartbeat.",
        )
        .define(
            FORMAT, Type.STRING, "envelope", importance=MEDIUM, validator=one_of("envelope", "flat"),
            documentation="envelope: Debezium's events with before, after, source and op. flat: the row alone, as Debezium's "
            "ExtractNewRecordState makes it; a deletion is a record without a value.",
        )
    )  # fmt: skip


class Chosen:
    """Names that some patterns take and others do not. A pattern fits to the whole name, in any case, as in Debezium."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include, self._exclude = (
            [java_pattern(each, re.IGNORECASE) for each in patterns] for patterns in (include, exclude)
        )

    def __call__(self, name: str) -> bool:
        if any(each.fullmatch(name) for each in self._exclude):
            return False
        return not self._include or any(each.fullmatch(name) for each in self._include)


class CaptureSettings(Struct, frozen=True):
    """The parsed config of a capture, as far as all of them have it.

    Attributes:
        takes_group: whether a database or schema is captured.
        channels: by which signals come.
        signal_options: of the client that reads the topic of signals.
    """

    prefix: str
    connection: Mapping[str, Any]
    takes_group: Chosen
    takes_table: Chosen
    takes_column: Chosen
    snapshot: str
    tombstones: bool
    skipped: frozenset[str]
    decimals: str
    times: str
    is_flat: bool
    signals: str | None  # the table of signals
    chunk_rows: int
    channels: frozenset[str]
    signal_topic: str
    signal_rest_s: float
    signal_options: Mapping[str, str]

    def takes(self, group: str, table: str) -> bool:
        """Whether a table of a database or schema is captured. The table of signals is, whatever the lists say."""
        name = f"{group}.{table}"
        return name == self.signals or (self.takes_group(group) and self.takes_table(name))

    def topic(self, group: str, table: str) -> str:
        """The topic of a table."""
        return f"{self.prefix}.{group}.{table}"

    @property
    def deletion(self) -> tuple[str, ...]:
        """The events of a deletion."""
        if DELETE in self.skipped:
            return ()
        if self.is_flat:
            return (TOMBSTONE,)
        return (DELETE, TOMBSTONE) if self.tombstones else (DELETE,)


def connection_of(config: Config) -> dict[str, Any]:
    """Where the server is, and who connects."""
    secret = config["database.password"]
    return {
        "host": config["database.hostname"], "port": config["database.port"], "user": config["database.user"],
        "password": secret.value if secret else "",
    }  # fmt: skip


def common_of(config: Config, group: str) -> dict[str, Any]:
    """The fields of `CaptureSettings` but for the connection.

    Args:
        group: of tables: database or schema.
    """
    return {
        "prefix": config["topic.prefix"],
        "takes_group": Chosen(config[f"{group}.include.list"], config[f"{group}.exclude.list"]),
        "takes_table": Chosen(config["table.include.list"], [*config["table.exclude.list"], rf".*\.{OFFSETS}"]),
        "takes_column": Chosen((), config["column.exclude.list"]),
        "snapshot": config["snapshot.mode"],
        "tombstones": config["tombstones.on.delete"],
        "skipped": frozenset(config["skipped.operations"]) - {"none"},
        "decimals": config["decimal.handling.mode"],
        "times": config["time.precision.mode"],
        "is_flat": config[FORMAT] == "flat",
        "signals": config["signal.data.collection"] or None,
        "chunk_rows": config["incremental.snapshot.chunk.size"],
        "channels": frozenset(config["signal.enabled.channels"]),
        "signal_topic": config["signal.kafka.topic"] or f"{config['topic.prefix']}-signal",
        "signal_rest_s": config["signal.poll.interval.ms"] / 1000,
        "signal_options": {
            "bootstrap.servers": config["signal.kafka.bootstrap.servers"] or "",
            **{name.removeprefix(CONSUMER): str(value) for name, value in config.items() if name.startswith(CONSUMER)},
        },
    }
