"""The config keys of the capture of PostgreSQL: those of Debezium's connector."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type, invalid
from barnabas.connect.plugins.debezium.settings import FORMAT, HIGH, LOW, MEDIUM, Chosen, Patterns, with_common
from barnabas.connect.validators import NonEmptyString, Range, one_of

SLOT_NAME = re.compile("[a-z0-9_]{1,63}")

KEYS = (
    with_common(ConfigDef(), port=5432)
    .define("database.dbname", Type.STRING, importance=HIGH, validator=NonEmptyString(), documentation="The name of the database.")
    .define(
        "database.sslmode", Type.STRING, "prefer", importance=MEDIUM,
        validator=one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
        documentation="Whether the connection is encrypted, by libpq's names.",
    )
    .define("database.sslrootcert", Type.STRING, None, importance=MEDIUM, documentation="A file with certificates of authorities.")
    .define("database.sslcert", Type.STRING, None, importance=MEDIUM, documentation="A file with the client's certificate.")
    .define("database.sslkey", Type.STRING, None, importance=MEDIUM, documentation="A file with the client's key.")
    .define(
        "plugin.name", Type.STRING, "pgoutput", importance=MEDIUM, validator=one_of("pgoutput"),
        documentation="The output plug-in of the slot; pgoutput comes with PostgreSQL.",
    )
    .define("slot.name", Type.STRING, "debezium", importance=MEDIUM, documentation="The replication slot; it is created if it is missing.")
    .define(
        "slot.max.retries", Type.INT, 6, importance=LOW, validator=Range(0),
        documentation="How often a slot that another connection uses is tried again.",
    )
    .define(
        "slot.retry.delay.ms", Type.LONG, 10_000, importance=LOW, validator=Range(0),
        documentation="The time before it is tried again, in milliseconds.",
    )
    .define("publication.name", Type.STRING, "dbz_publication", importance=MEDIUM, documentation="The publication of the tables.")
    .define(
        "publication.autocreate.mode", Type.STRING, "all_tables", importance=MEDIUM,
        validator=one_of("all_tables", "disabled", "filtered", "no_tables"),
        documentation="How a missing publication is created: for all tables (takes a superuser), not at all, for the captured tables, "
        "or without tables.",
    )
    .define(
        "schema.include.list", Type.LIST, "", importance=HIGH, validator=Patterns(),
        documentation="Regular expressions of the schemas that are captured. Empty: all.",
    )
    .define(
        "schema.exclude.list", Type.LIST, "", importance=MEDIUM, validator=Patterns(),
        documentation="Regular expressions of the schemas that are not captured.",
    )
    .define(
        "snapshot.mode", Type.STRING, "initial", importance=HIGH,
        validator=one_of("initial", "always", "initial_only", "no_data", "never"),
        documentation="initial: all rows first, if there is no offset. always: all rows at each start. initial_only: all rows, and no "
        "changes. no_data, never: changes alone.",
    )
    .define(
        "interval.handling.mode", Type.STRING, "numeric", importance=LOW, validator=one_of("numeric", "string"),
        documentation="The form of intervals: microseconds, or a text in ISO 8601.",
    )
    .define(
        "unavailable.value.placeholder", Type.STRING, "__debezium_unavailable_value", importance=MEDIUM,
        documentation="What stands for a large value that an update left as it was and that PostgreSQL does not send.",
    )
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The parsed config of a capture."""

    prefix: str
    database: str
    connection: Mapping[str, Any]
    slot: str
    slot_retries: int
    slot_delay_s: float
    publication: str
    autocreate: str
    takes_schema: Callable[[str], bool]
    takes_table: Callable[[str], bool]
    takes_column: Callable[[str], bool]
    snapshot: str
    tombstones: bool
    skipped: frozenset[str]
    decimals: str
    times: str
    intervals: str
    placeholder: str
    is_flat: bool

    def takes(self, schema: str, table: str) -> bool:
        """Whether a table is captured."""
        return self.takes_schema(schema) and self.takes_table(f"{schema}.{table}")

    def topic(self, schema: str, table: str) -> str:
        """The topic of a table."""
        return f"{self.prefix}.{schema}.{table}"


def settings_of(config: Config) -> Settings:
    """The settings in a config. Raises ConfigError."""
    if not SLOT_NAME.fullmatch(config["slot.name"]):
        raise invalid("slot.name", config["slot.name"], "A slot has a name of lower-case letters, digits and underscores")
    secret = config["database.password"]
    ssl = {name.removeprefix("database."): config[name] for name in
           ("database.sslmode", "database.sslrootcert", "database.sslcert", "database.sslkey")}  # fmt: skip
    connection = {
        "host": config["database.hostname"], "port": config["database.port"], "user": config["database.user"],
        "password": secret.value if secret else None, "dbname": config["database.dbname"], "application_name": "barnabas", **ssl,
        "options": "-c timezone=UTC -c datestyle=ISO -c intervalstyle=iso_8601 -c bytea_output=hex -c extra_float_digits=3 "
        "-c lc_monetary=C",
    }  # fmt: skip
    return Settings(
        prefix=config["topic.prefix"], database=config["database.dbname"],
        connection={name: value for name, value in connection.items() if value is not None},
        slot=config["slot.name"], slot_retries=config["slot.max.retries"], slot_delay_s=config["slot.retry.delay.ms"] / 1000,
        publication=config["publication.name"], autocreate=config["publication.autocreate.mode"],
        takes_schema=Chosen(config["schema.include.list"], config["schema.exclude.list"]),
        takes_table=Chosen(config["table.include.list"], config["table.exclude.list"]),
        takes_column=Chosen((), config["column.exclude.list"]), snapshot=config["snapshot.mode"],
        tombstones=config["tombstones.on.delete"], skipped=frozenset(config["skipped.operations"]) - {"none"},
        decimals=config["decimal.handling.mode"], times=config["time.precision.mode"], intervals=config["interval.handling.mode"],
        placeholder=config["unavailable.value.placeholder"], is_flat=config[FORMAT] == "flat",
    )  # fmt: skip


def errors_of(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What is wrong beyond the definitions, by key."""
    name = config.get("slot.name", "debezium")
    if SLOT_NAME.fullmatch(name):
        return {}
    return {"slot.name": [str(invalid("slot.name", name, "A slot has a name of lower-case letters, digits and underscores"))]}
