"""The config keys of the capture of MariaDB and MySQL: those of Debezium's connectors."""

from __future__ import annotations

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type
from barnabas.connect.plugins.debezium.settings import (
    HIGH,
    LOW,
    CaptureSettings,
    common_of,
    connection_of,
    with_common,
    with_lists,
)
from barnabas.connect.validators import Range, one_of

LOGGED = "the binary log has the names and types of each change"
IDLE = {
    "schema.history.internal": LOGGED, "database.history": LOGGED,
    "include.schema.changes": "there are no records of changes of schemas",
}  # fmt: skip
KEYS = (
    with_lists(with_common(ConfigDef(), port=3306), "database")
    .define(
        "database.server.id", Type.LONG, importance=HIGH, validator=Range(1, 2**32 - 1),
        documentation="The number of this replica. No other replica of the server has it.",
    )
    .define("database.ssl.ca", Type.STRING, None, importance=LOW, documentation="A file with certificates of authorities, for TLS.")
    .define(
        "snapshot.mode", Type.STRING, "initial", importance=HIGH, validator=one_of("initial", "initial_only", "no_data", "never"),
        documentation="initial: all rows first, if there is no offset. initial_only: all rows, and no changes. no_data, never: changes "
        "alone.",
    )
)  # fmt: skip


class Settings(CaptureSettings, frozen=True, kw_only=True):
    """The parsed config of a capture."""

    server_id: int

    @property
    def place(self) -> str:
        """Where the server is, for errors."""
        return f"mysql://{self.connection['host']}:{self.connection['port']}"


def settings_of(config: Config) -> Settings:
    """The settings in a config."""
    connection = {**connection_of(config), "charset": "utf8mb4"}
    if config["database.ssl.ca"]:
        connection["ssl"] = {"ca": config["database.ssl.ca"]}
    return Settings(**common_of(config, "database"), connection=connection, server_id=config["database.server.id"])
