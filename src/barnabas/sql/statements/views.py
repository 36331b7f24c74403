"""CREATE TEMPORARY VIEW and DROP VIEW."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.outputs import with_names
from barnabas.sql.results import Done
from barnabas.sql.statements.columns import folded
from barnabas.sql.statements.create import exists
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.states import UNDEFINED_TABLE, not_supported


def create_view(session: Host, statement: Statement) -> Ready:
    """CREATE [OR REPLACE] TEMPORARY VIEW [IF NOT EXISTS] name [(columns)] AS query: for this session."""
    tree = parse(statement, spark_order=session.is_spark)
    source = tree.args.get("expression") if isinstance(tree, exp.Create) else None
    if not isinstance(source, (exp.Query, exp.Values)):
        raise not_supported("this form of CREATE VIEW is not supported", hint="CREATE TEMPORARY VIEW name AS query")
    if tree.find(exp.TemporaryProperty) is None:
        raise not_supported(
            "CREATE VIEW is not supported",
            statement.position(1),
            "CREATE TEMPORARY VIEW is for one session, CREATE TABLE … AS keeps rows",
        )
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    name = folded(table.this)
    columns = [folded(each.this if isinstance(each, exp.ColumnDef) else each) for each in _columns(tree.this)]
    query = with_names(source)
    plan = checked(session, query.copy(), statement.text)
    if plan.numbers:
        raise SqlError("42P02", "there is no parameter in a view")
    if len(columns) > len(plan.schema):
        raise SqlError("42601", "CREATE VIEW specifies more column names than columns")

    def run(_: Sequence[Any]) -> Result:
        if name in session.views and not tree.args.get("replace"):
            if not tree.args.get("exists"):
                raise exists(name)
        else:
            session.views.put(name, columns, query)
        return Done("CREATE VIEW")

    return Ready(statement.text, run, version=session.version)


def _columns(target: Any) -> Sequence[Any]:
    return target.expressions if isinstance(target, exp.Schema) else ()


def drop_view(session: Host, statement: Statement) -> Ready:
    """DROP VIEW [IF EXISTS] name, …."""
    tree = parse(statement)
    if not isinstance(tree, exp.Drop):
        raise not_supported("this form of DROP VIEW is not supported", hint="DROP VIEW [IF EXISTS] name")
    names = [folded(table.this) for table in tree.args.get("tables") or []]

    def run(_: Sequence[Any]) -> Result:
        for name in names:
            if name in session.views:
                session.views.drop(name)
            elif not tree.args.get("exists"):
                raise SqlError(UNDEFINED_TABLE, f'view "{name}" does not exist')
        return Done("DROP VIEW")

    return Ready(statement.text, run)
