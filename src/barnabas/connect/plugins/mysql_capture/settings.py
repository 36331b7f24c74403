"""The config keys of the capture of MariaDB and MySQL: those of Debezium's connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type
from barnabas.connect.plugins.debezium.settings import FORMAT, HIGH, LOW, MEDIUM, Chosen, Patterns, with_common
from barnabas.connect.validators import Range, one_of

KEYS = (
    with_common(ConfigDef(), port=3306)
    .define(
        "database.server.id", Type.LONG, importance=HIGH, validator=Range(1, 2**32 - 1),
        documentation="The number of this replica. No other replica of the server has it.",
    )
    .define(
        "database.include.list", Type.LIST, "", importance=HIGH, validator=Patterns(),
        documentation="Regular expressions of the databases that are captured. Empty: all.",
    )
    .define(
        "database.exclude.list", Type.LIST, "", importance=MEDIUM, validator=Patterns(),
        documentation="Regular expressions of the databases that are not captured.",
    )
    .define("database.ssl.ca", Type.STRING, None, importance=LOW, documentation="A file with certificates of authorities, for TLS.")
    .define(
        "snapshot.mode", Type.STRING, "initial", importance=HIGH, validator=one_of("initial", "initial_only", "no_data", "never"),
        documentation="initial: all rows first, if there is no offset. initial_only: all rows, and no changes. no_data, never: changes "
        "alone.",
    )
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The parsed config of a capture."""

    prefix: str
    connection: Mapping[str, Any]
    server_id: int
    takes_database: Chosen
    takes_table: Chosen
    takes_column: Chosen
    snapshot: str
    tombstones: bool
    skipped: frozenset[str]
    decimals: str
    times: str
    is_flat: bool

    @property
    def place(self) -> str:
        """Where the server is, for errors."""
        return f"mysql://{self.connection['host']}:{self.connection['port']}"

    def takes(self, database: str, table: str) -> bool:
        """Whether a table is captured."""
        return self.takes_database(database) and self.takes_table(f"{database}.{table}")


def settings_of(config: Config) -> Settings:
    """The settings in a config."""
    secret = config["database.password"]
    connection = {
        "host": config["database.hostname"], "port": config["database.port"], "user": config["database.user"],
        "password": secret.value if secret else "", "charset": "utf8mb4",
    }  # fmt: skip
    if config["database.ssl.ca"]:
        connection["ssl"] = {"ca": config["database.ssl.ca"]}
    return Settings(
        prefix=config["topic.prefix"], connection=connection, server_id=config["database.server.id"],
        takes_database=Chosen(config["database.include.list"], config["database.exclude.list"]),
        takes_table=Chosen(config["table.include.list"], config["table.exclude.list"]),
        takes_column=Chosen((), config["column.exclude.list"]), snapshot=config["snapshot.mode"],
        tombstones=config["tombstones.on.delete"], skipped=frozenset(config["skipped.operations"]) - {"none"},
        decimals=config["decimal.handling.mode"], times=config["time.precision.mode"], is_flat=config[FORMAT] == "flat",
    )  # fmt: skip
