"""The table that a statement writes to: its columns and defaults, and RETURNING."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.schemas.arrow.shapes import WORD
from barnabas.sql.catalog.definitions import ALWAYS, TableDefinition
from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import STREAM, parse_expression
from barnabas.sql.duck.enums import enum_of, labelled_type
from barnabas.sql.duck.types import duckdb_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.planning.user_types import data_type
from barnabas.sql.results import Done, Listing
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import DUPLICATE_COLUMN, GENERATED_ALWAYS, UNDEFINED_COLUMN, WRONG_OBJECT, not_supported
from barnabas.sql.views.dependents import kind_of
from barnabas.tables.column_types import JSON, UUID, mark_of


def target_of(session: Host, table: Any) -> TopicRelation:
    """The relation that a statement writes to. Raises SqlError."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise not_supported("only a table can be written to", position_in(table))
    if table.meta.get(STREAM):
        raise not_supported("a stream cannot be changed", position_in(table), "write the name of the table alone")
    relation = session.find([part.name for part in table.parts], position_in(table))
    if not isinstance(relation, TopicRelation):
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" cannot be written to', position=position_in(table))
    if relation.definition is not None:
        check_no_view(relation.definition, position_in(table))
    return relation


def check_no_view(definition: TableDefinition, position: int | None) -> None:
    """Raises SqlError 42809 for a view."""
    if definition.view is not None:
        text = f'cannot change {kind_of(definition)} "{definition.name}"'
        raise SqlError(WRONG_OBJECT, text, position=position, hint="write to the tables that it reads")


def keyed_target(session: Host, table: Any, word: str) -> TopicRelation:
    """A relation with a primary key. Raises SqlError."""
    relation = target_of(session, table)
    if relation.definition is not None and relation.definition.stream is not None:
        raise SqlError(
            "55000", f'cannot {word} stream "{relation.name}": its rows never change', position=position_in(table),
            hint="INSERT adds rows; CREATE TABLE … PRIMARY KEY makes a table whose rows change",
        )  # fmt: skip
    if not relation.is_keyed:
        raise SqlError(
            "55000",
            f'cannot {word} table "{relation.name}" because it is append-only and has no primary key',
            position=position_in(table),
            hint="CREATE TABLE … WITH (topic = …, append_only = false) declares a table over the same topic whose rows can be changed",
        )
    return relation


def column_named(relation: TopicRelation, identifier: Any) -> str:
    """The column that a name means, whatever its case. Raises SqlError 42703."""
    name = identifier.name
    names = relation.columns.names
    found = name if name in names else next((each for each in names if each.lower() == name.lower()), None)
    if found is None:
        raise SqlError(
            UNDEFINED_COLUMN, f'column "{name}" of relation "{relation.name}" does not exist', position=position_in(identifier)
        )
    return str(found)


def columns_named(relation: TopicRelation, identifiers: Sequence[Any]) -> list[str]:
    """Several of them, none twice. Raises SqlError."""
    found: list[str] = []
    for each in identifiers:
        name = column_named(relation, each)
        if name in found:
            raise SqlError(DUPLICATE_COLUMN, f'column "{name}" specified more than once', position=position_in(each))
        found.append(name)
    return found


def default_of(relation: TopicRelation, name: str) -> Any:
    """The expression of a column's default; NULL without one."""
    column = relation.definition.column(name) if relation.definition is not None else None
    if column is None or column.default is None:
        return exp.Null()
    return parse_expression(column.default)


def is_default(cell: Any) -> bool:
    """Whether an expression is the word DEFAULT."""
    if isinstance(cell, exp.Var):
        return cell.name.upper() == "DEFAULT"
    return isinstance(cell, exp.Column) and not cell.table and cell.name.upper() == "DEFAULT" and not cell.this.quoted


def cast_to(cell: Any, field: pa.Field[Any]) -> exp.Expression:
    """An expression as a value of a column; `uncast` undoes it. A parameter gets the type of the column, which clients are told."""
    mark, labels = mark_of(field), labelled_type(field)
    if labels is not None:
        cell = exp.Cast(this=cell, to=data_type(labels))
    if mark == JSON and isinstance(cell, exp.Parameter):
        cell = exp.cast(cell, (field.metadata or {}).get(WORD, JSON.encode()).decode())
    if mark == UUID:
        cell = exp.cast(cell, UUID, dialect="duckdb")  # of the texts of one UUID, columns have that in lower case
    return exp.cast(cell, duckdb_of(field.type), dialect="duckdb")


def uncast(cell: Any, field: pa.Field[Any]) -> Any:
    """The expression that `cast_to` took."""
    return cell.this.this if mark_of(field) == UUID or enum_of(field) is not None else cell.this


