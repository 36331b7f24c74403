"""The rows of the catalogue about constraints and the indexes that belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from barnabas.sql.catalog.names import shown_name
from barnabas.sql.catalog.postgres.contents import BTREE, CLASS_ROW, Described, Facts, Make, Row, attribute, number_of

_ENFORCED: Row = {"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}


class Index(Struct, frozen=True):
    """The index of a primary key, of UNIQUE, or of CREATE UNIQUE INDEX.

    Args:
        text: of its constraint; empty if it has none.
    """

    table: Described
    name: str
    columns: Sequence[str]
    text: str
    is_primary: bool = False
    is_nullable: bool = True

    @property
    def oid(self) -> int:
        return number_of(f"{self.table.schema}.{self.name} index")

    @property
    def places(self) -> list[int]:
        """Of its columns, from 1 on."""
        return [self.table.columns.names.index(name) + 1 for name in self.columns]

    @property
    def statement(self) -> str:
        """`pg_get_indexdef`."""
        named = f"{shown_name(self.table.schema)}.{shown_name(self.table.shown)}"
        nulls = "" if self.is_nullable else " NULLS NOT DISTINCT"
        return f"CREATE UNIQUE INDEX {shown_name(self.name)} ON {named} USING btree ({_listed(self.columns)}){nulls}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown_name, names))


def indexes_of(each: Described) -> list[Index]:
    """The indexes of a table."""
    found = []
    if each.keys:
        found.append(Index(each, f"{each.shown}_pkey", each.keys, f"PRIMARY KEY ({_listed(each.keys)})", True))
    for unique in each.definition.unique if each.definition is not None else ():
        text = "" if unique.is_index else unique.text
        is_nullable = unique.is_nullable or unique.is_primary  # NULLS NOT DISTINCT is not said of a key
        found.append(Index(each, unique.name, unique.columns, text, unique.is_primary, is_nullable=is_nullable))
    return found


def _all(facts: Facts) -> list[Index]:
    return [index for each in facts.tables for index in indexes_of(each)]


def classes(facts: Facts) -> Iterable[Row]:
    """The rows of indexes in pg_class."""
    for each in _all(facts):
        yield {
            **CLASS_ROW, "oid": each.oid, "relname": each.name, "relnamespace": each.table.namespace, "relam": BTREE,
            "relfilenode": each.oid, "relhasindex": False, "relkind": "i", "relnatts": len(each.columns), "relreplident": "n",
        }  # fmt: skip


def attributes(facts: Facts) -> Iterable[Row]:
    """Their columns."""
    for each in _all(facts):
        for place, name in enumerate(each.columns, 1):
            yield attribute(each.oid, place, each.table.columns.field(name), not_null=False, has_default=False)


def _indexes(facts: Facts) -> Iterable[Row]:
    for each in _all(facts):
        count = len(each.columns)
        yield {
            "indexrelid": each.oid, "indrelid": each.table.oid, "indnatts": count, "indnkeyatts": count, "indisunique": True,
            "indnullsnotdistinct": not each.is_nullable, "indisprimary": each.is_primary, "indisexclusion": False, "indimmediate": True,
            "indisclustered": False, "indisvalid": True, "indcheckxmin": False, "indisready": True, "indislive": True,
            "indisreplident": False, "indkey": each.places, "indcollation": [0] * count, "indclass": [0] * count,
            "indoption": [0] * count,
        }  # fmt: skip


def _index_texts(facts: Facts) -> Iterable[Row]:
    for each in _all(facts):
        yield {
            "schemaname": each.table.schema, "tablename": each.table.shown, "indexname": each.name, "indexdef": each.statement,
        }  # fmt: skip


class _Constraint(Struct, frozen=True):
    """Any constraint. `kind` is a letter, as `pg_constraint.contype` has it."""

    table: Described
    name: str
    kind: str
    columns: Sequence[str]
    text: str
    index: int = 0
    is_valid: bool = True
    condition: str | None = None

    @property
    def oid(self) -> int:
        return number_of(f"{self.table.name} {self.name} constraint")


def _constraints_of(each: Described) -> Iterable[_Constraint]:
    for index in indexes_of(each):
        if index.text:
            yield _Constraint(each, index.name, "p" if index.is_primary else "u", index.columns, index.text, index.oid)
    for check in each.definition.checks if each.definition is not None else ():
        text = f"CHECK (({check.condition})){'' if check.is_valid else ' NOT VALID'}"
        yield _Constraint(
            each, check.name, "c", check.columns, text, is_valid=check.is_valid, condition=f"({check.condition})"
        )  # fmt: skip


def _every(facts: Facts) -> list[_Constraint]:
    return [found for each in facts.tables for found in _constraints_of(each)]


def _constraints(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        yield {
            "oid": each.oid, "conname": each.name, "connamespace": each.table.namespace, "contype": each.kind, "condeferrable": False,
            "condeferred": False, "convalidated": each.is_valid, "conrelid": each.table.oid, "contypid": 0, "conindid": each.index,
            "conparentid": 0, "confrelid": 0, "confupdtype": " ", "confdeltype": " ", "confmatchtype": " ", "conislocal": True,
            "coninhcount": 0, "connoinherit": each.kind != "c",
            "conkey": [each.table.columns.names.index(name) + 1 for name in each.columns], "conbin": each.condition,
        }  # fmt: skip


def _texts(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        yield {"oid": each.oid, "definition": each.text}


def _named(facts: Facts, each: _Constraint) -> Row:
    return {"constraint_catalog": facts.database, "constraint_schema": each.table.schema, "constraint_name": each.name}


def _of_table(facts: Facts, each: _Constraint) -> Row:
    return {"table_catalog": facts.database, "table_schema": each.table.schema, "table_name": each.table.shown}


_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK"}


def _table_constraints(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        yield {**_named(facts, each), **_of_table(facts, each), "constraint_type": _KINDS[each.kind], **_ENFORCED}


def _key_columns(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        for place, name in enumerate(each.columns if each.kind != "c" else (), 1):
            yield {**_named(facts, each), **_of_table(facts, each), "column_name": name, "ordinal_position": place}


def _column_usage(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        for name in each.columns:
            yield {**_named(facts, each), **_of_table(facts, each), "column_name": name}


def _conditions(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        if each.condition is not None:
            yield {**_named(facts, each), "check_clause": each.condition}


MAKERS: Mapping[str, Make] = {
    "pg_index": _indexes,
    "pg_indexes": _index_texts,
    "pg_constraint": _constraints,
    "barnabas_constraints": _texts,
}
OF_INFORMATION: Mapping[str, Make] = {
    "table_constraints": _table_constraints,
    "key_column_usage": _key_columns,
    "constraint_column_usage": _column_usage,
    "check_constraints": _conditions,
}
