"""The rows of information_schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from barnabas.sql.catalog.definitions import ColumnDefinition
from barnabas.sql.catalog.postgres.contents import Described, Facts, Make, Row
from barnabas.sql.catalog.postgres.expressions import default_text, generated_text
from barnabas.sql.catalog.postgres.numbered import identity_of
from barnabas.sql.catalog.postgres.shapes import shapes
from barnabas.sql.catalog.postgres.types import TYPES, modifier_of, oid_of, shown
from barnabas.sql.duck.enums import enum_of
from barnabas.sql.duck.types import HEADER_BYTES, UNBOUND


def _schemata(facts: Facts) -> Iterable[Row]:
    for name in ("public", *facts.schemas, "information_schema", "pg_catalog"):
        yield {"catalog_name": facts.database, "schema_name": name, "schema_owner": facts.user}


def _tables(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        is_table = each.kind == "r"
        kind = "BASE TABLE" if is_table else "MATERIALIZED VIEW" if each.kind == "m" else "VIEW"
        yield {**_of(facts, each), "table_type": kind, "is_insertable_into": "YES" if is_table else "NO", "is_typed": "NO"}
    for schema, name in shapes():
        yield {
            "table_catalog": facts.database, "table_schema": schema, "table_name": name, "is_insertable_into": "NO", "is_typed": "NO",
            "table_type": "BASE TABLE" if schema == "pg_catalog" else "VIEW",
        }  # fmt: skip


def _of(facts: Facts, each: Described) -> Row:
    return {"table_catalog": facts.database, "table_schema": each.schema, "table_name": each.shown}


def _columns(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        for place, field in enumerate(each.columns, 1):
            column = each.definition.column(field.name) if each.definition is not None else None
            yield {
                **_of(facts, each), **_typed(facts, field), "ordinal_position": place, "dtd_identifier": str(place),
                "column_default": default_text(column) if column is not None else None, "is_updatable": "YES" if each.kind == "r" else "NO",
                **_generated(column),
                **(_identity(facts, each.name, column) if column is not None and column.identity else {}),
            }  # fmt: skip
    for (schema, name), columns in shapes().items():
        for place, field in enumerate(columns, 1):
            yield {
                "table_catalog": facts.database, "table_schema": schema, "table_name": name, **_typed(facts, field),
                "ordinal_position": place, "dtd_identifier": str(place), "is_updatable": "NO",
            }  # fmt: skip


def _generated(column: ColumnDefinition | None) -> Row:
    if column is None or column.generated is None:
        return {}
    return {"is_generated": "ALWAYS", "generation_expression": generated_text(column), "column_default": None}


def _identity(facts: Facts, table: str, column: ColumnDefinition) -> Row:
    row: Row = {
        "column_default": None, "is_identity": "YES", "identity_generation": "ALWAYS" if column.identity == "a" else "BY DEFAULT",
    }  # fmt: skip
    found = identity_of(facts, table, column.name)
    if found is not None:
        row |= {"identity_start": str(found.start), "identity_increment": str(found.increment)}
        row |= {"identity_minimum": str(found.minimum), "identity_maximum": str(found.maximum)}
        row |= {"identity_cycle": "YES" if found.cycle else "NO"}
    return row


_WIDTHS = {21: 16, 23: 32, 20: 64, 700: 24, 701: 53}


def _typed(facts: Facts, field: pa.Field[Any]) -> Row:
    oid = oid_of(field)
    kind: Any = field.type
    is_list = pa.types.is_list(kind)
    name = next((each.name for each in TYPES if each.oid == oid), None)
    row: Row = {
        "column_name": field.name, "is_nullable": "YES" if field.nullable else "NO", "data_type": "ARRAY" if is_list else shown(oid),
        "udt_catalog": facts.database, "udt_schema": "pg_catalog", "udt_name": name, "is_self_referencing": "NO", "is_identity": "NO",
        "identity_cycle": "NO", "is_generated": "NEVER",
    }  # fmt: skip
    labels = enum_of(field)
    if labels is not None:
        kind_of = {} if is_list else {"data_type": "USER-DEFINED"}
        return row | kind_of | {"udt_schema": labels.schema, "udt_name": "_" * is_list + labels.plain_name}
    if is_list:
        row["udt_name"] = next((f"_{each.name}" for each in TYPES if each.array == oid), "_text")
    if oid in _WIDTHS:
        row |= {"numeric_precision": _WIDTHS[oid], "numeric_precision_radix": 2}
        row |= {"numeric_scale": 0} if oid not in (700, 701) else {}
    elif pa.types.is_decimal(kind):
        row |= {"numeric_precision_radix": 10}
        row |= {"numeric_precision": kind.precision, "numeric_scale": kind.scale} if kind not in UNBOUND else {}
    elif pa.types.is_temporal(kind) and not pa.types.is_date(kind):
        row["datetime_precision"] = modifier_of(field) if modifier_of(field) >= 0 else 6
    elif oid == 1082:
        row["datetime_precision"] = 0
    return row | _length(field, oid)


MAX_OCTETS = 1 << 30  # of a text without a length, as Postgres has it
_OCTETS = 4  # of a character at most


def _length(field: pa.Field[Any], oid: int) -> Row:
    if oid not in (25, 1042, 1043):
        return {}
    modifier = modifier_of(field)
    if modifier < 0:
        return {"character_octet_length": MAX_OCTETS}
    return {"character_maximum_length": modifier - HEADER_BYTES, "character_octet_length": (modifier - HEADER_BYTES) * _OCTETS}


def _views(facts: Facts) -> Iterable[Row]:
    no = ("is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into")
    for each in facts.tables:
        if each.kind == "v":
            yield {**_of(facts, each), "view_definition": each.query, "check_option": "NONE", **dict.fromkeys(no, "NO")}


def _privileges(facts: Facts) -> Iterable[Row]:
    for each in facts.tables:
        for privilege in ("INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE"):
            yield {
                **_of(facts, each), "grantor": facts.user, "grantee": facts.user, "privilege_type": privilege, "is_grantable": "NO",
                "with_hierarchy": "NO",
            }  # fmt: skip


MAKERS: Mapping[str, Make] = {
    "schemata": _schemata,
    "tables": _tables,
    "columns": _columns,
    "views": _views,
    "table_privileges": _privileges,
    "role_table_grants": _privileges,
    "enabled_roles": lambda facts: [{"role_name": facts.user}],
    "information_schema_catalog_name": lambda facts: [{"catalog_name": facts.database}],
}
