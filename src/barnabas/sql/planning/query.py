"""Plans a query: names become relations, and the tree becomes DuckDB's text.

Each name in FROM becomes a relation of its own in DuckDB, `__0`, `__1`, …, with the columns that `*` shows and the hidden ones that the
statement names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.functions.definition import PYTHON, Function
from barnabas.schemas.arrow.shapes import WORD
from barnabas.sql.catalog.postgres.contents import number_of
from barnabas.sql.catalog.postgres.functions import answer_catalogue
from barnabas.sql.catalog.postgres.relations import CatalogueRelation
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequences import parts_of_text
from barnabas.sql.catalog.topics import TopicRelation, as_stream
from barnabas.sql.dialect import STREAM, to_duckdb
from barnabas.sql.duck.enums import enum_of, labelled_type
from barnabas.sql.duck.types import KIND, sized_type
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.document_aggregates import read_document_aggregates
from barnabas.sql.planning.documents import plain_json_outputs, read_documents
from barnabas.sql.planning.enums import has_labels, read_enums
from barnabas.sql.planning.environment import Change, Setting, answer_calls
from barnabas.sql.planning.functions import read_functions
from barnabas.sql.planning.inputs import (
    Field,
    Input,
    arrow_type,
    columns_of,
    columns_of_tables,
    inputs_of,
    number_tables,
    place_all,
)
from barnabas.sql.planning.intervals import read_intervals
from barnabas.sql.planning.literals import read_compared_arrays, read_literals
from barnabas.sql.planning.names import parts_of, position_in, tables_of, take_as_of
from barnabas.sql.planning.operators import keep_fractions, rename_functions, rewrite_operators
from barnabas.sql.planning.outputs import fold_outputs, name_outputs, with_names
from barnabas.sql.planning.padded import read_padded
from barnabas.sql.planning.parameters import compared_with, infer, literal, parameters_of, typed
from barnabas.sql.planning.point import Point, point_of
from barnabas.sql.planning.routine_calls import OWN
from barnabas.sql.planning.row_functions import read_row_functions
from barnabas.sql.planning.sequences import read_sequences
from barnabas.sql.planning.small_integers import widen_literals
from barnabas.sql.planning.spark_words import read_spark_words
from barnabas.sql.planning.stars import order_stars
from barnabas.sql.planning.time_windows import read_time_windows
from barnabas.sql.planning.user_types import Types, names_types, read_types, shown_types
from barnabas.sql.planning.values import read_values
from barnabas.sql.planning.with_ties import read_ties
from barnabas.sql.planning.zoned_times import read_zoned_times
from barnabas.sql.states import INVALID_PARAMETER, UNDEFINED_FUNCTION, WRONG_COUNT, WRONG_OBJECT, not_supported
from barnabas.tables.column_types import UUID, mark_of

_INNER = ("duckdb_", "pragma_", "__")  # they tell about the server's machine, or belong to this package
_RUN_TEXT = ("query", "query_table", "checkpoint", "force_checkpoint")  # DuckDB's own; names would not be looked up here
Find = Callable[[Sequence[str], int | None], Relation]


@dataclass(slots=True)
class QueryPlan:
    """A query, ready for DuckDB.

    Args:
        sql: its text, with `$1`, … .
        parameters: their types; pa.null() where nothing tells one.
        tree: of the query before it became text, for values of unknown types.
        numbers: of the parameters that the query uses.
        changes: of settings, by `set_config`: name, value, and whether for the transaction only.
        schema: of the rows; filled in when DuckDB has checked the query.
        point: the key of a query for one row.
        by_values: the values of a UNIQUE constraint of such a query, if it does not give the key.
        functions: of users, which it calls.
        plain_json: the names of outputs that are of the type json, and not of jsonb.
        is_direct: whether its columns are those of tables, and not of other queries within it.
    """

    sql: str
    inputs: list[Input]
    parameters: list[pa.DataType]
    tree: Any
    numbers: tuple[int, ...] = ()
    changes: Sequence[tuple[str, str | None, bool]] = ()
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    point: Point | None = None
    by_values: Point | None = None
    functions: tuple[Function, ...] = ()

    @property
    def in_python(self) -> list[Function]:
        """Those of the functions that DuckDB calls."""
        return [each for each in self.functions if each.language == PYTHON]

    plain_json: frozenset[str] = frozenset()
    is_direct: bool = False

    def bound(self, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
        """The text, and the values by number, to run it with."""
        if not self.numbers:
            return self.sql, {}
        unknown = [number for number in self.numbers if pa.types.is_null(self.parameters[number - 1])]
        if not unknown:
            return self.sql, {str(number): values[number - 1] for number in self.numbers}
        tree = self.tree.copy()
        for number, nodes in parameters_of(tree).items():
            for node in nodes:
                if number in unknown:
                    node.replace(literal(values[number - 1]))
        read_compared_arrays(tree)
        return to_duckdb(tree), {str(number): values[number - 1] for number in self.numbers if number not in unknown}


def plan_query(
    tree: Any,
    find: Find,
    facts: Mapping[str, Any],
    setting: Setting,
    given: Sequence[pa.DataType | None] = (),
    *,
    is_spark: bool = True,
    is_utc: bool = True,
    pending: Collection[str] = (),
    functions: tuple[Function, ...] = (),
    types: Callable[[], Types] | None = None,
    labels_are_texts: bool = False,
) -> QueryPlan:
    """The plan of a SELECT, VALUES or set operation; the tree is changed.

    Args:
        find: the relation of a name; raises SqlError 42P01.
        facts: values of functions about the session.
        given: types of parameters, by the client.
        is_spark: whether `7 / 2` is 3.5 instead of 3.
        is_utc: whether the query will run in UTC; otherwise, in another time zone.
        pending: relations with rows in the open transaction.
        functions: of users, which the tree calls.
        types: tells those of users; None if the tree can name none.
        labels_are_texts: whether values of such a type stay texts; then nothing may ask for their order.
    """
    is_named = types is not None and names_types(tree)
    has_types = types is not None and is_named and read_types(tree, types(), as_texts=labels_are_texts)
    tree, changes = _read(tree, find, facts, setting, is_spark=is_spark)
    places, tables = parameters_of(tree), tables_of(tree)
    relations = [relation_of(table, find) for table in tables]
    if types is not None and (is_named or any(isinstance(each, CatalogueRelation) for each in relations)):
        shown_types(tree, types())
    has_types = has_types or any(has_labels(each) for each in relations)
    point, by_values = _points(tree, relations, pending)
    inputs = inputs_of(tree, tables, relations, pending)
    field_of = columns_of(tables, relations)
    if has_types:
        of_tables = columns_of_tables({id(table): relation for table, relation in zip(tables, relations, strict=True)})
        read_enums(tree, of_tables, field_of, as_texts=labels_are_texts)
    plain_json = plain_json_outputs(tree, field_of)
    kinds = infer(places, given, _types_of(field_of))
    is_direct = _is_direct(tree)
    number_tables(tables)
    read_padded(tree, field_of)
    _translate(tree, field_of, is_spark=is_spark)
    place_all(tree, inputs, with_labels=has_types and not labels_are_texts)
    places = parameters_of(tree)
    typed(places, kinds)
    _compute(tree, field_of, is_spark=is_spark, is_utc=is_utc)
    return QueryPlan(
        to_duckdb(tree), inputs, kinds, tree, tuple(sorted(places)), changes, point=point, by_values=by_values,
        functions=functions, plain_json=plain_json, is_direct=is_direct,
    )  # fmt: skip


def _read(
    tree: Any, find: Find, facts: Mapping[str, Any], setting: Setting, *, is_spark: bool
) -> tuple[Any, list[Change]]:  # fmt: skip
    """The query without what can be read before its tables are known, and the settings that it changes. Raises SqlError."""
    _refuse(tree)
    for table in tree.find_all(exp.Table):
        take_as_of(table)
    tree = with_names(tree)
    if not is_spark:
        fold_outputs(tree)
    read_spark_words(tree, is_spark=is_spark)
    read_literals(tree, is_spark=is_spark)
    read_intervals(tree)
    read_time_windows(tree)
    read_row_functions(tree)
    read_ties(tree)
    order_stars(tree)
    changes = answer_calls(tree, facts, setting)
    read_sequences(tree, find)
    return _rewritten(tree, find, facts.get("current_schemas", ())), changes


def _types_of(field_of: Field) -> Callable[[exp.Column], pa.DataType | None]:
    """The types that columns give to the parameters beside them."""

    def type_of_column(column: exp.Column) -> pa.DataType | None:
        found = field_of(column)
        if found is not None and mark_of(found) == UUID and isinstance(column.parent, (exp.EQ, exp.NEQ, exp.In)):
            return pa.uuid()
        return None if found is None else labelled_type(found) or arrow_type(found)

    return type_of_column


def _translate(tree: Any, field_of: Field, *, is_spark: bool) -> None:
    """Write functions and operators as DuckDB has them, by the types of the columns."""
    read_compared_arrays(tree, lambda node: compared_with(node, _types_of(field_of)))
    name_outputs(tree)
    read_document_aggregates(tree)
    read_documents(tree, field_of)
    read_values(tree, field_of, is_spark=is_spark)
    read_functions(tree, is_spark=is_spark)


def _compute(tree: Any, field_of: Field, *, is_spark: bool, is_utc: bool) -> None:
    """Let operators compute as the dialect says, once parameters have types."""
    widen_literals(tree, field_of)
    keep_fractions(tree)
    rewrite_operators(tree, is_spark=is_spark)
    if not is_utc:
        read_zoned_times(tree, field_of)
    rename_functions(tree)


def relation_of(table: Any, find: Find) -> Relation:
    """The relation of a table in a query. Raises SqlError."""
    relation = find(parts_of(table), position_in(table))
    if not table.meta.get(STREAM):
        return relation
    if not isinstance(relation, TopicRelation):
        hint = "STREAM t reads the records of a table, a topic or a materialized view"
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is no topic, so it is no stream', position=position_in(table), hint=hint)
    return as_stream(relation)


def _is_direct(tree: Any) -> bool:
    """Whether a query reads tables alone, without queries of its own in FROM."""
    if not isinstance(tree, exp.Select) or tree.args.get("with_") is not None:
        return False
    start = tree.args.get("from_")
    return start is not None and all(
        isinstance(each, exp.Table) for each in (start.this, *(join.this for join in tree.args.get("joins") or ()))
    )


def _rewritten(tree: Any, find: Find, path: Sequence[str]) -> Any:
    """The query without what only Postgres' catalogue has."""

    def oid_of(text: str) -> int | None:
        try:
            return number_of(find(parts_of_text(text), None).name)
        except SqlError:
            return None

    answer_catalogue(tree, oid_of, path)
    return tree


