"""The shape of a captured table: its columns, their forms, its key and its topic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.table_columns import Filling, nothing_of
from barnabas.connect.plugins.postgres_capture.catalog import Catalog, Said
from barnabas.connect.plugins.postgres_capture.cells import Rows
from barnabas.connect.plugins.postgres_capture.defaults import filling_of
from barnabas.connect.plugins.postgres_capture.forms import Form, form_of
from barnabas.connect.plugins.postgres_capture.pgoutput import Relation
from barnabas.connect.plugins.postgres_capture.settings import Settings


class Shape(NamedTuple):
    """See the module.

    Args:
        relation: the table.
        forms: of its columns.
        key: the places of the columns of the primary key.
        shown: the places of the columns that events have.
        fillings: of its columns; without them only those of the key are required.
    """

    relation: Relation
    topic: str
    forms: tuple[Form, ...]
    key: tuple[int, ...]
    shown: tuple[int, ...]
    fillings: tuple[Filling, ...] = ()

    def columns(self, places: Sequence[int], rows: Rows) -> Any:
        """A struct of columns of rows; null where there is no row. Raises ConnectError for values without a form."""
        absent = rows.absent
        is_empty = bool(absent.all())
        fields, arrays = [], []
        for place in places:
            form, name = self.forms[place], self.relation.columns[place].name
            fields.append(self._filling(place).field(name, form.kind, form.name, form.parameters))
            arrays.append(pa.nulls(len(absent), form.kind) if is_empty else self._column(place, rows))
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(absent) if absent.any() else None)

    def _filling(self, place: int) -> Filling:
        found = self.fillings[place] if self.fillings else Filling()
        return found._replace(is_required=True) if place in self.key else found

    def _column(self, place: int, rows: Rows) -> Any:
        form = self.forms[place]
        try:
            found = form.convert(rows.texts(place, form.placeholder))
            return self._filling(place).filled(found, rows.absent, partial(_nothing, form))
        except (ConnectError, pa.ArrowException, ValueError) as error:
            relation = self.relation
            name = f"{relation.schema}.{relation.table}.{relation.columns[place].name}"
            raise ConnectError(f"the column {name} has a value that has no form: {error}") from None


def _nothing(form: Form) -> Any:
    return nothing_of(form.kind, form.name) if form.nothing is None else form.convert(pa.array([form.nothing]))


def shape_of(relation: Relation, catalog: Catalog, settings: Settings) -> Shape:
    """The shape of a table. Raises ConnectError."""
    table = f"{relation.schema}.{relation.table}"
    names = [each.name for each in relation.columns]
    kinds = catalog.types(relation.columns)
    forms = tuple(form_of(each, settings) for each in kinds)
    key = _key(relation, [names.index(name) for name in catalog.key(relation.oid) if name in names])
    shown = tuple(place for place, name in enumerate(names) if settings.takes_column(f"{table}.{name}"))
    said = catalog.said(relation.oid)
    fillings = tuple(
        filling_of(said.get(each.name, Said()), kind, form)
        for each, kind, form in zip(relation.columns, kinds, forms, strict=True)
    )  # fmt: skip
    return Shape(relation, settings.topic(relation.schema, relation.table), forms, key, shown, fillings)


def _key(relation: Relation, known: Sequence[int]) -> tuple[int, ...]:
    """The places of the key.

    The catalog knows the key of now, which other names may have been given since. With the default identity the relation has the columns
    of its key itself, but not their order.

    Args:
        known: those of the catalog.
    """
    flagged = [place for place, each in enumerate(relation.columns) if each.is_identity]
    is_own = relation.identity == "d" and bool(flagged) and set(flagged) != set(known)
    return tuple(flagged if is_own else known)
