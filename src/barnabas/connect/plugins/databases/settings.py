"""Config keys that the source and the sink of SQL have in common: those of Confluent's JDBC connectors."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.databases.address import Address, address_of
from barnabas.connect.validators import NonEmptyString, Range, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
DIALECT = "dialect.name"
DRIVER = "connection."  # how keys begin that Confluent's connectors give to the driver
FAMILIES: tuple[str, ...] = (DRIVER,)
DIALECTS = {
    "PostgreSqlDatabaseDialect": "postgresql", "MySqlDatabaseDialect": "mysql", "MariaDbDatabaseDialect": "mysql",
    "SqliteDatabaseDialect": "sqlite", "GenericDatabaseDialect": None,
}  # fmt: skip


def with_common(made: ConfigDef) -> ConfigDef:
    """Add the keys."""
    return (
        made.define(
            "connection.url", Type.STRING, importance=HIGH, validator=NonEmptyString(),
            documentation="JDBC url of the database, such as jdbc:postgresql://localhost/shop or jdbc:sqlite:/var/lib/shop.db",
        )
        .define("connection.user", Type.STRING, None, importance=HIGH, documentation="The user that connects.")
        .define("connection.password", Type.PASSWORD, None, importance=HIGH, documentation="The password of the user.")
        .define(
            "quote.sql.identifiers", Type.STRING, "always", importance=MEDIUM, validator=one_of("always", "never"),
            documentation="Whether statements have names of tables and columns in quotes.",
        )
        .define(
            DIALECT, Type.STRING, "", importance=LOW, validator=one_of("", *DIALECTS),
            documentation="The kind of the database, which the url says too. Another one than that of the url is refused.",
        )
        .define(
            "connection.attempts", Type.INT, 3, importance=LOW, validator=Range(1),
            documentation="Without effect: a task that cannot connect fails at once, says why, and starts again by itself.",
        )
        .define(
            "connection.backoff.ms", Type.LONG, 10000, importance=LOW, validator=Range(1),
            documentation="Without effect, as connection.attempts.",
        )
    )  # fmt: skip


def address_in(config: Config) -> Address:
    """Where the database is. Keys such as `connection.loginTimeout` are options of the url. Raises ConnectError."""
    secret = config["connection.password"]
    address = address_of(config["connection.url"], config["connection.user"], secret.value if secret else None)
    known = with_common(ConfigDef()).keys
    more = {key.removeprefix(DRIVER): str(value) for key, value in config.items() if key.startswith(DRIVER) and key not in known}
    return replace(address, options={**address.options, **more}) if more else address


def url_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """What is wrong with the url and the dialect, by key."""
    try:
        address = address_of(config.get("connection.url", "jdbc:sqlite:"))
    except ConnectError as error:
        return {"connection.url": [str(error)]}
    dialect = config.get(DIALECT, "").strip()
    if DIALECTS.get(dialect) not in {None, address.kind}:
        return {DIALECT: [f"the url is of {address.kind}, and {dialect} is the dialect of {DIALECTS[dialect]}"]}
    return {}