def _points(tree: Any, relations: Sequence[Relation], pending: Collection[str]) -> tuple[Point | None, Point | None]:
    """The key of a query for one row, or else the values of a UNIQUE constraint."""
    if len(relations) != 1 or relations[0].name in pending:
        return None, None
    point = _point(tree, relations[0], relations[0].keys)
    return point, _by_values(tree, relations[0]) if point is None else None


def _point(tree: Any, relation: Relation, names: Sequence[str]) -> Point | None:
    """The values of columns that a query names. A value of CREATE TYPE is looked for by DuckDB, which knows whether it is a label."""
    found = point_of(tree, relation, names)
    return None if found is None or any(enum_of(field) is not None for field, _, _ in found.values) else found


def _by_values(tree: Any, relation: Relation) -> Point | None:
    """The values of a UNIQUE constraint that a query names; None if it may read several rows."""
    definition = relation.definition if isinstance(relation, TopicRelation) else None
    found = (_point(tree, relation, each.columns) for each in (definition.unique if definition is not None else ()))
    return next((each for each in found if each is not None), None)


def _refuse(tree: Any) -> None:
    for node in tree.find_all(exp.Into):
        raise SqlError("0A000", "SELECT INTO is not supported", position=position_in(node), hint="use CREATE TABLE … AS")
    for node in tree.find_all(exp.Anonymous):
        name = str(node.this).lower()
        if OWN not in node.meta and (name.startswith(_INNER) or name in _RUN_TEXT):
            raise SqlError(UNDEFINED_FUNCTION, f"function {name} does not exist")
    for node in tree.find_all(exp.Lock):
        raise not_supported("FOR UPDATE is not supported here", position_in(node), "it belongs to the end of a SELECT statement")
    for node in tree.find_all(exp.DML):
        raise SqlError("0A000", f"{node.key.upper()} within a query is not supported")


