"""ON CONFLICT of an INSERT into a table with a primary key.

`DO UPDATE` that sets every other column to `excluded`'s needs to know nothing of the old row: the new row is written as it is. Any other
update reads the old rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import assignments, cast_to, column_named, first_of_each, with_columns
from barnabas.sql.states import CARDINALITY
from barnabas.sql.writing.records import check_rows, keys_of

EXCLUDED = "excluded"


class Conflict:
    """Decides about new rows whose key is there.

    Args:
        clause: sqlglot's ON CONFLICT.
        alias: of the table in the statement.
    """

    def __init__(
        self,
        session: Host,
        relation: TopicRelation,
        clause: Any,
        alias: str,
        text: str,
        given: Sequence[pa.DataType | None],
    ) -> None:
        self._session, self._relation, self._text = session, relation, text
        self.plan: QueryPlan | None = None
        if not relation.is_keyed or relation.has_row_names:
            raise SqlError(
                "42P10",
                f'the table "{relation.name}" has no primary key, so its rows have no conflicts',
                position=position_in(clause),
            )
        self._check_keys(clause)
        self._updates = clause.args["action"].name.upper() == "DO UPDATE"
        if not self._updates:
            return
        changes = assignments(relation, clause.expressions)
        if not clause.args.get("where") and self._is_whole(changes):
            return
        self.plan = checked(
            session, self._query(changes, clause, alias), text, given, {EXCLUDED: MemoryRelation(EXCLUDED, relation.columns)}
        )

    @property
    def overwrites(self) -> bool:
        """Whether new rows are written as they are, whatever is there."""
        return self._updates and self.plan is None

    def _check_keys(self, clause: Any) -> None:
        named = [each.this if isinstance(each, exp.Ordered) else each for each in clause.args.get("conflict_keys") or []]
        if clause.args.get("constraint") is not None:
            name = clause.args["constraint"].name
            if name != f"{self._relation.name}_pkey":
                raise SqlError("42704", f'constraint "{name}" for table "{self._relation.name}" does not exist')
            return
        if named and sorted(column_named(self._relation, each) for each in named) != sorted(self._relation.keys):
            raise SqlError(
                "42P10",
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                position=position_in(named[0]),
                hint=f"the primary key is ({', '.join(self._relation.keys)})",
            )

    def _is_whole(self, changes: dict[str, Any]) -> bool:
        """Whether every column but the key's is set to the new row's."""
        others = [name for name in self._relation.columns.names if name not in self._relation.keys]
        return all(
            isinstance(value := changes.get(name), exp.Column)
            and value.table.lower() == EXCLUDED
            and value.name.lower() == name.lower()
            for name in others
        )

    def _query(self, changes: dict[str, Any], clause: Any, alias: str) -> Any:
        """The old rows as they become."""
        items = []
        for field in self._relation.columns:
            value = changes.get(field.name)
            old = exp.column(exp.to_identifier(field.name, quoted=True), table=exp.to_identifier(alias, quoted=True))
            made = old if value is None else _of_table(value, alias)
            items.append(exp.alias_(cast_to(made, field), field.name, quoted=True))
        same = [
            exp.EQ(
                this=exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True)),
                expression=exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(EXCLUDED, quoted=True)),
            )
            for name in self._relation.keys
        ]
        table = exp.alias_(
            exp.table_(exp.to_identifier(self._relation.name, quoted=True)), exp.to_identifier(alias, quoted=True), table=True
        )
        query = exp.select(*items, copy=False).from_(table).join(exp.table_(EXCLUDED), on=exp.and_(*same))
        where = clause.args.get("where")
        return query.where(_of_table(where.this, alias)) if where is not None else query

    def resolved(self, rows: pa.Table, values: Sequence[Any]) -> pa.Table:
        """The rows to write. Raises SqlError."""
        session, relation = self._session, self._relation
        keys = keys_of(relation, rows)
        if not self._updates:
            kept = first_of_each(rows, keys)
            return self._without(kept, session.existing(relation, keys))
        if len(set(keys)) != len(keys):
            raise SqlError(
                CARDINALITY,
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                hint="ensure that no rows of one INSERT have the same key",
            )
        if self.plan is None:
            return rows
        existing = session.existing(relation, keys)
        if not existing:
            return rows
        changed = with_columns(collected(session, self.plan, values, self._text, {EXCLUDED: rows}), rows.schema)
        check_rows(relation, changed)
        return pa.concat_tables([self._without(rows, existing), changed])

    def _without(self, rows: pa.Table, existing: set[bytes]) -> pa.Table:
        if not existing:
            return rows
        return rows.filter(pa.array([key not in existing for key in keys_of(self._relation, rows)], pa.bool_()))


def _of_table(value: Any, alias: str) -> Any:
    """An expression whose plain names are of the table, as in Postgres."""
    made = value.copy()
    for column in [made] if isinstance(made, exp.Column) else list(made.find_all(exp.Column)):
        if not column.table and column.find_ancestor(exp.Query) is None:
            column.set("table", exp.to_identifier(alias, quoted=True))
    return made
