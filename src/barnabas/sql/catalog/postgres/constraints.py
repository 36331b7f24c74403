"""The rows of the catalogue about constraints and the indexes that belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from barnabas.sql.catalog.constraints import ForeignKeyDefinition
from barnabas.sql.catalog.names import shown_name
from barnabas.sql.catalog.postgres.contents import (
    BTREE,
    CLASS,
    CLASS_ROW,
    CONSTRAINT,
    Described,
    Facts,
    Make,
    Row,
    attribute,
    descriptions,
    number_of,
)

_ENFORCED: Row = {"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}


class Index(Struct, frozen=True):
    """The index of a primary key, of UNIQUE, or of CREATE INDEX.

    Args:
        text: of its constraint; empty if it has none.
        orders: of its columns, as `pg_index.indoption` has them; empty: all are ascending.
    """

    table: Described
    name: str
    columns: Sequence[str]
    text: str
    is_primary: bool = False
    is_nullable: bool = True
    is_unique: bool = True
    orders: Sequence[int] = ()

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
        listed = ", ".join(
            shown_name(name) + _ORDERS[order]
            for name, order in zip(self.columns, self.orders or (0,) * len(self.columns), strict=True)
        )
        word = "UNIQUE INDEX" if self.is_unique else "INDEX"
        return f"CREATE {word} {shown_name(self.name)} ON {named} USING btree ({listed}){nulls}"


_ORDERS = ("", " DESC NULLS LAST", " NULLS FIRST", " DESC")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown_name, names))


def indexes_of(each: Described) -> list[Index]:
    """The indexes of a table."""
    found = []
    if each.keys:
        named = each.definition.key_constraint if each.definition is not None else ""
        found.append(Index(each, named or f"{each.shown}_pkey", each.keys, f"PRIMARY KEY ({_listed(each.keys)})", True))
    for unique in each.definition.unique if each.definition is not None else ():
        text = "" if unique.is_index else unique.text
        is_nullable = unique.is_nullable or unique.is_primary  # NULLS NOT DISTINCT is not said of a key
        found.append(Index(each, unique.name, unique.columns, text, unique.is_primary, is_nullable=is_nullable))
    plain = each.definition.plain_indexes if each.definition is not None else ()
    return [*found, *(Index(each, one.name, one.columns, "", is_unique=False, orders=one.orders) for one in plain)]


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
            "indexrelid": each.oid, "indrelid": each.table.oid, "indnatts": count, "indnkeyatts": count, "indisunique": each.is_unique,
            "indnullsnotdistinct": not each.is_nullable, "indisprimary": each.is_primary, "indisexclusion": False, "indimmediate": True,
            "indisclustered": False, "indisvalid": True, "indcheckxmin": False, "indisready": True, "indislive": True,
            "indisreplident": False, "indkey": each.places, "indcollation": [0] * count, "indclass": [0] * count,
            "indoption": list(each.orders) or [0] * count,
        }  # fmt: skip


def _index_texts(facts: Facts) -> Iterable[Row]:
    for each in _all(facts):
        yield {
            "schemaname": each.table.schema, "tablename": each.table.shown, "indexname": each.name, "indexdef": each.statement,
        }  # fmt: skip


class Foreign(Struct, frozen=True):
    """The key that a foreign key refers to.

    Args:
        index: of the key that it refers to.
    """

    definition: ForeignKeyDefinition
    table: Described
    index: Index | None

    @property
    def row(self) -> Row:
        """Its part of a row of pg_constraint."""
        key, names = self.definition, self.table.columns.names
        return {
            "confrelid": self.table.oid, "conindid": 0 if self.index is None else self.index.oid, "connoinherit": True,
            "confupdtype": _ACTIONS[key.on_update], "confdeltype": _ACTIONS[key.on_delete], "confmatchtype": "f" if key.is_full else "s",
            "confkey": [names.index(name) + 1 for name in key.referenced if name in names], "condeferrable": key.is_deferrable,
            "condeferred": key.is_deferred,
        }  # fmt: skip

    @property
    def text(self) -> str:
        """`pg_get_constraintdef`."""
        table, key = self.table, self.definition
        named = shown_name(table.shown) if table.schema == "public" else f"{shown_name(table.schema)}.{shown_name(table.shown)}"
        return key.text(named) + ("" if key.is_valid else " NOT VALID")


_ACTIONS = {"NO ACTION": "a", "RESTRICT": "r", "CASCADE": "c", "SET NULL": "n", "SET DEFAULT": "d"}


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
    foreign: Foreign | None = None

    @property
    def oid(self) -> int:
        return number_of(f"{self.table.name} {self.name} constraint")


def _constraints_of(each: Described, tables: Mapping[str, Described]) -> Iterable[_Constraint]:
    for index in indexes_of(each):
        if index.text:
            yield _Constraint(each, index.name, "p" if index.is_primary else "u", index.columns, index.text, index.oid)
    for check in each.definition.checks if each.definition is not None else ():
        text = f"CHECK (({check.condition})){'' if check.is_valid else ' NOT VALID'}"
        yield _Constraint(
            each, check.name, "c", check.columns, text, is_valid=check.is_valid, condition=f"({check.condition})"
        )  # fmt: skip
    for key in each.definition.foreign_keys if each.definition is not None else ():
        other = tables.get(key.table)
        if other is not None:
            found = next((one for one in indexes_of(other) if one.is_unique and set(one.columns) == set(key.referenced)), None)
            made = Foreign(key, other, found)
            yield _Constraint(each, key.name, "f", key.columns, made.text, is_valid=key.is_valid, foreign=made)


def _every(facts: Facts) -> list[_Constraint]:
    tables = {each.name: each for each in facts.tables}
    return [found for each in facts.tables for found in _constraints_of(each, tables)]


def _comments(facts: Facts) -> Iterable[Row]:
    yield from descriptions(facts)
    found: list[tuple[_Constraint | Index, int]] = [(each, CONSTRAINT) for each in _every(facts)]
    there = {(each.table.name, each.name) for each, _ in found}
    for each, kind in [*found, *((index, CLASS) for index in _all(facts) if (index.table.name, index.name) not in there)]:
        text = each.table.definition.comments.get(each.name) if each.table.definition is not None else None
        if text is not None:
            yield {"objoid": each.oid, "classoid": kind, "objsubid": 0, "description": text}


def _constraints(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        yield {
            "oid": each.oid, "conname": each.name, "connamespace": each.table.namespace, "contype": each.kind, "condeferrable": False,
            "condeferred": False, "convalidated": each.is_valid, "conrelid": each.table.oid, "contypid": 0, "conindid": each.index,
            "conparentid": 0, "confrelid": 0, "confupdtype": " ", "confdeltype": " ", "confmatchtype": " ", "conislocal": True,
            "coninhcount": 0, "connoinherit": each.kind != "c",
            "conkey": [each.table.columns.names.index(name) + 1 for name in each.columns], "conbin": each.condition,
            **({} if each.foreign is None else each.foreign.row),
        }  # fmt: skip


def _texts(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        yield {"oid": each.oid, "definition": each.text}


def _named(facts: Facts, each: _Constraint) -> Row:
    return {"constraint_catalog": facts.database, "constraint_schema": each.table.schema, "constraint_name": each.name}


def _of_table(facts: Facts, table: Described) -> Row:
    return {"table_catalog": facts.database, "table_schema": table.schema, "table_name": table.shown}


_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY"}


def _table_constraints(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        row = {**_named(facts, each), **_of_table(facts, each.table), "constraint_type": _KINDS[each.kind], **_ENFORCED}
        if each.foreign is not None:
            key = each.foreign.definition
            row |= {"enforced": "NO", "is_deferrable": _yes(key.is_deferrable), "initially_deferred": _yes(key.is_deferred)}
        yield row


def _yes(is_so: bool) -> str:
    return "YES" if is_so else "NO"


def _key_columns(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        for place, name in enumerate(each.columns if each.kind != "c" else (), 1):
            foreign = each.foreign
            position = None
            if foreign is not None and foreign.index is not None:
                position = list(foreign.index.columns).index(foreign.definition.referenced[place - 1]) + 1
            yield {
                **_named(facts, each), **_of_table(facts, each.table), "column_name": name, "ordinal_position": place,
                "position_in_unique_constraint": position,
            }  # fmt: skip


def _references(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        if each.foreign is not None:
            key, index = each.foreign.definition, each.foreign.index
            yield {
                **_named(facts, each), "unique_constraint_catalog": facts.database,
                "unique_constraint_schema": each.foreign.table.schema, "unique_constraint_name": None if index is None else index.name,
                "match_option": "FULL" if key.is_full else "NONE", "update_rule": key.on_update, "delete_rule": key.on_delete,
            }  # fmt: skip


def _column_usage(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        foreign = each.foreign
        for name in each.columns if foreign is None else foreign.definition.referenced:
            table = each.table if foreign is None else foreign.table
            yield {**_named(facts, each), **_of_table(facts, table), "column_name": name}


def _conditions(facts: Facts) -> Iterable[Row]:
    for each in _every(facts):
        if each.condition is not None:
            yield {**_named(facts, each), "check_clause": each.condition}


MAKERS: Mapping[str, Make] = {
    "pg_index": _indexes,
    "pg_indexes": _index_texts,
    "pg_constraint": _constraints,
    "pg_description": _comments,
    "barnabas_constraints": _texts,
}
OF_INFORMATION: Mapping[str, Make] = {
    "table_constraints": _table_constraints,
    "key_column_usage": _key_columns,
    "referential_constraints": _references,
    "constraint_column_usage": _column_usage,
    "check_constraints": _conditions,
}
