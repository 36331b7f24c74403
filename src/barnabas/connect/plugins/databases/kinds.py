"""Connects to a database of any kind."""

from __future__ import annotations

from importlib import import_module

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.databases.address import Address
from barnabas.connect.plugins.databases.database import Database

KINDS = {
    "postgresql": ("postgres", "Postgres", "psycopg"),
    "mysql": ("mysql", "Mysql", "pymysql"),
    "sqlite": ("sqlite", "Sqlite", ""),
    "duckdb": ("duckdb", "Duckdb", "duckdb"),
}


def connected(address: Address, *, quotes: bool = True) -> Database:
    """An open connection. Raises ConnectError: the database cannot be reached, or its library is missing."""
    module, cls, library = KINDS[address.kind]
    try:
        found = import_module(f"barnabas.connect.plugins.databases.{module}")
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ConnectError(f"{address.kind} needs the package {library}: pip install 'barnabas[connect]'") from None
    made: Database = getattr(found, cls)(address, quotes=quotes)
    return made
