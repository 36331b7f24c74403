"""The rows of the catalogue's tables, from the tables that a session can name.

Numbers of objects are made of names, so that they are the same in every session and on every server. Tables without rows here (triggers,
rules, policies, …) are empty.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.functions.definition import Function
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.postgres.expressions import default_text, generated_text
from barnabas.sql.catalog.postgres.shapes import shapes
from barnabas.sql.catalog.postgres.types import TYPES, modifier_of, oid_of, type_words
from barnabas.sql.catalog.sequences import Sequence as Numbered
from barnabas.sql.duck.enums import ENUM_BYTES, EnumDefinition, enum_of

OWNER, DATABASE, SPACE = 10, 5, 1663  # numbers of the user, the database and the tablespace
PUBLIC, SYSTEM, INFORMATION = 2200, 11, 13000  # of the schemas
HEAP, BTREE = 2, 403  # of the access methods
CLASS, CONSTRAINT = 1259, 2606  # of pg_class and pg_constraint themselves, in pg_description
FIRST_OID = 16_384  # of an object of a user
Row = dict[str, Any]


class Described(Struct, frozen=True):
    """A table as the catalogue shows it."""

    name: str
    columns: pa.Schema
    definition: TableDefinition | None = None
    schema: str = "public"

    @property
    def shown(self) -> str:
        """The name without the schema."""
        return self.name if self.schema == "public" else self.name.removeprefix(f"{self.schema}.")

    @property
    def namespace(self) -> int:
        """The number of the schema."""
        return namespace_of(self.schema)

    @property
    def oid(self) -> int:
        return number_of(self.name)

    @property
    def kind(self) -> str:
        """A letter, as `pg_class.relkind` has it."""
        view = self.definition.view if self.definition is not None else None
        return "r" if view is None else "m" if view.is_materialized else "v"

    @property
    def query(self) -> str:
        """Of a view; empty for a table."""
        view = self.definition.view if self.definition is not None else None
        return "" if view is None else f" {view.query};"

    @property
    def keys(self) -> Sequence[str]:
        """The columns of the primary key; none if some of them are hidden or may be null, as in a view."""
        keys = self.definition.key if self.definition is not None and self.definition.is_keyed else ()
        return keys if all(name in self.columns.names and not self.columns.field(name).nullable for name in keys) else ()

    @property
    def has_index(self) -> bool:
        """Whether an index belongs to it."""
        return bool(self.keys or (self.definition is not None and (self.definition.unique or self.definition.plain_indexes)))


class Facts(Struct, frozen=True):
    """The facts that the rows are made of."""

    user: str
    database: str
    settings: Sequence[tuple[str, str]]
    tables: Sequence[Described]
    sequences: Sequence[Numbered] = ()
    functions: Sequence[Function] = ()
    schemas: Sequence[str] = ()
    types: Sequence[EnumDefinition] = ()


Make = Callable[[Facts], Iterable[Row]]


def number_of(name: str) -> int:
    """The number of an object of a user."""
    return FIRST_OID + zlib.crc32(name.encode()) % (1 << 30)


def namespace_of(schema: str) -> int:
    """The number of a schema of users."""
    return PUBLIC if schema == "public" else number_of(f"{schema}.")


def rows_of(schema: str, name: str, facts: Facts, makers: Mapping[str, Make]) -> pa.Table:
    """The rows of a table of the catalogue."""
    shape = shapes()[schema, name]
    make = makers.get(f"{schema}.{name}")
    rows = list(make(facts)) if make is not None else []
    made = _table(shape, rows)
    return pa.concat_tables([made, _system_attributes()]) if (schema, name) == ("pg_catalog", "pg_attribute") else made


def _table(shape: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    return pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in shape], schema=shape)


def _namespaces(facts: Facts) -> Iterable[Row]:
    own = ((number_of(f"{each}."), each) for each in facts.schemas)
    for oid, name in ((SYSTEM, "pg_catalog"), (INFORMATION, "information_schema"), (PUBLIC, "public"), *own):
        yield {"oid": oid, "nspname": name, "nspowner": OWNER}


CLASS_ROW: Row = {
    "relnamespace": PUBLIC, "reltype": 0, "reloftype": 0, "relowner": OWNER, "reltablespace": 0, "relpages": 0, "reltuples": -1.0,
    "relallvisible": 0, "reltoastrelid": 0, "relisshared": False, "relpersistence": "p", "relchecks": 0, "relhasrules": False,
    "relhastriggers": False, "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True,
    "relispartition": False, "relrewrite": 0, "relfrozenxid": 0, "relminmxid": 0, "relhasoids": False,
}  # fmt: skip


def _classes(facts: Facts) -> Iterable[Row]:
    keys = [
        (each.name, key.table) for each in facts.tables if each.definition is not None for key in each.definition.foreign_keys
    ]
    with_keys = {name for pair in keys for name in pair}
    for each in facts.tables:
        yield {
            **CLASS_ROW, "oid": each.oid, "relname": each.shown, "relam": HEAP, "relfilenode": each.oid, "relhasindex": each.has_index,
            "relnamespace": each.namespace, "relkind": each.kind, "relnatts": len(each.columns), "relreplident": "d",
            "relhasrules": each.kind == "v", "relhastriggers": each.name in with_keys,
            "relchecks": len(each.definition.checks) if each.definition is not None else 0,
        }  # fmt: skip
    for (schema, name), columns in shapes().items():
        yield {
            **CLASS_ROW, "oid": system_number(schema, name), "relname": name, "relam": HEAP, "relfilenode": 0, "relhasindex": False,
            "relkind": "v" if schema == "information_schema" else "r", "relnatts": len(columns), "relreplident": "n",
            "relnamespace": INFORMATION if schema == "information_schema" else SYSTEM,
        }  # fmt: skip


_SYSTEM_NUMBERS = {
    "pg_class": CLASS,
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_namespace": 2615,
    "pg_constraint": 2606,
    "pg_attrdef": 2604,
    "pg_index": 2610,
    "pg_rewrite": 2618,
    "pg_trigger": 2620,
    "pg_database": 1262,
}


def system_number(schema: str, name: str) -> int:
    """The number of a table of the catalogue."""
    if name in _SYSTEM_NUMBERS and schema == "pg_catalog":
        return _SYSTEM_NUMBERS[name]
    first, step = (INFORMATION + 1, 15) if schema == "information_schema" else (3_000, 45)
    return first + _places(schema)[name] * step


@cache
def _places(schema: str) -> dict[str, int]:
    return {name: place for place, name in enumerate(name for each, name in shapes() if each == schema)}


_ATTRIBUTE: Row = {
    "attcacheoff": -1, "attalign": "i", "attstorage": "p", "attcompression": "", "atthasmissing": False, "attidentity": "",
    "attgenerated": "", "attisdropped": False, "attislocal": True, "attinhcount": 0, "attstattarget": -1,
}  # fmt: skip


def attribute(oid: int, place: int, field: pa.Field[Any], *, not_null: bool, has_default: bool) -> Row:
    """The row of a column in pg_attribute."""
    kind = oid_of(field)
    size = next((each.size for each in TYPES if each.oid == kind), -1)
    if enum_of(field) is not None and not pa.types.is_list(field.type):
        size = ENUM_BYTES
    return {
        **_ATTRIBUTE, "attrelid": oid, "attname": field.name, "atttypid": kind, "attlen": size, "attnum": place,
        "atttypmod": modifier_of(field), "attndims": int(pa.types.is_list(field.type)), "attbyval": 0 < size <= 8,
        "attnotnull": not_null, "atthasdef": has_default, "attcollation": 100 if kind in (25, 1042, 1043) else 0,
        "attstorage": "p" if size > 0 else "m" if kind == 1700 else "x",
    }  # fmt: skip


def _attributes(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        for place, field in enumerate(each.columns, 1):
            column = each.definition.column(field.name) if each.definition is not None else None
            has_default = column is not None and column.has_default
            row = attribute(each.oid, place, field, not_null=not field.nullable, has_default=has_default)
            if column is not None:
                row |= {"attidentity": column.identity, "attgenerated": "" if column.generated is None else "s"}
                row |= {"atthasmissing": column.missing is not None}
            yield row


@cache
def _system_attributes() -> pa.Table:
    """The columns of the catalogue's own tables, which never change."""
    rows = [
        attribute(system_number(schema, name), place, field, not_null=False, has_default=False)
        for (schema, name), columns in shapes().items()
        for place, field in enumerate(columns, 1)
    ]
    return _table(shapes()["pg_catalog", "pg_attribute"], rows)


