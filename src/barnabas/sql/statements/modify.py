"""UPDATE and DELETE of tables with a primary key: the newest rows are read, and upserts or tombstones written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import table_of
from barnabas.sql.planning.point import fits
from barnabas.sql.planning.query import check_values
from barnabas.sql.statements.enforcement import Constraints, check_distinct, without_duplicates
from barnabas.sql.statements.generated import generated_of, with_generated
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import Returning, assignments, cast_to, first_of_each, keyed_target, together, with_columns
from barnabas.sql.states import LIMIT_EXCEEDED, not_supported
from barnabas.sql.writing.records import keys_of

OLD = "__old_"  # before the names of the columns of a key that changes
PLAIN = (exp.Column, exp.Identifier, exp.Literal, exp.Parameter, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.And, exp.EQ)


def update(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any = None) -> Ready:
    """UPDATE table SET … [FROM …] [WHERE …] [RETURNING …]."""
    tree = parse(statement, spark_order=session.is_spark) if tree is None else tree
    if not isinstance(tree, exp.Update):
        raise not_supported("this form of UPDATE is not supported", hint="UPDATE name SET column = value WHERE …")
    relation = keyed_target(session, tree.this, "update")
    changes = assignments(relation, tree.expressions, keys_change=True)
    items = []
    for field in relation.identified:
        value = changes.get(field.name)
        made = own_column(tree.this, field.name) if value is None else cast_to(value.copy(), field)
        items.append(exp.alias_(made, field.name, quoted=True))
    query = _query(tree, items, tree.args.get("from_"))
    constraints = Constraints(session, relation, statement.text, {*changes, *generated_of(relation)})
    if not changes.keys().isdisjoint(relation.keys):
        return _with_other_keys(session, statement, given, relation, query, tree, constraints)
    return _ready(session, statement, given, relation, query, tree, constraints)


def delete(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any = None) -> Ready:
    """DELETE FROM table [USING …] [WHERE …] [RETURNING …]."""
    tree = parse(statement, spark_order=session.is_spark) if tree is None else tree
    if not isinstance(tree, exp.Delete) or not isinstance(tree.this, exp.Table):
        raise not_supported("this form of DELETE is not supported", hint="DELETE FROM name WHERE …")
    relation = keyed_target(session, tree.this, "delete from")
    items = [exp.alias_(own_column(tree.this, field.name), field.name, quoted=True) for field in relation.identified]
    query = _query(tree, items, None)
    for other in tree.args.get("using") or []:
        query = query.join(other.copy(), join_type="cross")
    return _ready(session, statement, given, relation, query, tree, None)


def own_column(table: Any, name: str) -> exp.Column:
    """A column of the table that a statement writes to."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table.alias_or_name, quoted=True))


def _query(tree: Any, items: Sequence[Any], others: Any) -> Any:
    query = exp.select(*items, copy=False).from_(tree.this.copy())
    if others is not None:
        query = query.join(others.this.copy(), join_type="cross")
    if tree.args.get("where") is not None:
        query = query.where(tree.args["where"].this.copy())
    if tree.args.get("with_") is not None:
        query.set("with_", tree.args["with_"].copy())
    return query


def _ready(
    session: Host,
    statement: Statement,
    given: Sequence[pa.DataType | None],
    relation: TopicRelation,
    query: Any,
    tree: Any,
    constraints: Constraints | None,
) -> Ready:
    """An UPDATE with the constraints of its table, or a DELETE without any."""
    deleted = constraints is None
    plan = checked(session, query, statement.text, given)
    returning = _returning(session, statement, given, relation, tree, "DELETE %d" if deleted else "UPDATE %d")
    parameters = together(plan, returning.plan)
    schema = _nullable(relation)

    def run(values: Sequence[Any]) -> Result:
        check_values(parameters, values)
        return session.change(relation, lambda: once(values))

    def once(values: Sequence[Any]) -> Result:
        found = with_columns(collected(session, plan, values, statement.text), schema)
        check_count(found)
        rows = first_of_each(found, keys_of(relation, found))
        if constraints is not None:
            rows = with_generated(session, relation, rows)
            constraints.check(rows)
            constraints.check_unique(rows)
        session.write(relation, rows, deleted=deleted)
        return returning.result(rows.select(relation.columns.names), values)

    ready = Ready(statement.text, run, returning.schema, parameters, version=session.version)
    if plan.point is not None and returning.plan is None and _is_plain(tree):
        ready.lasts = True
        ready.plain = lambda values: run(values) if all(map(_fits, values, parameters)) else None
    return ready


