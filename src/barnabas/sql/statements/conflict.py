"""ON CONFLICT of an INSERT into a table with a primary key or with UNIQUE.

`DO UPDATE` of the primary key that sets every other column to `excluded`'s needs to know nothing of the old row: the new row is written
as it is. Any other update reads the old rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.constraints import UniqueDefinition
from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import ROW_NAME, TopicRelation
from barnabas.sql.interface import SqlError
from barnabas.sql.live.rows import Choice
from barnabas.sql.planning.names import position_in, table_of
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.statements.enforcement import Constraints, without_duplicates
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.table_clauses import NOTHING
from barnabas.sql.statements.target import assignments, cast_to, column_named, first_of_each, last_of_each, with_columns
from barnabas.sql.states import CARDINALITY, not_supported, syntax_error
from barnabas.sql.writing.records import check_rows, keys_of

EXCLUDED = "excluded"
PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Parameter, exp.Null, exp.Boolean, exp.Paren, exp.Neg, exp.Not, exp.Add, exp.Sub, exp.Mul,
    exp.And, exp.Or, exp.Is, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Coalesce, exp.Greatest, exp.Least,
)  # fmt: skip
LAST = "last"  # the mark of a clause that takes the last of several rows with one key


def clause_of(relation: TopicRelation, alternative: str = "") -> exp.OnConflict | None:
    """ON CONFLICT as a statement without the clause, or the table, declares it; None if neither does. Raises SqlError.

    Args:
        alternative: the word behind INSERT OR, as DuckDB and SQLite have it: `replace` or `ignore`.
    """
    if alternative:
        return _alternative(relation, alternative.lower())
    action = relation.definition.on_conflict if relation.definition is not None else ""
    return _clause(relation, action) if action else None


def _alternative(relation: TopicRelation, word: str) -> exp.OnConflict:
    if word == "ignore":
        return exp.OnConflict(action=exp.var("DO NOTHING"))
    if word != "replace":
        raise not_supported(f"INSERT OR {word.upper()} is not supported", hint="there are INSERT OR REPLACE and INSERT OR IGNORE")
    if not relation.is_keyed or relation.has_row_names:
        raise SqlError("42P10", f'INSERT OR REPLACE needs a primary key, and the table "{relation.name}" has none')
    return _clause(relation, "OVERWRITE")


def _clause(relation: TopicRelation, action: str) -> exp.OnConflict:
    keys = [exp.to_identifier(each, quoted=True) for each in relation.keys]
    if action == NOTHING:
        return exp.OnConflict(action=exp.var("DO NOTHING"), conflict_keys=keys)
    others = [exp.to_identifier(each, quoted=True) for each in relation.columns.names if each not in relation.keys]
    changes = [exp.EQ(this=exp.column(each), expression=exp.column(each.copy(), table=EXCLUDED)) for each in others]
    clause = exp.OnConflict(action=exp.var("DO UPDATE"), conflict_keys=keys, expressions=changes)
    clause.meta[LAST] = True
    return clause


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
        constraints: Constraints,
    ) -> None:
        self._session, self._relation, self._text, self._constraints = session, relation, text, constraints
        self.plan: QueryPlan | None = None
        self._has_key = relation.is_keyed and not relation.has_row_names
        self._updates = clause.args["action"].name.upper() == "DO UPDATE"
        self._names_any = not (clause.args.get("conflict_keys") or clause.args.get("constraint"))
        self._unique = self._constraint(clause)
        self._takes_last = LAST in clause.meta
        if not self._updates:
            return
        if self._names_any:
            raise syntax_error(
                "ON CONFLICT DO UPDATE requires inference specification or constraint name", position_in(clause),
                "For example, ON CONFLICT (column_name).",
            )  # fmt: skip
        if not relation.is_keyed:
            raise SqlError(
                "55000", f'cannot update table "{relation.name}": it is append-only', position=position_in(clause),
                hint="ON CONFLICT DO NOTHING",
            )  # fmt: skip
        self._is_plain = all(isinstance(node, PLAIN) for each in _expressions(clause) for node in each.walk())
        changes = assignments(relation, clause.expressions)
        if not clause.args.get("where") and self._is_whole(changes):
            return
        self.plan = checked(
            session, self._query(changes, clause, alias), text, given, {EXCLUDED: MemoryRelation(EXCLUDED, relation.columns)}
        )

    @property
    def lasts(self) -> bool:
        """Whether the statement may be kept: its plan depends on nothing but the columns."""
        return self.plan is None or self._is_plain

    @property
    def has_parameters(self) -> bool:
        """Whether the clause has some, and takes their types from its columns."""
        return self.plan is not None and bool(self.plan.numbers)

    @property
    def overwrites(self) -> bool:
        """Whether new rows are written as they are, whatever is there."""
        return self._updates and self.plan is None

    def _constraint(self, clause: Any) -> UniqueDefinition | None:
        """The UNIQUE constraint that the clause names; None for the primary key, and if it names none. Raises SqlError."""
        relation = self._relation
        known = relation.definition.unique if relation.definition is not None else ()
        if clause.args.get("constraint") is not None:
            name = clause.args["constraint"].name
            found = next((each for each in known if each.name == name), None)
            is_key = relation.definition is not None and name == relation.definition.key_constraint
            if found is None and not (self._has_key and is_key):
                raise SqlError("42704", f'constraint "{name}" for table "{relation.name}" does not exist')
            return found
        named = [each.this if isinstance(each, exp.Ordered) else each for each in clause.args.get("conflict_keys") or []]
        columns = sorted(column_named(relation, each) for each in named)
        if not named or (self._has_key and columns == sorted(relation.keys)):
            return None
        found = next((each for each in known if sorted(each.columns) == columns), None)
        if found is None:
            unique = [
                f"({', '.join(each)})" for each in ([relation.keys] if self._has_key else []) + [each.columns for each in known]
            ]
            raise SqlError(
                "42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                position=position_in(named[0]),
                hint=f"there is {', '.join(unique)}" if unique else f'the table "{relation.name}" has no primary key and no UNIQUE',
            )  # fmt: skip
        return found

    @property
    def _columns(self) -> Sequence[str]:
        """Those whose values conflict."""
        return self._relation.keys if self._unique is None else self._unique.columns

    def _is_whole(self, changes: dict[str, Any]) -> bool:
        """Whether every column but the key's is set to the new row's."""
        if self._unique is not None:
            return False
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
        for field in self._relation.identified:
            value = changes.get(field.name)
            old = exp.column(exp.to_identifier(field.name, quoted=True), table=exp.to_identifier(alias, quoted=True))
            made = old if value is None else _of_table(value, alias)
            items.append(exp.alias_(cast_to(made, field), field.name, quoted=True))
        same = [
            exp.EQ(
                this=exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True)),
                expression=exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(EXCLUDED, quoted=True)),
            )
            for name in self._columns
        ]
        query = (
            exp.select(*items, copy=False)
            .from_(table_of(self._relation.name, alias))
            .join(exp.table_(EXCLUDED), on=exp.and_(*same))
        )
        where = clause.args.get("where")
        return query.where(_of_table(where.this, alias)) if where is not None else query

    def resolved(self, rows: pa.Table, values: Sequence[Any]) -> pa.Table:
        """The rows to write. Raises SqlError."""
        if not self._updates:
            return self._fresh(rows)
        if self._unique is not None:
            return self._updated_by_values(rows, values)
        session, relation = self._session, self._relation
        keys = keys_of(relation, rows)
        if self._takes_last:
            return last_of_each(rows, keys)
        if len(set(keys)) != len(keys):
            raise _second_time()
        if self.plan is None:
            return rows
        existing = session.existing(relation, keys)
        if not existing:
            return rows
        changed = self._changed(rows, values, lambda live: live.of_keys(existing))
        return pa.concat_tables([self._without(rows, existing), changed])

    def _fresh(self, rows: pa.Table) -> pa.Table:
        """The rows that have no conflict. Another constraint than the one that the clause names is checked later."""
        if self._has_key and (self._names_any or self._unique is None):
            keys = keys_of(self._relation, rows)
            rows = self._without(first_of_each(rows, keys), self._session.existing(self._relation, keys))
        elif self._has_key:
            rows = self._constraints.without_conflicts(rows, self._unique)
            return without_duplicates(self._session, self._relation, rows)
        return self._constraints.without_conflicts(rows, self._unique) if self._names_any or self._unique else rows

    def _updated_by_values(self, rows: pa.Table, values: Sequence[Any]) -> pa.Table:
        """The rows without a conflict, and the old rows that the others change, by a UNIQUE constraint."""
        assert self._unique is not None
        if len(self._constraints.distinct(rows, self._unique)) < rows.num_rows:
            raise _second_time()
        fresh = self._constraints.without_conflicts(rows, self._unique)
        chosen = self._constraints.choice(rows, self._unique)
        changed = self._changed(rows, values, chosen) if fresh.num_rows < rows.num_rows else None
        fresh = without_duplicates(self._session, self._relation, fresh)
        if changed is None:
            return fresh
        if self._relation.has_row_names:
            fresh = fresh.append_column(ROW_NAME.with_nullable(True), pa.nulls(fresh.num_rows, ROW_NAME.type))
        return pa.concat_tables([fresh, changed])

    def _changed(self, rows: pa.Table, values: Sequence[Any], chosen: Choice) -> pa.Table:
        """The old rows as they become.

        Args:
            chosen: the old rows.
        """
        assert self.plan is not None
        schema = pa.schema([each.with_nullable(True) for each in self._relation.identified])
        found = collected(self._session, self.plan, values, self._text, {EXCLUDED: rows}, {self._relation.topic: chosen})
        changed = with_columns(found, schema)
        check_rows(self._relation, changed)
        return changed

    def _without(self, rows: pa.Table, existing: set[bytes]) -> pa.Table:
        if not existing:
            return rows
        return rows.filter(pa.array([key not in existing for key in keys_of(self._relation, rows)], pa.bool_()))


def _expressions(clause: Any) -> list[Any]:
    """Those of the new values, and the condition."""
    where = clause.args.get("where")
    return [*clause.expressions, *([where.this] if where is not None else [])]


def _second_time() -> SqlError:
    return SqlError(
        CARDINALITY,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
        hint="ensure that no rows of one INSERT have the same key",
    )


def _of_table(value: Any, alias: str) -> Any:
    """An expression whose plain names are of the table, as in Postgres."""
    made = value.copy()
    for column in [made] if isinstance(made, exp.Column) else list(made.find_all(exp.Column)):
        if not column.table and column.find_ancestor(exp.Query) is None:
            column.set("table", exp.to_identifier(alias, quoted=True))
    return made