_TYPE: Row = {
    "typnamespace": SYSTEM, "typowner": OWNER, "typispreferred": False, "typisdefined": True, "typdelim": ",", "typrelid": 0,
    "typsubscript": "-", "typmodin": "-", "typmodout": "-", "typanalyze": "-", "typalign": "i", "typstorage": "x", "typnotnull": False,
    "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
}  # fmt: skip
_ARRAY: Row = {
    **_TYPE, "typlen": -1, "typbyval": False, "typtype": "b", "typcategory": "A", "typarray": 0, "typinput": "array_in",
    "typoutput": "array_out", "typreceive": "array_recv", "typsend": "array_send",
}  # fmt: skip


def _types_of_users(facts: Facts) -> Iterable[Row]:
    for each in facts.types:
        of_schema = {"typnamespace": namespace_of(each.schema)}
        yield {
            **_TYPE, **of_schema, "oid": each.oid, "typname": each.plain_name, "typlen": ENUM_BYTES, "typbyval": True, "typtype": "e",
            "typcategory": "E", "typelem": 0, "typarray": each.array, "typinput": "enum_in", "typoutput": "enum_out",
            "typreceive": "enum_recv", "typsend": "enum_send", "typstorage": "p",
        }  # fmt: skip
        yield {**_ARRAY, **of_schema, "oid": each.array, "typname": f"_{each.plain_name}", "typelem": each.oid}


