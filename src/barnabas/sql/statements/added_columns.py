"""ALTER TABLE … ADD COLUMN: the column, and the value that the rows which are there have in it.

Records stay as they are. The default is evaluated once, as Postgres does it, and the definition keeps its value: readers show it for each
record without the field. A record that statements write has every field, also one that is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas.errors import BarnabasError
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.dialect import WRITTEN, parse, parse_expression, statement_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.statements.alter_columns import free_field
from barnabas.sql.statements.columns import column_of
from barnabas.sql.statements.constraints import take_constraints, with_constraints
from barnabas.sql.statements.foreign_keys import take_references, with_references
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import cast_to
from barnabas.sql.states import DUPLICATE_COLUMN, NOT_NULL, not_supported
from barnabas.sql.writing.fitting import fitted, sized_columns
from barnabas.tables.column_types import mark_of
from barnabas.tables.json_encoding import text_of, values_of

PENDING = ""  # stands for the value of a default that is not evaluated yet; no JSON is empty
# Each row would have a value of its own.
_VOLATILE = (
    "clock_timestamp",
    "timeofday",
    "random",
    "uuid",
    "gen_random_uuid",
    "uuid_generate_v4",
    "rand",
    "statement_timestamp",
)
_AVRO = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string())  # whose defaults a schema has as they are


def with_column(session: Host, made: TableDefinition, item: Any) -> TableDefinition:
    """The definition with one more column. Raises SqlError."""
    references = take_references(exp.Schema(expressions=[item]))
    constraints = take_constraints(exp.Schema(expressions=[item]))
    column, is_primary, numbering = column_of(item, session.zone)
    if made.column(column.name) is not None:
        if item.args.get("exists"):
            return made
        raise SqlError(
            DUPLICATE_COLUMN, f'column "{column.name}" of relation "{made.name}" already exists', position=position_in(item)
        )
    refuse_numbers(column, item, numbering is not None)
    if is_primary:
        raise not_supported("a primary key cannot be added", position_in(item), "CREATE TABLE … PRIMARY KEY over the same topic")
    if not column.nullable and column.default is None:
        raise SqlError(
            NOT_NULL, f'column "{column.name}" of relation "{made.name}" contains null values', hint="give it a DEFAULT"
        )
    if made.format in ("text", "raw"):
        raise not_supported(f"a table of the format {made.format} has one column", position_in(item))
    if any(each.condition is None for each in constraints) and column.default is not None:
        hint = "ALTER TABLE … ADD CONSTRAINT in another statement looks at the rows that are there"
        raise not_supported("an added column with a default cannot be unique", position_in(item), hint)
    column = msgspec.structs.replace(
        column, added=True, stored=free_field(made, column.name), missing=None if column.default is None else PENDING
    )
    made = with_constraints(msgspec.structs.replace(made, columns=(*made.columns, column)), constraints)
    return with_references(session, made, references)


def refuse_numbers(column: ColumnDefinition, item: Any, is_numbered: bool) -> None:
    """Raises SqlError if the rows that are there would get numbers of a sequence: each would need one of its own."""
    if is_numbered or (column.default is not None and "nextval" in column.default.lower()):
        raise not_supported(
            "a sequence cannot number the rows that are there",
            position_in(item),
            "ADD COLUMN without DEFAULT, ALTER COLUMN … SET DEFAULT, and UPDATE the rows",
        )


def _new(before: TableDefinition, after: TableDefinition) -> list[ColumnDefinition]:
    """The added columns with a default."""
    return [each for each in _added(before, after) if each.missing == PENDING]


def _added(before: TableDefinition, after: TableDefinition) -> list[ColumnDefinition]:
    """The added columns: fields of records that none of the columns before has. One with another name keeps its field."""
    known = {each.stored or each.name for each in before.columns}
    return [each for each in after.columns if each.added and (each.stored or each.name) not in known]


def check_added(session: Host, before: TableDefinition, after: TableDefinition) -> None:
    """Raises SqlError if the rows that are there cannot have the default of an added column."""
    for each in _new(before, after):
        tree = parse(statement_of(f"SELECT {each.default}"))
        _, functions = session.routines.expanded(tree)
        names = [str(each.this).lower() for each in tree.find_all(exp.Anonymous)]
        names += [str(each.meta.get(WRITTEN) or each.key) for each in tree.find_all(exp.Func)]
        volatile = next((name for name in names if name in _VOLATILE), functions[0].name if functions else None)
        if volatile is not None:
            raise not_supported(
                f'the default of the added column "{each.name}" cannot call the function {volatile}',
                hint="ADD COLUMN without DEFAULT, ALTER COLUMN … SET DEFAULT, and UPDATE the rows",
            )
        if not _can_be_missing(after, each) and each.nullable:
            raise not_supported(
                f'rows of the format {after.format} cannot get the default of the added column "{each.name}"',
                hint="ADD COLUMN without DEFAULT, and ALTER COLUMN … SET DEFAULT: rows that are there have null",
            )


def _can_be_missing(definition: TableDefinition, column: ColumnDefinition) -> bool:
    """Whether readers can tell a record without the field, and know the value: a schema of the registry has it as the field's default."""
    if not definition.is_registered:
        return True
    return definition.format == "avro" and column.nullable and column.field.type in _AVRO and not mark_of(column.field)


def values_of_rows(session: Host, before: TableDefinition, after: TableDefinition, text: str) -> Mapping[str, str]:
    """The JSON of the values that the rows which are there get in added columns. Raises SqlError."""
    found: dict[str, str] = {}
    for each in _new(before, after):
        if not _can_be_missing(after, each):
            continue
        field = each.field.with_nullable(True)
        item = exp.alias_(cast_to(parse_expression(each.default or ""), field), each.name, quoted=True)
        made = collected(session, checked(session, exp.select(item, copy=False), text), (), text)
        schema = pa.schema([field])
        rows = fitted(pa.table([made.column(0).cast(field.type)], schema=schema), sized_columns(schema), schema)
        try:
            value = values_of(rows.column(0).combine_chunks(), field)[0]
        except BarnabasError as error:
            raise SqlError("22023", str(error)) from None
        if value is None and not each.nullable:
            raise SqlError(NOT_NULL, f'column "{each.name}" of relation "{after.name}" contains null values')
        if value is not None:
            found[each.name] = text_of(value).decode()
    return found


def with_values(after: TableDefinition, values: Mapping[str, str]) -> TableDefinition:
    """The definition with these values of added columns."""

    def made(column: ColumnDefinition) -> ColumnDefinition:
        return msgspec.structs.replace(column, missing=values.get(column.name)) if column.missing == PENDING else column

    return msgspec.structs.replace(after, columns=tuple(map(made, after.columns)))


def added_row(before: TableDefinition, after: TableDefinition) -> tuple[Sequence[str], pa.Table]:
    """The names of the added columns, and one row of the table as it was before them: null everywhere else."""
    from barnabas.tables.json_values import absent_value

    new = [each.name for each in _added(before, after)]
    cells = [pa.array([absent_value(each) if each.name in new else None], each.type) for each in after.schema]
    return new, pa.table(cells, schema=pa.schema([each.with_nullable(True) for each in after.schema]))
