"""The rows of the catalogue about sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.sql.catalog.definitions import parts_of_name
from barnabas.sql.catalog.postgres.contents import CLASS, CLASS_ROW, Facts, Make, Row, attribute, namespace_of, number_of
from barnabas.sql.catalog.postgres.types import oid_named
from barnabas.sql.catalog.sequence_relation import COLUMNS
from barnabas.sql.catalog.sequences import Sequence

ATTRDEF = 2604  # pg_attrdef itself, in pg_depend
_WIDTHS = {"smallint": 16, "integer": 32, "bigint": 64}


def classes(facts: Facts) -> Iterable[Row]:
    """Their rows in pg_class."""
    for each in facts.sequences:
        schema, shown = parts_of_name(each.name, facts.schemas)
        yield {
            **CLASS_ROW, "oid": number_of(each.name), "relname": shown, "relnamespace": namespace_of(schema), "relam": 0,
            "relfilenode": number_of(each.name), "relhasindex": False, "relkind": "S", "relnatts": len(COLUMNS), "relreplident": "n",
        }  # fmt: skip


def attributes(facts: Facts) -> Iterable[Row]:
    """Their columns."""
    for each in facts.sequences:
        for place, field in enumerate(COLUMNS, 1):
            yield attribute(number_of(each.name), place, field, not_null=True, has_default=False)


def _sequence(facts: Facts) -> Iterable[Row]:
    for each in facts.sequences:
        yield {
            "seqrelid": number_of(each.name), "seqtypid": oid_named(each.kind), "seqstart": each.start, "seqincrement": each.increment,
            "seqmax": each.maximum, "seqmin": each.minimum, "seqcache": each.cache, "seqcycle": each.cycle,
        }  # fmt: skip


def _sequences(facts: Facts) -> Iterable[Row]:
    for each in facts.sequences:
        schema, shown = parts_of_name(each.name, facts.schemas)
        yield {
            "schemaname": schema, "sequencename": shown, "sequenceowner": facts.user, "data_type": each.kind,
            "start_value": each.start, "min_value": each.minimum, "max_value": each.maximum, "increment_by": each.increment,
            "cycle": each.cycle, "cache_size": each.cache, "last_value": each.last if each.is_called else None,
        }  # fmt: skip


def _of_information(facts: Facts) -> Iterable[Row]:
    for each in facts.sequences:
        if each.identity:
            continue
        schema, shown = parts_of_name(each.name, facts.schemas)
        yield {
            "sequence_catalog": facts.database, "sequence_schema": schema, "sequence_name": shown, "data_type": each.kind,
            "numeric_precision": _WIDTHS[each.kind], "numeric_precision_radix": 2, "numeric_scale": 0, "start_value": str(each.start),
            "minimum_value": str(each.minimum), "maximum_value": str(each.maximum), "increment": str(each.increment),
            "cycle_option": "YES" if each.cycle else "NO",
        }  # fmt: skip


def _dependencies(facts: Facts) -> Iterable[Row]:
    """A sequence hangs on the column that owns it."""
    tables = {each.name: each for each in facts.tables}
    for each in facts.sequences:
        table = tables.get(each.table or "")
        if table is None or each.column not in table.columns.names:
            continue
        yield {
            "classid": CLASS, "objid": number_of(each.name), "objsubid": 0, "refclassid": CLASS, "refobjid": table.oid,
            "refobjsubid": table.columns.names.index(each.column) + 1, "deptype": "i" if each.identity else "a",
        }  # fmt: skip


def identity_of(facts: Facts, table: str, column: str) -> Sequence | None:
    """The sequence of an identity column."""
    return next((each for each in facts.sequences if each.identity and (each.table, each.column) == (table, column)), None)


MAKERS: Mapping[str, Make] = {"pg_sequence": _sequence, "pg_sequences": _sequences, "pg_depend": _dependencies}
OF_INFORMATION: Mapping[str, Make] = {"sequences": _of_information}
