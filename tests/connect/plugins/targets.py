"""The databases that the tests of the SQL source and the SQL sink read and write."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from barnabas.connect.plugins.databases.address import address_of
from barnabas.connect.plugins.databases.kinds import connected
from barnabas.connect.plugins.databases.table_name import table_name


class Target:
    """A database that tests look at."""

    def __init__(self, url: str, user: str | None = None) -> None:
        self.url, self.user = url, user

    @property
    def config(self) -> dict[str, str]:
        return {"connection.url": self.url, **({} if self.user is None else {"connection.user": self.user})}

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        database = connected(address_of(self.url, self.user))
        try:
            found = list(database.run(statement))
            database.commit()
        finally:
            database.close()
        return found

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        with closing(connected(address_of(self.url, self.user))) as database:
            return database.columns(table_name(name)) is not None