def marked(field: pa.Field[Any], plan: QueryPlan) -> pa.Field[Any]:
    """A column of the result, with the mark of the table's column that it is: DuckDB has no word for a UUID that is text, and no sizes."""
    if (field.metadata or {}).get(KIND) == b"json":
        return field if _is_plain_json(field, plan) else field.with_metadata({KIND: b"json", WORD: b"jsonb"})
    if field.metadata or not isinstance(plan.tree, exp.Select):
        return field
    for item in plan.tree.expressions:
        if item.is_star:
            name = field.name
        elif isinstance(item.unalias(), exp.Column) and item.alias_or_name == field.name:
            name = item.unalias().name
        else:
            continue
        for made in plan.inputs:
            found = made.schema.field(name) if name in made.schema.names else None
            if found is None or found.type != field.type:
                continue
            if mark_of(found) or (plan.is_direct and sized_type(found) is not None):
                marks: dict[bytes | str, bytes | str] = {}
                marks |= {name: mark for name, mark in (found.metadata or {}).items() if name in (KIND, WORD)}
                return field.with_type(found.type).with_metadata(marks)
    return field


def _is_plain_json(field: pa.Field[Any], plan: QueryPlan) -> bool:
    """Whether a document is of the type json: of a column that was declared so, a cast or a function. Every other one is of jsonb."""
    if field.name in plan.plain_json:
        return True
    items = plan.tree.expressions if isinstance(plan.tree, exp.Select) else []
    if not any(item.is_star for item in items):
        return False
    known = [made.schema.field(field.name) for made in plan.inputs if field.name in made.schema.names]
    return bool(known) and WORD not in (known[0].metadata or {})


def check_values(parameters: Sequence[pa.DataType], values: Sequence[Any]) -> None:
    """Raises SqlError for a value that no statement can have, and for missing ones."""
    for number, value in enumerate(values, 1):
        if isinstance(value, str) and "\x00" in value:
            raise SqlError(INVALID_PARAMETER, f"the value of ${number} has a zero byte")
    if len(values) != len(parameters):
        raise SqlError(WRONG_COUNT, f"the statement has {len(parameters)} parameters, but {len(values)} values came with it")
