"""SELECT … FROM name [WHERE …] EMIT CHANGES [LIMIT n]: ksqlDB's push query. The rows that come from now on, one by one.

The query is run over each batch of a subscription, so it must make its rows of one row each. The rows that are there come first after
`SET 'auto.offset.reset' = 'earliest'`, as in ksqlDB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.continuous.functions import Functions, multiplies
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import parts_of, position_in
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import OUT_OF_RANGE, WRONG_OBJECT, not_supported
from barnabas.sql.views.subscription import DELETED, Subscription, names_of
from barnabas.tables.memory_scan import can_be_made

RESET = "auto.offset.reset"
_MOST_DIGITS = 18  # of a limit
_HINT = "CREATE MATERIALIZED VIEW v AS … keeps the query, and SUBSCRIBE v follows its changes"
_CLAUSES = ("joins", "laterals", "group", "having", "distinct", "order", "limit", "offset", "qualify", "windows", "with_")


def push_query(session: Host, statement: Statement) -> Ready | None:
    """The push query of a statement; None for one without EMIT CHANGES at its end. Raises SqlError."""
    taken = _taken(statement)
    if taken is None:
        return None
    query, most = taken
    tree = parse(query, spark_order=session.is_spark)
    table = _table(session, tree)
    relation = session.find(parts_of(table), position_in(table))
    if not isinstance(relation, TopicRelation) or (relation.definition is not None and relation.definition.is_plain_view):
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is no table and no materialized view', hint=_HINT)
    if names_of(relation) or not can_be_made(relation.layout, relation.columns.names):
        raise not_supported(f'"{relation.name}" has columns that a subscription cannot have', position_in(table))
    alias = table.alias_or_name
    table.replace(exp.alias_(exp.table_(exp.to_identifier(alias, quoted=True)), alias, table=True, quoted=True))
    plan = checked(session, tree, statement.text, (), {alias: MemoryRelation(alias, relation.columns)}, for_job=True)
    if plan.numbers:
        raise SqlError("42P02", "there is no parameter in a query with EMIT CHANGES")
    with_snapshot = (session.settings.get(RESET) or "").lower() == "earliest"

    def run(_: Sequence[Any]) -> Result:
        source = Subscription(session, relation, None, with_snapshot=with_snapshot, text=statement.text)
        return Pushed(session, source, plan, alias, statement.text, most)

    return Ready(statement.text, run, plan.schema, version=session.version)


def _taken(statement: Statement) -> tuple[Statement, int | None] | None:
    """The query without EMIT CHANGES [LIMIT n], and the limit. Raises SqlError."""
    words = [statement.word(at) for at in range(len(statement.tokens))]
    if words[-2:] == ["EMIT", "CHANGES"]:
        return Statement(statement.text, statement.tokens[:-2]), None
    text = str(statement.tokens[-1].text)
    if words[-4:-1] == ["EMIT", "CHANGES", "LIMIT"] and text.isdecimal():
        if len(text) > _MOST_DIGITS:
            raise SqlError(OUT_OF_RANGE, "LIMIT is out of range", position=statement.position(len(words) - 1))
        return Statement(statement.text, statement.tokens[:-4]), int(text)
    return None


def _table(session: Host, tree: Any) -> Any:
    """The only table of a query that makes its rows of one row each. Raises SqlError."""
    source = tree.args["from_"].this if isinstance(tree, exp.Select) and tree.args.get("from_") is not None else None
    has_more = source is None or any(tree.args.get(clause) for clause in _CLAUSES) or source.args.get("joins")
    if has_more or not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        raise not_supported("EMIT CHANGES takes the columns and a WHERE of one table", position_in(tree), _HINT)
    functions = Functions(session.planner())
    parts = [*tree.expressions, tree.args.get("where") or exp.Where()]
    refused = [each for each in tree.find_all(exp.Window, exp.Subquery, exp.Exists, exp.Query) if each is not tree]
    for node in refused or [each for part in parts for each in functions.aggregates(part)]:
        raise not_supported(f"EMIT CHANGES cannot have {node.sql('postgres')[:60]}", position_in(node), _HINT)
    if any(map(multiplies, tree.expressions)):
        raise not_supported("EMIT CHANGES cannot make several rows of one", position_in(tree), _HINT)
    return source


class Pushed:
    """A result that does not end by itself, unless it has a limit.

    Args:
        most: rows; None for no limit.
    """

    tag, is_live = "SELECT", True

    def __init__(self, session: Host, source: Subscription, plan: QueryPlan, alias: str, text: str, most: int | None) -> None:
        self._session, self._source, self._plan, self._alias, self._text = session, source, plan, alias, text
        self._left = most
        self.schema: pa.Schema | None = plan.schema

    def close(self) -> None:
        """Release it; safe to call twice."""
        self._source.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows = self._source.batches()
        try:
            while self._left is None or self._left > 0:
                batch = next(rows, None)
                if batch is None:
                    return
                made = self._made(batch.filter(pc.invert(batch.column(DELETED))))
                if self._left is not None:
                    made = made.slice(0, self._left)
                    self._left -= made.num_rows
                yield made
        finally:
            self.close()

    def _made(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the query over the rows of a batch."""
        if batch.num_rows:
            names = self._plan.inputs[0].relation.columns.names
            found = collected(self._session, self._plan, (), self._text, {self._alias: pa.table(batch.select(names))})
            if found.num_rows:
                return found.combine_chunks().to_batches()[0]
        return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in self._plan.schema], schema=self._plan.schema)