def _with_other_keys(
    session: Host, statement: Statement, given: Sequence[pa.DataType | None], relation: TopicRelation, query: Any, tree: Any,
    constraints: Constraints,
) -> Ready:  # fmt: skip
    """An UPDATE of the primary key: rows are written under their new keys, and the old ones are deleted in the same transaction."""
    old = {name: f"{OLD}{name}" for name in relation.keys}
    query = query.select(*(exp.alias_(own_column(tree.this, name), alias, quoted=True) for name, alias in old.items()))
    returning = _returning(session, statement, given, relation, tree, "UPDATE %d")
    plan, schema = checked(session, query, statement.text, given), _nullable(relation)
    parameters = together(plan, returning.plan)

    def once(values: Sequence[Any]) -> Result:
        found = collected(session, plan, values, statement.text)
        check_count(found)
        found = first_of_each(found, keys_of(relation, _before(found, old, schema)))
        before, rows = _before(found, old, schema), with_generated(session, relation, with_columns(found, schema))
        constraints.check(rows)
        before_keys, keys = keys_of(relation, before), keys_of(relation, rows)
        gone, there = frozenset(before_keys) - frozenset(keys), frozenset(before_keys)
        check_distinct(relation, rows)
        without_duplicates(session, relation, rows.filter(pa.array([each not in there for each in keys], pa.bool_())))
        deleted = before.filter(pa.array([each in gone for each in before_keys], pa.bool_()))
        constraints.check_unique(rows, deleted)
        session.write_all(relation, rows, deleted)
        return returning.result(rows.select(relation.columns.names), values)

    def run(values: Sequence[Any]) -> Result:
        check_values(parameters, values)
        return session.change(relation, lambda: once(values))

    return Ready(statement.text, run, returning.schema, parameters, version=session.version)


def _returning(
    session: Host, statement: Statement, given: Sequence[pa.DataType | None], relation: TopicRelation, tree: Any, tag: str
) -> Returning:
    return Returning(session, relation, tree.args.get("returning"), tree.this.alias_or_name, tag, statement.text, given)


def _nullable(relation: TopicRelation) -> pa.Schema:
    """The columns of rows that are not checked yet."""
    return pa.schema([each.with_nullable(True) for each in relation.identified])


def _before(found: pa.Table, old: Mapping[str, str], schema: pa.Schema) -> pa.Table:
    """Rows under the keys that they had."""
    arrays = [found.column(old.get(each.name, each.name)) for each in schema]
    return with_columns(pa.table(arrays, names=schema.names), schema)


def _is_plain(tree: Any) -> bool:
    """Whether an UPDATE or DELETE has the same effect with parameters in place of its literals, if their values fit (`_fits`)."""
    parts = [*tree.expressions, tree.args["where"].this]
    return all(isinstance(node, PLAIN) for each in parts for node in each.walk())


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a literal would have the type of the parameter in its place, or one that gives the same."""
    return fits(value, kind) and fits(value, pa.string() if isinstance(value, str) else pa.int32())


def check_count(rows: pa.Table) -> None:
    """Raises SqlError if a statement changes too many rows."""
    if rows.num_rows > limits.MAX_SQL_MODIFIED_ROWS:
        raise SqlError(
            LIMIT_EXCEEDED,
            f"one statement changes at most {limits.MAX_SQL_MODIFIED_ROWS} rows",
            hint="use WHERE to change a part",
        )


def delete_all(session: Host, definition: TableDefinition) -> None:
    """Delete every row of a table with a primary key."""
    relation = session.access.relation_of(definition)
    names = [exp.column(exp.to_identifier(each, quoted=True)) for each in relation.identified.names]
    query = exp.select(*names).from_(table_of(definition.name))
    plan = checked(session, query, "")
    schema = pa.schema([each.with_nullable(True) for each in relation.identified])

    def once() -> None:
        rows = with_columns(collected(session, plan, (), ""), schema)
        check_count(rows)
        session.write(relation, rows, deleted=True)

    session.change(relation, once)
