"""Makes sessions in this process, against the cluster of a command's options."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection
from barnabas.cli.errors import BadInput
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cli.sql.shell import Shell
    from barnabas.sql.interface import Session

DATABASE = "barnabas"


class SessionMaker:
    """Makes sessions in this process, against the cluster of a connection. The engine is loaded with the first.

    Args:
        registry: the URL of a schema registry.
    """

    def __init__(self, connection: Connection, registry: str | None = None) -> None:
        from barnabas.client.config import ClientConfig
        from barnabas.sql.interface import Caller
        from barnabas.sql.lazy import LazyEngine

        given = {"client.id": "barnabas-sql", **connection.properties, "bootstrap.servers": connection.bootstrap}
        try:
            self._config = ClientConfig.from_options(given)
        except ConfigError as error:
            raise BadInput(str(error)) from error
        connection.require_broker()
        self._registry = registry
        self._caller = Caller(user=connection.properties.get("sasl.username") or _user(), database=DATABASE)
        self._engine = LazyEngine(self._load)

    def _load(self) -> Any:
        from barnabas.sql.engine import SqlEngine

        return SqlEngine(self._config, registry=self._registry)

    def load(self) -> None:
        """Load the engine."""
        self._engine.loaded()

    def __call__(self) -> Session:
        return self._engine.session(self._caller)

    def close(self) -> None:
        """End all sessions."""
        self._engine.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry in the list of users
        return "anonymous"


def write_error(text: str) -> None:
    """To standard error, after what standard output has."""
    sys.stdout.flush()
    click.echo(text, err=True, nl=False)


def close_all(shell: Shell, maker: SessionMaker) -> None:
    """End the session and the engine."""
    try:
        shell.close()
    finally:
        maker.close()
