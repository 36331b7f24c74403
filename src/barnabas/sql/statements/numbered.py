"""Columns that a sequence numbers: `serial`, identity columns, and those with `DEFAULT nextval('s')`.

Their numbers are taken when the rows of a statement are known, in the order of the rows, and not by DuckDB.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.sql.catalog.access import TEMPORARY
from barnabas.sql.catalog.definitions import ALWAYS, TableDefinition
from barnabas.sql.catalog.sequence_store import Sequences
from barnabas.sql.catalog.sequences import Sequence as Numbered
from barnabas.sql.catalog.sequences import default_text
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.duck.types import postgres_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.sequences import name_in
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.sequence_options import SequenceOptions, new_sequence
from barnabas.sql.statements.target import default_of, is_default
from barnabas.sql.states import GENERATED_ALWAYS, OUT_OF_RANGE, not_supported


class Numbering(NamedTuple):
    """A column of a CREATE TABLE that gets a sequence of its own.

    Args:
        identity: ALWAYS, BY_DEFAULT, or empty for a serial column.
    """

    kind: str
    identity: str = ""
    options: SequenceOptions = SequenceOptions()


def with_sequences(session: Host, definition: TableDefinition, numbered: Mapping[str, Numbering]) -> TableDefinition:
    """Make the sequences of a table; returns its definition with the defaults. Raises SqlError.

    A sequence that a table of this name has left behind is made again.
    """
    defaults: dict[str, str] = {}

    def decide(sequences: Sequences) -> Sequences:
        session.definitions.refresh(session.running, max_age_s=0)
        tables = session.definitions.tables
        if definition.name in tables:
            raise SqlError("42P07", f'relation "{definition.name}" already exists')
        made: dict[str, Numbered] = {}
        defaults.clear()
        for column, each in numbered.items():
            name = _free_name(session, definition.name, column, each.options.name, {*tables, *made}, sequences)
            made[name] = msgspec.structs.replace(
                new_sequence(name, each.options, each.kind), table=definition.name, column=column, identity=bool(each.identity)
            )
            defaults[column] = default_text(name)
        return made

    session.sequences.change(session.client, session.running, decide)
    columns = tuple(
        msgspec.structs.replace(each, default=defaults[each.name], identity=numbered[each.name].identity)
        if each.name in defaults
        else each
        for each in definition.columns
    )
    return msgspec.structs.replace(definition, columns=columns)


def _free_name(
    session: Host, table: str, column: str, wanted: str | None, used: Container[str], sequences: Sequences
) -> str:  # fmt: skip
    """The name of a sequence. Raises SqlError 42P07."""
    if table.startswith(TEMPORARY):
        return session.temporary_name(wanted or f"{table.partition('.')[2]}_{column}_seq")
    base = wanted or f"{table[: limits.MAX_SQL_NAME - 80]}_{column[:60]}_seq"
    for number in range(limits.MAX_SQL_SEQUENCES):
        name = base if not number else f"{base}{number}"
        found = sequences.get(name)
        if name not in used and (found is None or found.table == table):
            return name
        if wanted is not None:
            break
    raise SqlError("42P07", f'relation "{base}" already exists')


def sequence_of(relation: TopicRelation, name: str) -> str | None:
    """The text of the name of the sequence that numbers a column by default."""
    return name_in(default_of(relation, name))


class Defaults:
    """The sequences of columns that a statement gives no value.

    Args:
        names: of these columns.
    """

    def __init__(self, session: Host, relation: TopicRelation, names: Iterable[str]) -> None:
        self._session, self._relation = session, relation
        found = ((name, sequence_of(relation, name)) for name in names)
        self._sequences = {name: text for name, text in found if text is not None}

    def value_of(self, name: str) -> Any:
        """The expression of a column's default, as a query has it: NULL where `filled` puts numbers."""
        return exp.Null() if name in self._sequences else default_of(self._relation, name)

    def filled(self, rows: pa.Table) -> pa.Table:
        """The rows with numbers. Raises SqlError, ClientError, KafkaError."""
        for name, text in self._sequences.items():
            place = rows.schema.get_field_index(name)
            field = rows.schema.field(place)
            column = column_of_numbers(numbers_of(self._session, self._relation, text, rows.num_rows), field)
            rows = rows.set_column(place, field, column)
        return rows


def numbers_of(session: Host, relation: TopicRelation, text: str, count: int) -> list[int]:
    """Numbers for rows of a relation. Raises SqlError, ClientError, KafkaError."""
    return [number for part in session.numbers.ranges(text, count, relation.name) for number in part]


def column_of_numbers(numbers: Sequence[int | None], field: pa.Field[Any]) -> pa.Array[Any]:
    """Numbers as a column. Raises SqlError 22003."""
    try:
        if pa.types.is_integer(field.type):
            return pa.array(numbers, field.type)
        return pa.array(numbers, pa.int64()).cast(field.type)
    except (pa.ArrowInvalid, OverflowError):
        raise SqlError(OUT_OF_RANGE, f"{postgres_of(field.type)} out of range") from None


_KINDS = {True: "an identity column defined as GENERATED ALWAYS", False: "a generated column"}


def check_generated(relation: TopicRelation, names: Sequence[str], source: Any) -> None:
    """Raises SqlError 428C9 if an INSERT gives a value to a column that is always generated."""
    definition = relation.definition
    for place, name in enumerate(names) if source is not None and definition is not None else ():
        column = definition.column(name) if definition is not None else None
        if column is None or (column.identity != ALWAYS and column.generated is None):
            continue
        rows = source.expressions if isinstance(source, exp.Values) else None
        given = _cells(rows, place) if rows is not None else [source] if place < len(source.named_selects) else []
        if any(not is_default(each) for each in given):
            raise SqlError(
                GENERATED_ALWAYS, f'cannot insert a non-DEFAULT value into column "{name}"', position=position_in(source),
                detail=f'Column "{name}" is {_KINDS[column.generated is None]}.',
                hint="Use OVERRIDING SYSTEM VALUE to override." if column.generated is None else None,
            )  # fmt: skip


def let_generate(relation: TopicRelation, names: Sequence[str], source: Any) -> None:
    """OVERRIDING USER VALUE: DEFAULT takes the place of the values of identity columns; the tree is changed. Raises SqlError."""
    definition = relation.definition
    if not isinstance(source, exp.Values):
        raise not_supported("OVERRIDING USER VALUE of a query is not supported", position_in(source), "leave the column out")
    for place, name in enumerate(names) if definition is not None else ():
        column = definition.column(name) if definition is not None else None
        if column is not None and column.identity:
            for cell in _cells(source.expressions, place):
                cell.replace(exp.Var(this="DEFAULT"))


def _cells(rows: Sequence[Any], place: int) -> list[Any]:
    cells = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in rows]
    return [row[place] for row in cells if place < len(row)]
