"""The config keys of the source: those of Confluent's JDBC source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.plugins.databases.address import Address
from barnabas.connect.plugins.databases.settings import HIGH, MEDIUM, address_in, url_errors, with_common
from barnabas.connect.validators import NonEmptyString, Range, Timezone, one_of

LOW = Importance.LOW
INCREMENTING, TIMESTAMP, BOTH, BULK = "incrementing", "timestamp", "timestamp+incrementing", "bulk"
TABLES = "tables"  # of a task

KEYS = (
    with_common(ConfigDef())
    .define(
        "mode", Type.STRING, importance=HIGH, validator=one_of(BULK, TIMESTAMP, INCREMENTING, BOTH),
        documentation="bulk: all rows at each poll. incrementing: rows with a greater number than before. timestamp: rows with a later "
        "time. timestamp+incrementing: both; it finds each change.",
    )
    .define("incrementing.column.name", Type.STRING, "", importance=MEDIUM, documentation="The column with a number that grows.")
    .define(
        "timestamp.column.name", Type.LIST, "", importance=MEDIUM,
        documentation="The columns with the time of the last change; of several, the first that is not null.",
    )
    .define(
        "timestamp.delay.interval.ms", Type.LONG, 0, importance=HIGH, validator=Range(0),
        documentation="How old the time of a row must be before it is read, so that transactions may end, in milliseconds.",
    )
    .define("table.whitelist", Type.LIST, "", importance=MEDIUM, documentation="The tables that are read. Empty: all.")
    .define("table.blacklist", Type.LIST, "", importance=MEDIUM, documentation="Tables that are not read.")
    .define("query", Type.STRING, "", importance=MEDIUM, documentation="A SELECT in place of tables.")
    .define(
        "poll.interval.ms", Type.INT, 5000, importance=HIGH, validator=Range(1),
        documentation="The time between two polls of a table, in milliseconds.",
    )
    .define("batch.max.rows", Type.INT, 100, importance=LOW, validator=Range(1), documentation="How many rows a batch has at most.")
    .define(
        "topic.prefix", Type.STRING, importance=HIGH, validator=NonEmptyString(),
        documentation="The topic is this text and the name of the table; with a query it is this text alone.",
    )
    .define(
        "db.timezone", Type.STRING, "UTC", importance=MEDIUM, validator=Timezone(),
        documentation="The time zone of the database's timestamps without one, of which `mode` makes use.",
    )
    .define(TABLES, Type.LIST, "", importance=LOW, documentation="The tables of a task; the connector sets it.")
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The parsed config of a source."""

    address: Address
    mode: str
    incrementing: str
    timestamps: Sequence[str]
    delay_ms: int
    whitelist: Sequence[str]
    blacklist: frozenset[str]
    query: str
    poll_s: float
    rows: int
    prefix: str
    quotes: bool
    timezone: str
    tables: Sequence[str]


def settings_of(config: Config) -> Settings:
    """The settings in a config. Raises ConnectError."""
    mode = config["mode"]
    return Settings(
        address=address_in(config), mode=mode,
        incrementing=config["incrementing.column.name"] if mode in {INCREMENTING, BOTH} else "",
        timestamps=tuple(config["timestamp.column.name"]) if mode in {TIMESTAMP, BOTH} else (),
        delay_ms=config["timestamp.delay.interval.ms"], whitelist=tuple(config["table.whitelist"]),
        blacklist=frozenset(config["table.blacklist"]), query=config["query"].strip().rstrip(";"),
        poll_s=config["poll.interval.ms"] / 1000, rows=config["batch.max.rows"], prefix=config["topic.prefix"],
        quotes=config["quote.sql.identifiers"] == "always", timezone=config["db.timezone"], tables=tuple(config[TABLES]),
    )  # fmt: skip


def errors_of(config: Mapping[str, str]) -> dict[str, list[str]]:
    """What is wrong with keys that must fit to each other, by key."""
    mode, found = config.get("mode", ""), dict[str, list[str]]()
    if mode in {INCREMENTING, BOTH} and not config.get("incrementing.column.name"):
        found["incrementing.column.name"] = [f"mode {mode} needs incrementing.column.name"]
    if mode in {TIMESTAMP, BOTH} and not config.get("timestamp.column.name"):
        found["timestamp.column.name"] = [f"mode {mode} needs timestamp.column.name"]
    if config.get("query") and (config.get("table.whitelist") or config.get("table.blacklist")):
        found["query"] = ["query and the lists of tables are mutually exclusive"]
    if config.get("table.whitelist") and config.get("table.blacklist"):
        found["table.blacklist"] = ["table.whitelist and table.blacklist are mutually exclusive"]
    return found | url_errors(config)