def _labels(facts: Facts) -> Iterable[Row]:
    for each in facts.types:
        for place, label in enumerate(each.labels, 1):
            yield {
                "oid": number_of(f"{each.oid} {label}"), "enumtypid": each.oid, "enumsortorder": float(place), "enumlabel": label,
            }  # fmt: skip


def _types(facts: Facts) -> Iterable[Row]:
    yield from _types_of_users(facts)
    for each in TYPES:
        kind = "p" if each.category == "P" or each.name == "unknown" else "b"
        row = {
            **_TYPE, "typispreferred": each.name in ("text", "bool", "float8", "oid", "timestamptz"),
            "typstorage": "p" if each.size > 0 else "x", "typcollation": 100 if each.category == "S" else 0,
        }  # fmt: skip
        functions = {
            f"typ{long}": f"{each.name}{short}"
            for long, short in (("input", "in"), ("output", "out"), ("receive", "recv"), ("send", "send"))
        }
        yield {
            **row, **functions, "oid": each.oid, "typname": each.name, "typlen": each.size, "typbyval": 0 < each.size <= 8,
            "typtype": kind, "typcategory": each.category, "typelem": {22: 21, 30: 26}.get(each.oid, 0), "typarray": each.array,
        }  # fmt: skip
        if each.array:
            yield {
                **_ARRAY, "oid": each.array, "typname": f"_{each.name}", "typelem": each.oid, "typstorage": row["typstorage"],
                "typcollation": row["typcollation"],
            }  # fmt: skip


