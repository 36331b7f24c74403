"""The config keys of the capture of PostgreSQL: those of Debezium's connector."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type, invalid
from barnabas.connect.plugins.debezium.settings import (
    HIGH,
    LOW,
    MEDIUM,
    CaptureSettings,
    common_of,
    connection_of,
    with_common,
    with_lists,
)
from barnabas.connect.plugins.debezium.signals import signal_errors
from barnabas.connect.plugins.debezium.unsupported import unsupported
from barnabas.connect.validators import NonEmptyString, Range, one_of

SLOT_NAME = re.compile("[a-z0-9_]{1,63}")

KEYS = (
    with_lists(with_common(ConfigDef(), port=5432), "schema")
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


class Settings(CaptureSettings, frozen=True, kw_only=True):
    """The parsed config of a capture."""

    database: str
    slot: str
    slot_retries: int
    slot_delay_s: float
    publication: str
    autocreate: str
    intervals: str
    placeholder: str


def settings_of(config: Config) -> Settings:
    """The settings in a config."""
    ssl = {name.removeprefix("database."): config[name] for name in
           ("database.sslmode", "database.sslrootcert", "database.sslcert", "database.sslkey")}  # fmt: skip
    connection = {
        **connection_of(config), "dbname": config["database.dbname"], "application_name": "barnabas", "client_encoding": "UTF8", **ssl,
        "options": "-c timezone=UTC -c datestyle=ISO -c intervalstyle=iso_8601 -c bytea_output=hex -c extra_float_digits=3 "
        "-c lc_monetary=C",
    }  # fmt: skip
    return Settings(
        **common_of(config, "schema"), connection={name: value for name, value in connection.items() if value not in {None, ""}},
        database=config["database.dbname"], slot=config["slot.name"], slot_retries=config["slot.max.retries"],
        slot_delay_s=config["slot.retry.delay.ms"] / 1000, publication=config["publication.name"],
        autocreate=config["publication.autocreate.mode"], intervals=config["interval.handling.mode"],
        placeholder=config["unavailable.value.placeholder"],
    )  # fmt: skip


def errors_of(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What is wrong beyond the definitions, by key."""
    name = config.get("slot.name", "debezium")
    found = {**unsupported(config), **signal_errors(config)}
    if not SLOT_NAME.fullmatch(name):
        found["slot.name"] = [str(invalid("slot.name", name, "A slot has a name of lower-case letters, digits and underscores"))]
    return found
