"""The config keys of the source: those of Confluent's JDBC source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Type, invalid
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.databases.address import Address
from barnabas.connect.plugins.databases.settings import HIGH, LOW, MEDIUM, address_in, url_errors, with_common
from barnabas.connect.plugins.sql_source.numbers import MAPPINGS, NONE, PRECISION_ONLY
from barnabas.connect.plugins.sql_source.times import GRANULARITIES
from barnabas.connect.validators import NonEmptyString, Range, Timezone, one_of

INCREMENTING, TIMESTAMP, BOTH, BULK = "incrementing", "timestamp", "timestamp+incrementing", "bulk"
TABLES, OTHERS = "tables", "tables.of.others"  # of a task
LISTS = ("table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list")
TIMESTAMP_MAPPING, INCREMENTING_MAPPING = "timestamp.columns.mapping", "incrementing.column.mapping"
FORMER_MAPPING = "timestamp.column.mapping"
MASKED, CREDENTIALS = "query.masked", "jdbc.credentials.provider.class"
OWN_CREDENTIALS = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"
LEVELS = ("DEFAULT", "READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE")

Texts = Mapping[str, str]

KEYS = (
    with_common(ConfigDef())
    .define(
        "mode", Type.STRING, importance=HIGH, validator=one_of(BULK, TIMESTAMP, INCREMENTING, BOTH),
        documentation="bulk: all rows at each poll. incrementing: rows with a greater number than before. timestamp: rows with a later "
        "time. timestamp+incrementing: both; it finds each change.",
    )
    .define(
        "incrementing.column.name", Type.STRING, "", importance=MEDIUM,
        documentation="The column with a number that grows. Empty: the one that the database counts up itself, such as an identity, "
        "AUTO_INCREMENT, or SQLite's INTEGER PRIMARY KEY.",
    )
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
    .define(MASKED, Type.PASSWORD, None, importance=MEDIUM, documentation="The same, which answers and logs do not show.")
    .define(
        "poll.interval.ms", Type.INT, 5000, importance=HIGH, validator=Range(1),
        documentation="The time between two polls of a table, in milliseconds.",
    )
    .define(
        "batch.max.rows", Type.INT, 100, importance=LOW, validator=Range(1),
        documentation="How many rows a part of the result has at first. Narrow rows come up to 5,000 at once.",
    )
    .define(
        "topic.prefix", Type.STRING, importance=HIGH, validator=NonEmptyString(),
        documentation="The topic is this text and the name of the table; with a query it is this text alone.",
    )
    .define(
        "db.timezone", Type.STRING, "UTC", importance=MEDIUM, validator=Timezone(),
        documentation="The time zone of the database's timestamps without one, of which `mode` makes use.",
    )
    .define(
        "timestamp.initial", Type.LONG, None, importance=LOW,
        documentation="Where a table without an offset begins: rows with a later time than this, in milliseconds since 1970; -1 is now.",
    )
    .define(
        "timestamp.granularity", Type.STRING, "connect_logical", importance=LOW, validator=one_of(*GRANULARITIES),
        documentation="The form of timestamps in records: connect_logical, that of Kafka Connect; or a number since 1970, such a number as "
        "a text, or ISO 8601, each in micros or nanos.",
    )
    .define(
        "validate.non.null", Type.BOOLEAN, True, importance=LOW,
        documentation="Whether a row without a value in incrementing.column.name ends the task; otherwise it is left out.",
    )
    .define(
        "numeric.mapping", Type.STRING, "", importance=LOW, validator=one_of("", *MAPPINGS),
        documentation="The types of exact numbers. none: decimals. precision_only: integers for those without a scale. best_fit: also "
        "doubles, up to 18 digits. best_fit_eager_double: doubles for all with a scale.",
    )
    .define(
        "numeric.precision.mapping", Type.BOOLEAN, False, importance=LOW,
        documentation="true: numeric.mapping=precision_only, where that is not set.",
    )
    .define("table.include.list", Type.LIST, "", importance=MEDIUM, documentation="Regular expressions of tables that are read.")
    .define("table.exclude.list", Type.LIST, "", importance=MEDIUM, documentation="Regular expressions of tables that are not read.")
    .define(
        "table.types", Type.LIST, "TABLE", importance=LOW,
        documentation="The kinds of tables that are found if none is named: TABLE, VIEW.",
    )
    .define(
        "schema.pattern", Type.STRING, None, importance=MEDIUM,
        documentation="The schemas in which tables are found, as LIKE has them. Empty: the current one.",
    )
    .define(
        "catalog.pattern", Type.STRING, None, importance=MEDIUM,
        documentation="The catalogs in which tables are found, as LIKE has them: the databases of MySQL and MariaDB.",
    )
    .define(
        "table.poll.interval.ms", Type.LONG, 60000, importance=LOW, validator=Range(1),
        documentation="The time between two looks for tables that are added, in milliseconds.",
    )
    .define("query.suffix", Type.STRING, "", importance=LOW, documentation="Text behind each query, such as LIMIT 1000.")
    .define(
        "query.retry.attempts", Type.INT, -1, importance=LOW, validator=Range(-1),
        documentation="Without effect: a task whose query fails says why, and starts again by itself.",
    )
    .define(
        "transaction.isolation.mode", Type.STRING, "DEFAULT", importance=LOW, validator=one_of(*LEVELS),
        documentation="The isolation level of the queries, for PostgreSQL, MySQL and MariaDB.",
    )
    .define(
        TIMESTAMP_MAPPING, Type.LIST, "", importance=MEDIUM,
        documentation="timestamp.column.name by tables: REGEX:[COLUMN|COLUMN], and more of them behind commas. Each table must fit to one.",
    )
    .define(FORMER_MAPPING, Type.LIST, "", importance=LOW, documentation="Another name of timestamp.columns.mapping.")
    .define(
        INCREMENTING_MAPPING, Type.LIST, "", importance=MEDIUM,
        documentation="incrementing.column.name by tables: REGEX:COLUMN, and more of them behind commas. Each table must fit to one.",
    )
    .define(
        "table.monitoring.startup.polling.limit.ms", Type.LONG, 10_000, importance=LOW,
        documentation="Without effect: the tables are known before the tasks start.",
    )
    .define(
        CREDENTIALS, Type.STRING, OWN_CREDENTIALS, importance=LOW,
        documentation="Refused but for its default: a class of Java. Config providers bring passwords.",
    )
    .define(TABLES, Type.LIST, "", importance=LOW, documentation="The tables of a task; the connector sets it.")
    .define(OTHERS, Type.LIST, "", importance=LOW, documentation="The tables of other tasks; the connector sets it for the first.")
)  # fmt: skip


class TableColumns(Struct, frozen=True):
    """Columns of the tables whose names a regular expression matches."""

    tables: str
    columns: Sequence[str]


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
    others: frozenset[str]
    includes: Sequence[str]
    excludes: Sequence[str]
    kinds: Sequence[str]
    schema: str | None
    catalog: str | None
    tables_poll_s: float
    initial_ms: int | None
    raises_on_null: bool
    numbers: str
    suffix: str
    isolation: str
    granularity: str
    timestamp_mapping: Sequence[TableColumns]
    incrementing_mapping: Sequence[TableColumns]

    def names_of(self, table: str) -> tuple[str, str, str]:
        """The names of a table that patterns fit to: with and without what stands before it, and behind the database."""
        return table, table.rpartition(".")[2], f"{self.address.database}.{table}"


def settings_of(config: Config) -> Settings:
    """The settings in a config. Raises ConnectError."""
    mode = config["mode"]
    return Settings(
        address=address_in(config), mode=mode,
        incrementing=config["incrementing.column.name"] if mode in {INCREMENTING, BOTH} else "",
        timestamps=tuple(config["timestamp.column.name"]) if mode in {TIMESTAMP, BOTH} else (),
        delay_ms=config["timestamp.delay.interval.ms"], whitelist=tuple(config["table.whitelist"]),
        blacklist=frozenset(config["table.blacklist"]), query=_query(config),
        poll_s=config["poll.interval.ms"] / 1000, rows=config["batch.max.rows"], prefix=config["topic.prefix"],
        quotes=config["quote.sql.identifiers"] == "always", timezone=config["db.timezone"], tables=tuple(config[TABLES]),
        others=frozenset(config[OTHERS]), includes=tuple(config["table.include.list"]), excludes=tuple(config["table.exclude.list"]),
        kinds=tuple(each.upper() for each in config["table.types"]), schema=config["schema.pattern"] or None,
        catalog=config["catalog.pattern"] or None, tables_poll_s=config["table.poll.interval.ms"] / 1000,
        initial_ms=config["timestamp.initial"], raises_on_null=config["validate.non.null"], numbers=_numbers(config),
        suffix=config["query.suffix"], isolation=config["transaction.isolation.mode"],
        granularity=config["timestamp.granularity"],
        timestamp_mapping=_mapping(config, {TIMESTAMP, BOTH}, TIMESTAMP_MAPPING, FORMER_MAPPING),
        incrementing_mapping=_mapping(config, {INCREMENTING, BOTH}, INCREMENTING_MAPPING),
    )  # fmt: skip


def _query(config: Config) -> str:
    masked = config[MASKED]
    query: str = config["query"] if masked is None else masked.value
    return query.strip().rstrip(";")


def _mapping(config: Config, modes: set[str], *keys: str) -> tuple[TableColumns, ...]:
    """The entries of the key that is there, if the mode makes use of them."""
    return mapping_of(keys[0], next((config[key] for key in keys if config[key]), ())) if config["mode"] in modes else ()


def mapping_of(key: str, entries: Sequence[str]) -> tuple[TableColumns, ...]:
    """The entries of a list such as `orders.*:[changed|made],users:[changed]`. Raises ConfigError."""
    found = []
    for each in entries:
        tables, _, columns = (part.strip() for part in each.rpartition(":"))
        names = tuple(name.strip() for name in columns.removeprefix("[").removesuffix("]").split("|"))
        try:
            java_pattern(tables)
        except re.error as error:
            raise invalid(key, each, f"{tables} is no regular expression: {error}") from None
        if not tables or not all(names) or (key == INCREMENTING_MAPPING and len(names) != 1):
            raise invalid(key, each, "a regular expression of tables, a colon, and a column, or [COLUMN|COLUMN] for timestamps")
        found.append(TableColumns(tables, names))
    return tuple(found)


def _numbers(config: Config) -> str:
    """The mapping of exact numbers."""
    return config["numeric.mapping"] or (PRECISION_ONLY if config["numeric.precision.mapping"] else NONE)


def errors_of(config: Texts) -> dict[str, list[str]]:
    """What is wrong with keys that must fit to each other, by key."""
    found = {**_errors_of_modes(config), **_errors_of_tables(config)}
    if config.get(CREDENTIALS, OWN_CREDENTIALS) != OWN_CREDENTIALS:
        found[CREDENTIALS] = [
            f"{CREDENTIALS} is a class of Java, which cannot run here: a config provider can bring the password"
        ]
    initial: Any = KEYS.parse(config)["timestamp.initial"]
    if initial is not None and initial < -1:
        found["timestamp.initial"] = ["timestamp.initial is a time in milliseconds since 1970, or -1"]
    return found | url_errors(config)


def _errors_of_modes(config: Texts) -> dict[str, list[str]]:
    mode, query, found = config.get("mode", ""), config.get("query") or config.get(MASKED), dict[str, list[str]]()
    times = [key for key in ("timestamp.column.name", TIMESTAMP_MAPPING, FORMER_MAPPING) if config.get(key)]
    numbers = [key for key in ("incrementing.column.name", INCREMENTING_MAPPING) if config.get(key)]
    if mode in {INCREMENTING, BOTH} and query and not numbers:
        found["incrementing.column.name"] = [f"mode {mode} of a query needs incrementing.column.name"]
    if mode in {TIMESTAMP, BOTH} and not times:
        found["timestamp.column.name"] = [f"mode {mode} needs timestamp.column.name"]
    for keys in (times, numbers):
        if len(keys) > 1:
            found[keys[1]] = [f"{keys[0]} and {keys[1]} are mutually exclusive"]
    for key in (TIMESTAMP_MAPPING, FORMER_MAPPING, INCREMENTING_MAPPING):
        if config.get(key) and query:
            found[key] = [f"query and {key} are mutually exclusive"]
        try:
            mapping_of(key, KEYS.parse(config)[key])
        except ConfigError as error:
            found[key] = [str(error)]
    return found


def _errors_of_tables(config: Texts) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    queries = [key for key in ("query", MASKED) if config.get(key)]
    lists = [key for key in LISTS if config.get(key)]
    if queries and lists:
        found[queries[0]] = [f"{queries[0]} and the lists of tables are mutually exclusive"]
    if len(queries) > 1:
        found[MASKED] = [f"query and {MASKED} are mutually exclusive"]
    if len(lists) > 1 and set(lists) != {"table.include.list", "table.exclude.list"}:
        found[lists[1]] = [f"{lists[0]} and {lists[1]} are mutually exclusive"]
    for key in ("table.include.list", "table.exclude.list"):
        for each in KEYS.parse(config)[key]:
            try:
                java_pattern(each)
            except re.error as error:
                found[key] = [f"{each} is no regular expression: {error}"]
    return found
