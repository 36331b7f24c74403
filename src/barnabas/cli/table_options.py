"""The options by which a command reaches a table, and opening it."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec import Struct

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.registry_connection import DEFAULT_URL, URL, RegistryOptions
from barnabas.cli.types import READABLE, FilePath
from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.schemas.arrow.columns import RegistryAddress
    from barnabas.tables import Table

FORMATS = ("raw", "text", "json", "avro", "protobuf", "json_schema", "auto")
WITH_SCHEMAS = ("avro", "protobuf", "json_schema")
MODES = ("permissive", "drop", "fail")
WORDS_OF_KEYS = ("raw", "text", "row")
OWN_CLUSTER = ("bootstrap_server", "command_config", "settings")


class TableOptions(Struct):
    """The words that say where a table is and what its records become."""

    connection: Connection
    data_folder: str | None
    format: str = "raw"
    columns: str | None = None
    key: str | None = None
    registry: RegistryOptions | None = None
    mode: str = "permissive"
    newest: bool = False
    key_index: str | None = None

    @contextmanager
    def opened(self, topic: str) -> Iterator[Table]:
        """The table of a topic.

        Raises:
            BadInput: the words do not fit, or the table cannot be read as asked.
            Failure: the libraries of tables are not installed, or no broker can be reached.
        """
        with table_errors():
            from barnabas.tables import table

            self._check()
            if self.data_folder is None:
                self.connection.require_broker()
            found = table(
                topic,
                self.connection.bootstrap if self.data_folder is None else None,
                data_folder=self.data_folder,
                settings=self.client_settings() if self.data_folder is None else None,
                format=self.format,
                columns=self.columns,
                key=self.key,
                registry=self._address(),
                mode=self.mode,
                key_index=self.key_index,
            )
            with found:
                yield found.newest_by_key() if self.newest else found

    def _check(self) -> None:
        """Raises BadInput, with the option, if a declaration of columns cannot be read."""
        from barnabas.tables.declaration import declared
        from barnabas.tables.errors import TableError

        for option, text in (("--columns", self.columns), ("--key", self.key)):
            try:
                if text is not None and text not in WORDS_OF_KEYS:
                    declared(text)
            except TableError as error:
                raise BadInput(f"{option}: {error}") from error

    def client_settings(self) -> dict[str, str]:
        """Settings of the project's own client."""
        timeout_ms = str(int(self.connection.timeout_s * 1000))
        return {"client.id": "barnabas-cli", "default.api.timeout.ms": timeout_ms, **self.connection.properties}

    def _address(self) -> RegistryAddress | None:
        if self.registry is None:
            return None
        from barnabas.schemas.arrow.columns import RegistryAddress

        return RegistryAddress.of(self.registry.url, self.registry.settings())


@contextmanager
def table_errors() -> Iterator[None]:
    """In this context errors of tables are errors of the command line."""
    try:
        from barnabas.tables.errors import TableError
    except ImportError as error:
        raise Failure(f"{error.name} is not installed; `pip install 'barnabas[tables]'` installs what tables need") from error
    try:
        with _told_of_compiling():
            yield
    except ImportError as error:
        raise Failure(f"{error.name} is not installed; `pip install 'barnabas[tables]'` installs what tables need") from error
    except TableError as error:
        part = getattr(error, "part", None)  # of a query
        raise BadInput(f"--{part}: {error}" if part else str(error)) from error
    except OSError:
        raise
    except BarnabasError as error:
        raise Failure(str(error)) from error


@contextmanager
def _told_of_compiling() -> Iterator[None]:
    """In this context a terminal shows that kernels are compiled."""
    if not sys.stderr.isatty():
        yield
        return
    logger, handler = logging.getLogger("barnabas.protocol.records.compiling"), _Compiling()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Compiling(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        click.echo("compiling the loops that read records: this takes some ten seconds, once after an installation", err=True)


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a cluster and --data-folder, and call it with `connection` and `data_folder`."""

    @functools.wraps(function)
    def command(*, data_folder: str | None, **options: Any) -> Any:
        context = click.get_current_context()
        if data_folder is not None:
            asked = [each for each in OWN_CLUSTER if context.get_parameter_source(each) is ParameterSource.COMMANDLINE]
            if asked:
                raise BadInput("a table is read from a cluster or from --data-folder, not from both")
        return function(data_folder=data_folder, **options)

    option = click.option("--data-folder", metavar="FOLDER[,FOLDER...]",
                          help="Read the data folder of a broker that runs or is stopped, in place of a cluster.")  # fmt: skip
    return connection_options(option(command))


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a table, and call it with `options`."""

    @functools.wraps(function)
    def command(
        *, connection: Connection, data_folder: str | None, layout: str, declared: str | None, key: str | None,
        registry_url: str | None, registry_config: str | None, mode: str, newest: bool, key_index: str | None, **others: Any,
    ) -> Any:  # fmt: skip
        url = registry_url or (DEFAULT_URL if layout in WITH_SCHEMAS or registry_config is not None else None)
        registry = None if url is None else RegistryOptions(url, registry_config)
        options = TableOptions(connection, data_folder, layout, declared, key, registry, mode, newest, key_index)
        return function(options=options, **others)

    for option in (
        click.option("--key-index", type=FilePath(file_okay=False), metavar="FOLDER",
                     help="Keep an index of keys there: later readings with a condition on the key read only a part of the topic."),
        click.option("--newest", is_flag=True, help="Only the newest row of each key, without deletions."),
        click.option("--mode", type=click.Choice(MODES), default="permissive", show_default=True,
                     help="Records that do not fit: columns of nulls, no row, or an error."),
        click.option("--registry-config", type=READABLE, metavar="FILE",
                     help="A properties file with basic.auth.user.info, bearer.auth.token or ssl.* settings for the registry."),
        click.option("--registry", "--schema-registry", "registry_url", type=URL, metavar="URL", envvar="SCHEMA_REGISTRY_URL",
                     show_envvar=True, help=f"The schema registry.  [default: {DEFAULT_URL}, for formats that need one]"),
        click.option("--key", metavar="KEY", help="`text`, or columns of the key such as 'id bigint'; otherwise bytes in _key. "
                     "`row`: the rows of a table of SQL without a primary key."),
        click.option("--columns", "declared", metavar="COLUMNS", help="Columns of the value, such as 'id bigint, name text'; for json."),
        click.option("--format", "layout", type=click.Choice(FORMATS), default="raw", show_default=True,
                     help="The format of values. auto: the registered schema, or raw."),
    ):  # fmt: skip
        command = option(command)
    return place_options(command)


def condition_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --where and --explain."""
    for option in (
        click.option("--explain", is_flag=True, help="Also print to standard error what was fetched and skipped."),
        click.option("--where", metavar="CONDITION", help="A condition in SQL, such as '_offset >= 1000'."),
    ):
        function = option(function)
    return function


def query_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --select, --where and --explain."""
    help_text = "Columns or SQL expressions, such as 'id, upper(name) as name'."
    return condition_options(click.option("--select", metavar="EXPRESSIONS", help=help_text)(function))