def _defaults(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        for place, column in enumerate(each.definition.columns if each.definition is not None else (), 1):
            text = default_text(column) or generated_text(column)
            if text is not None:
                yield {
                    "oid": number_of(f"{each.name}.{column.name} default"),
                    "adrelid": each.oid,
                    "adnum": place,
                    "adbin": text,
                }


def descriptions(facts: Facts) -> Iterable[Row]:
    """The comments on tables and columns."""
    for each in facts.tables:
        if each.definition is None:
            continue
        if each.definition.comment:
            yield {"objoid": each.oid, "classoid": CLASS, "objsubid": 0, "description": each.definition.comment}
        for place, column in enumerate(each.definition.columns, 1):
            if column.comment:
                yield {"objoid": each.oid, "classoid": CLASS, "objsubid": place, "description": column.comment}


def _databases(facts: Facts) -> Iterable[Row]:
    yield {
        "oid": DATABASE, "datname": facts.database, "datdba": OWNER, "encoding": 6, "datlocprovider": "c", "datistemplate": False,
        "datallowconn": True, "datconnlimit": -1, "datfrozenxid": 0, "datminmxid": 0, "dattablespace": SPACE, "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8",
    }  # fmt: skip


def _roles(facts: Facts) -> Iterable[Row]:
    yield {
        "rolname": facts.user, "rolsuper": False, "rolinherit": True, "rolcreaterole": False, "rolcreatedb": False, "rolcanlogin": True,
        "rolreplication": False, "rolconnlimit": -1, "rolpassword": "********", "rolbypassrls": False, "oid": OWNER,
    }  # fmt: skip


def _users(facts: Facts) -> Iterable[Row]:
    yield {
        "usename": facts.user, "usesysid": OWNER, "usecreatedb": False, "usesuper": False, "userepl": False, "usebypassrls": False,
        "passwd": "********",
    }  # fmt: skip


def _settings(facts: Facts) -> Iterable[Row]:
    for name, value in facts.settings:
        yield {
            "name": name, "setting": value, "category": "barnabas", "short_desc": "", "context": "user", "vartype": "string",
            "source": "default", "boot_val": value, "reset_val": value, "pending_restart": False,
        }  # fmt: skip


def _tables(facts: Facts) -> Iterable[Row]:
    plain = {"hasrules": False, "hastriggers": False, "rowsecurity": False, "tableowner": facts.user}
    for each in facts.tables:
        if each.kind == "r":
            yield {**plain, "schemaname": each.schema, "tablename": each.shown, "hasindexes": each.has_index}
    for schema, name in shapes():
        if schema == "pg_catalog":
            yield {**plain, "schemaname": schema, "tablename": name, "hasindexes": False}


def _views(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        if each.kind == "v":
            yield {"schemaname": each.schema, "viewname": each.shown, "viewowner": facts.user, "definition": each.query}


def _materialized_views(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        if each.kind == "m":
            yield {
                "schemaname": each.schema, "matviewname": each.shown, "matviewowner": facts.user, "hasindexes": each.has_index,
                "ispopulated": True, "definition": each.query,
            }  # fmt: skip


def _methods(_: Facts) -> Iterable[Row]:
    yield {"oid": HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield {"oid": BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"}


def _tablespaces(_: Facts) -> Iterable[Row]:
    yield {"oid": SPACE, "spcname": "pg_default", "spcowner": OWNER}


def _collations(_: Facts) -> Iterable[Row]:
    yield {
        "oid": 100, "collname": "default", "collnamespace": SYSTEM, "collowner": OWNER, "collprovider": "d", "collisdeterministic": True,
        "collencoding": -1,
    }  # fmt: skip


def _activity(facts: Facts) -> Iterable[Row]:
    yield {
        "datid": DATABASE,
        "datname": facts.database,
        "usesysid": OWNER,
        "usename": facts.user,
        "state": "active",
        "backend_type": "client backend",
    }


MAKERS: Mapping[str, Make] = dict(
    {
        "pg_namespace": _namespaces,
        "pg_class": _classes,
        "pg_attribute": _attributes,
        "pg_type": _types,
        "pg_enum": _labels,
        "pg_attrdef": _defaults,
        "pg_database": _databases,
        "pg_roles": _roles,
        "pg_authid": _roles,
        "pg_user": _users,
        "pg_settings": _settings,
        "pg_tables": _tables,
        "pg_views": _views,
        "pg_matviews": _materialized_views,
        "pg_am": _methods,
        "pg_tablespace": _tablespaces,
        "pg_collation": _collations,
        "pg_stat_activity": _activity,
    }.items()
)


def type_text(field: pa.Field[Any]) -> str:
    """A column's type, as `format_type` has it."""
    kind: Any = field.type
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    return type_words(field)