class Returning:
    """RETURNING of a statement: expressions over the rows that it wrote. Plain columns need no DuckDB.

    Args:
        clause: None without one.
        tag: of the statement, such as `INSERT 0 %d`.
    """

    def __init__(self, session: Host, relation: TopicRelation, clause: Any, alias: str, tag: str, text: str, given: Any) -> None:
        self._session, self._tag, self._text = session, tag, text
        self.plan: QueryPlan | None = None
        if clause is not None:
            for each in clause.find_all(exp.AggFunc):
                if not isinstance(each.parent, exp.Window) and each.find_ancestor(exp.Select) is None:
                    raise SqlError("42803", "aggregate functions are not allowed in RETURNING", position=position_in(each))
            source = MemoryRelation(alias, relation.columns)
            query = exp.select(*[each.copy() for each in clause.expressions], copy=False).from_(
                exp.table_(exp.to_identifier(alias, quoted=True))
            )
            self.plan = checked(session, query, text, given, {alias: source})
        self._alias = alias
        self._plain = self._plain_columns(relation, [] if clause is None else clause.expressions)

    def _plain_columns(self, relation: TopicRelation, items: Sequence[Any]) -> list[str] | None:
        """The columns of the rows that the outputs are; None if one is an expression."""
        found: list[str] = []
        for item in items:
            column = item.unalias()
            if isinstance(column, exp.Star) and not column.args.get("except_") and not column.args.get("replace"):
                found += relation.columns.names
            elif isinstance(column, exp.Column) and column.table.lower() in ("", self._alias.lower()):
                name = column.name.lower()
                found += [each for each in relation.columns.names if each.lower() == name]
            else:
                return None
        types = [relation.columns.field(name).type for name in found]
        return found if self.plan is not None and types == self.plan.schema.types else None

    @property
    def lasts(self) -> bool:
        """Whether it depends on the table alone."""
        return self.plan is None or self._plain is not None

    @property
    def schema(self) -> pa.Schema | None:
        """Of the rows; None without RETURNING."""
        return self.plan.schema if self.plan is not None else None

    def result(self, rows: pa.Table, values: Sequence[Any], count: int | None = None) -> Result:
        """The outcome of a statement that wrote these rows."""
        tag = self._tag % (rows.num_rows if count is None else count)
        if self.plan is None:
            return Done(tag)
        if self._plain is not None:
            columns = [rows.column(name) for name in self._plain]
            return Listing(tag, self.plan.schema, pa.Table.from_arrays(columns, schema=self.plan.schema))
        found = collected(self._session, self.plan, values, self._text, {self._alias: rows})
        return Listing(tag, found.schema, found)


def together(*plans: QueryPlan | None) -> list[pa.DataType]:
    """The types of the parameters of a statement that has several plans."""
    known = [plan for plan in plans if plan is not None]
    count = max((len(plan.parameters) for plan in known), default=0)
    types = []
    for number in range(count):
        told = [plan.parameters[number] for plan in known if number < len(plan.parameters)]
        types.append(next((each for each in told if not pa.types.is_null(each)), pa.null()))
    return types


def assignments(relation: TopicRelation, items: Sequence[Any], *, keys_change: bool = False) -> dict[str, Any]:
    """The columns of SET with their expressions. Raises SqlError.

    Args:
        keys_change: whether columns of the primary key may be among them.
    """
    found: dict[str, Any] = {}
    for item in items:
        if not isinstance(item, exp.EQ):
            raise not_supported("this form of SET is not supported", position_in(item), "SET column = value, …")
        pairs = [(item.this, item.expression)]
        if isinstance(item.this, exp.Tuple):
            values = _values_of(item.expression)
            if len(values) != len(item.this.expressions):
                raise not_supported("SET (…) = needs as many values in parentheses", position_in(item))
            pairs = list(zip(item.this.expressions, values, strict=True))
        for column, value in pairs:
            name = column_named(relation, column)
            if name in found:
                raise SqlError("42601", f'multiple assignments to same column "{name}"', position=position_in(column))
            if name in relation.keys and not keys_change:
                raise not_supported(
                    f'the column "{name}" of the primary key cannot be changed',
                    position_in(column),
                    "DELETE the row and INSERT another",
                )
            known = relation.definition.column(name) if relation.definition is not None else None
            if known is not None and (known.identity == ALWAYS or known.generated is not None) and not is_default(value):
                kind = "a generated column" if known.generated is not None else "an identity column defined as GENERATED ALWAYS"
                raise SqlError(
                    GENERATED_ALWAYS, f'column "{name}" can only be updated to DEFAULT', position=position_in(column),
                    detail=f'Column "{name}" is {kind}.',
                )  # fmt: skip
            found[name] = default_of(relation, name) if is_default(value) else value
    return found


def _values_of(source: Any) -> list[Any]:
    """The values of several columns: of a row, or of a query, which is asked once for each of its columns."""
    match source:
        case exp.Tuple():
            return list(source.expressions)
        case exp.Anonymous() if str(source.this).lower() == "row":
            return list(source.expressions)
        case exp.Subquery() if isinstance(source.this, exp.Select) and not source.this.is_star:
            made = []
            for item in source.this.expressions:
                one = source.copy()
                one.this.set("expressions", [item.copy()])
                made.append(one)
            return made
    return []


def with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns and types of a relation."""
    return pa.table([rows.column(each.name).cast(each.type) for each in schema], schema=schema)


def last_of_each(rows: pa.Table, keys: Sequence[bytes]) -> pa.Table:
    """The last row of each key."""
    places = {key: place for place, key in enumerate(keys)}
    return rows if len(places) == len(keys) else rows.take(pa.array(sorted(places.values()), pa.int64()))


def first_of_each(rows: pa.Table, keys: Sequence[bytes]) -> pa.Table:
    """The first row of each key."""
    places: Mapping[bytes, int] = {key: place for place, key in reversed(list(enumerate(keys)))}
    return rows if len(places) == len(keys) else rows.take(pa.array(sorted(places.values()), pa.int64()))
