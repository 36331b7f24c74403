"""MERGE into a table with a primary key.

One query finds for each row of the source the row of the target, the first WHEN that holds, and the new values. The rows are then
written as upserts and tombstones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import check_values
from barnabas.sql.results import Done
from barnabas.sql.statements.enforcement import Constraints, without_duplicates
from barnabas.sql.statements.generated import given_names, plain_names, with_generated
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.modify import check_count, own_column
from barnabas.sql.statements.numbered import check_generated
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import assignments, cast_to, columns_named, default_of, is_default, keyed_target, with_columns
from barnabas.sql.states import CARDINALITY, not_supported, syntax_error
from barnabas.sql.writing.records import keys_of

KIND = "__kind"
INSERT, UPDATE, DELETE, NOTHING = "insert", "update", "delete", "nothing"


def merge(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any = None) -> Ready:
    """MERGE INTO table USING source ON … WHEN [NOT] MATCHED [AND …] THEN UPDATE SET … | INSERT … | DELETE | DO NOTHING."""
    tree = parse(statement, spark_order=session.is_spark) if tree is None else tree
    if not isinstance(tree, exp.Merge):
        raise not_supported("this form of MERGE is not supported", hint="MERGE INTO name USING source ON … WHEN MATCHED THEN …")
    if tree.args.get("returning") is not None:
        raise not_supported("MERGE … RETURNING is not supported", position_in(tree.args["returning"]))
    relation = keyed_target(session, tree.this, "merge into")
    _write_stars(relation, tree)
    actions = [_Action(relation, each, tree.this) for each in tree.args["whens"].expressions]
    plan = checked(session, _query(relation, tree, actions), statement.text, given)
    schema = pa.schema([each.with_nullable(True) for each in relation.identified])
    constraints = Constraints(session, relation, statement.text)

    def run(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        return session.change(relation, lambda: once(values))

    def once(values: Sequence[Any]) -> Result:
        found = collected(session, plan, values, statement.text)
        check_count(found)
        parts = {
            kind: with_columns(found.filter(pc.equal(found.column(KIND), pa.scalar(kind))), schema)
            for kind in (INSERT, UPDATE, DELETE)
        }
        _once(relation, pa.concat_tables([parts[UPDATE], parts[DELETE]]))
        for kind in (INSERT, UPDATE):
            parts[kind] = with_generated(session, relation, parts[kind])
            constraints.check(parts[kind])
        without_duplicates(session, relation, parts[INSERT])
        written = pa.concat_tables([parts[INSERT], parts[UPDATE]])
        constraints.check_unique(written, parts[DELETE])
        session.write_all(relation, written, parts[DELETE])
        return Done(f"MERGE {sum(each.num_rows for each in parts.values())}")

    return Ready(statement.text, run, None, plan.parameters, version=session.version)


def _write_stars(relation: TopicRelation, tree: Any) -> None:
    """`UPDATE SET *` and `INSERT *`: each column gets the source's of the same name; an update leaves the key. Raises SqlError."""
    source = tree.args["using"].alias_or_name
    for when in tree.args["whens"].expressions:
        then = when.args["then"]
        is_update = isinstance(then, exp.Update) and len(then.expressions) == 1 and isinstance(then.expressions[0], exp.Star)
        if not is_update and not (isinstance(then, exp.Insert) and isinstance(then.this, exp.Star)):
            continue
        if not source:
            raise syntax_error(
                "the source of a MERGE with * needs a name", position_in(tree.args["using"]), "USING (…) AS source"
            )
        names = [exp.to_identifier(each, quoted=True) for each in plain_names(relation)]
        values = [exp.column(each.copy(), table=exp.to_identifier(source)) for each in names]
        if is_update:
            pairs = [each for each in zip(names, values, strict=True) if each[0].name not in relation.keys]
            then.set("expressions", [exp.EQ(this=exp.column(name), expression=value) for name, value in pairs])
        else:
            then.set("this", exp.Tuple(expressions=names))
            then.set("expression", exp.Tuple(expressions=values))


