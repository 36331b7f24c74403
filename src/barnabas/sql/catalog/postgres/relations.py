"""The catalogue's tables as relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from msgspec import Struct

from barnabas.sql.catalog.postgres import constraints, contents, information, numbered, routines
from barnabas.sql.catalog.postgres.contents import Facts
from barnabas.sql.catalog.postgres.shapes import shapes

SCHEMAS = ("pg_catalog", "information_schema")


def _together(*makers: contents.Make) -> contents.Make:
    return lambda facts: [row for make in makers for row in make(facts)]


_MAKERS = {
    **{
        f"pg_catalog.{name}": make
        for name, make in {**contents.MAKERS, **constraints.MAKERS, **numbered.MAKERS, **routines.MAKERS}.items()
    },
    **{
        f"information_schema.{name}": make
        for name, make in {
            **information.MAKERS,
            **constraints.OF_INFORMATION,
            **numbered.OF_INFORMATION,
            **routines.OF_INFORMATION,
        }.items()
    },
    "pg_catalog.pg_class": _together(contents.MAKERS["pg_class"], constraints.classes, numbered.classes),
    "pg_catalog.pg_attribute": _together(contents.MAKERS["pg_attribute"], constraints.attributes, numbered.attributes),
}


class CatalogueRelation(Struct, frozen=True):
    """A table of the catalogue; its rows are made when a statement runs."""

    name: str
    schema: str
    columns: pa.Schema
    facts: Callable[[], Facts]
    hidden: pa.Schema = pa.schema([])
    key_alias: str | None = None
    keys: tuple[str, ...] = ()
    filled: Mapping[str, str] = {}

    def rows(self) -> pa.Table:
        """The rows of this moment."""
        return contents.rows_of(self.schema, self.name, self.facts(), _MAKERS)


def is_of_catalogue(schema: str | None, name: str) -> bool:
    """Whether a name is that of a table of the catalogue; without a schema only of pg_catalog."""
    return ((schema or "pg_catalog").lower(), name.lower()) in shapes()


def catalogue(schema: str | None, name: str, facts: Callable[[], Facts]) -> CatalogueRelation | None:
    """A table of the catalogue by its name; without a schema only those of pg_catalog."""
    key = (schema or "pg_catalog").lower(), name.lower()
    found = shapes().get(key)
    return None if found is None else CatalogueRelation(key[1], key[0], found, facts)