def _once(relation: TopicRelation, rows: pa.Table) -> None:
    keys = keys_of(relation, rows)
    if len(set(keys)) != len(keys):
        raise SqlError(
            CARDINALITY,
            "MERGE command cannot affect row a second time",
            hint="ensure that not more than one source row matches any one target row",
        )


class _Action:
    """One WHEN."""

    def __init__(self, relation: TopicRelation, when: Any, table: Any) -> None:
        self.matched = bool(when.args.get("matched"))
        self.condition = when.args.get("condition")
        if when.args.get("source"):
            raise not_supported("WHEN NOT MATCHED BY SOURCE is not supported", position_in(when), "DELETE with a subquery")
        then = when.args["then"]
        self.values: dict[str, Any] = {}
        match then:
            case exp.Update():
                self.kind = UPDATE
                changes = assignments(relation, then.expressions)
                self.values = {name: changes.get(name, own_column(table, name)) for name in relation.identified.names}
            case exp.Insert():
                self.kind = INSERT
                self.values = _inserted(relation, then)
            case _ if then.name.upper() == "DELETE":
                self.kind = DELETE
                self.values = {name: own_column(table, name) for name in relation.identified.names}
            case _:
                self.kind = NOTHING
        if self.kind in (UPDATE, DELETE) and not self.matched:
            raise syntax_error(f"WHEN NOT MATCHED cannot {self.kind.upper()}", position_in(when))
        if self.kind == INSERT and self.matched:
            raise syntax_error("WHEN MATCHED cannot INSERT", position_in(when))


def _inserted(relation: TopicRelation, then: Any) -> dict[str, Any]:
    if not isinstance(then.expression, exp.Tuple):
        raise not_supported("INSERT of MERGE needs VALUES", position_in(then), "INSERT (columns) VALUES (…)")
    row = exp.Values(expressions=[then.expression])
    names = columns_named(relation, then.this.expressions) if isinstance(then.this, exp.Tuple) else given_names(relation, row)
    check_generated(relation, names, row)
    cells = then.expression.expressions
    if len(cells) > len(names) or (isinstance(then.this, exp.Tuple) and len(cells) != len(names)):
        raise syntax_error("INSERT has not as many values as columns", position_in(then))
    values = {name: default_of(relation, name) for name in relation.columns.names}
    values |= {name: default_of(relation, name) if is_default(cell) else cell for name, cell in zip(names, cells, strict=False)}
    return values


def _query(relation: TopicRelation, tree: Any, actions: Sequence[_Action]) -> Any:
    """The source beside the target, with the number of the WHEN that holds."""
    is_there = exp.Not(this=exp.Is(this=own_column(tree.this, relation.keys[0]), expression=exp.Null()))
    choice = exp.Case(ifs=[])
    for number, action in enumerate(actions):
        condition: Any = is_there.copy() if action.matched else exp.Not(this=is_there.copy())
        if action.condition is not None:
            condition = exp.and_(condition, action.condition.copy())
        choice.append("ifs", exp.If(this=condition, true=exp.Literal.number(number)))
    items: list[Any] = []
    for field in relation.identified:
        value = exp.Case(ifs=[])
        for number, action in enumerate(actions):
            if field.name in action.values:
                chosen = exp.EQ(this=exp.Paren(this=choice.copy()), expression=exp.Literal.number(number))
                value.append("ifs", exp.If(this=chosen, true=cast_to(action.values[field.name].copy(), field)))
        made: Any = value if value.args["ifs"] else exp.Null()
        items.append(exp.alias_(cast_to(made, field), field.name, quoted=True))
    kinds = exp.Case(ifs=[])
    for number, action in enumerate(actions):
        chosen = exp.EQ(this=exp.Paren(this=choice.copy()), expression=exp.Literal.number(number))
        kinds.append("ifs", exp.If(this=chosen, true=exp.Literal.string(action.kind)))
    items.append(exp.alias_(kinds, KIND, quoted=True))
    source = tree.args["using"].copy()
    query = exp.select(*items, copy=False).from_(source, copy=False)
    query = query.join(tree.this.copy(), on=tree.args["on"].copy(), join_type="left")
    if tree.args.get("with_") is not None:
        query.set("with_", tree.args["with_"].copy())
    return query
