"""The rows that a statement is about to write are checked here: NOT NULL, CHECK, the primary key, UNIQUE.

A value of a UNIQUE constraint is looked up in the rows of the table, without those that the statement replaces or deletes. As with
the primary key, the values are locked from the look to the write.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from barnabas import limits
from barnabas.incremental.interface import ROW
from barnabas.sql.catalog.constraints import CheckDefinition, UniqueDefinition
from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import parse_expression
from barnabas.sql.interface import SqlError
from barnabas.sql.live.by_values import Values, values_of
from barnabas.sql.live.rows import Choice
from barnabas.sql.planning.names import table_of
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import CHECK, LIMIT_EXCEEDED, UNIQUE
from barnabas.sql.writing.records import check_rows, keys_of, shown_row

WRITTEN = "__written"
Seen = dict[str, set[Values]]  # the values of each UNIQUE constraint


class Constraints:
    """The constraints of one table, for one statement that writes to it.

    Args:
        changes: the columns that the statement changes; None for all of them.
    """

    def __init__(
        self, session: Host, relation: TopicRelation, text: str, changes: AbstractSet[str] | None = None
    ) -> None:  # fmt: skip
        self._session, self._relation, self._text = session, relation, text
        definition = relation.definition
        self._checks: Sequence[CheckDefinition] = definition.checks if definition is not None else ()
        self._plan = checks_plan(session, relation, self._checks, text) if self._checks else None
        self._unique = [
            UniqueValues(session, relation, each, text)
            for each in (definition.unique if definition is not None else ())
            if changes is None or not changes.isdisjoint(each.columns)
        ]

    def check(self, rows: pa.Table) -> None:
        """Raises SqlError 23502 for a null where the definition has none, 23514 for a row that a condition refuses."""
        check_rows(self._relation, rows)
        if self._plan is None or not rows.num_rows:
            return
        source = rows.select(self._relation.columns.names)
        found = collected(self._session, self._plan, (), self._text, {WRITTEN: source})
        for place, each in enumerate(self._checks):
            at = pc.index(found.column(place), False).as_py()
            if at >= 0:
                raise SqlError(
                    CHECK, f'new row for relation "{self._relation.name}" violates check constraint "{each.name}"',
                    detail=f"Failing row contains ({shown_row(self._relation, rows, at)}).", table=self._relation.name,
                    constraint=each.name,
                )  # fmt: skip

    def check_unique(self, rows: pa.Table, deleted: pa.Table | None = None, seen: Seen | None = None) -> None:
        """Raises SqlError 23505 if a row has values of another one.

        Args:
            deleted: rows that the same statement deletes.
            seen: the values of earlier rows of the statement; those of these rows are added.
        """
        gone = self._keys(rows, deleted) if self._unique else set()
        self._lock(rows)
        for each in self._unique:
            known = set() if seen is None else seen.setdefault(each.definition.name, set())
            conflicts = each.conflicts(rows, gone, known)
            if conflicts:
                raise each.error(rows, conflicts[0])

    def _lock(self, rows: pa.Table) -> None:
        """Keep other sessions from bringing the same values before they are written."""
        for each in self._unique:
            values = [value for value in values_of(rows, each.definition.columns) if any(cell is not None for cell in value)]
            self._session.lock(self._relation.topic, ((each.definition.name, *value) for value in values))

    def without_conflicts(self, rows: pa.Table, only: UniqueDefinition | None = None) -> pa.Table:
        """The rows that have no values of other ones, by all UNIQUE constraints or by one."""
        self._lock(rows)
        for each in self._unique:
            if only is None or each.definition == only:
                conflicts = set(each.conflicts(rows, (), set()))
                rows = rows.filter(pa.array([place not in conflicts for place in range(rows.num_rows)], pa.bool_()))
        return rows

    def distinct(self, rows: pa.Table, unique: UniqueDefinition) -> list[int]:
        """The places of rows whose values no row before them has."""
        return self._of(unique).distinct(rows)

    def choice(self, rows: pa.Table, unique: UniqueDefinition) -> Choice:
        """Chooses the rows of the table that have the values of one of these rows."""
        return self._of(unique).choice(values_of(rows, unique.columns))

    def _of(self, unique: UniqueDefinition) -> UniqueValues:
        return next(each for each in self._unique if each.definition == unique)

    def _keys(self, rows: pa.Table, deleted: pa.Table | None) -> set[bytes]:
        """The keys of records that the statement writes."""
        relation = self._relation
        if not relation.is_keyed:
            return set()
        parts = [each for each in (rows, deleted) if each is not None]
        return {
            key for each in parts if not relation.has_row_names or ROW in each.schema.names for key in keys_of(relation, each)
        }  # fmt: skip


class UniqueValues:
    """One UNIQUE constraint."""

    def __init__(self, session: Host, relation: TopicRelation, definition: UniqueDefinition, text: str) -> None:
        self._session, self._relation, self._text, self.definition = session, relation, text, definition
        source = MemoryRelation(WRITTEN, relation.columns)
        self._plan = checked(session, self._query(), text, (), {WRITTEN: source})

    def _query(self) -> Any:
        """The rows of the table that have values of the written ones."""
        names = self._relation.identified.names
        items = [exp.alias_(_column("__old", name), name, quoted=True) for name in names]
        kind = exp.EQ if self.definition.is_nullable else exp.NullSafeEQ
        same = [kind(this=_column("__old", each), expression=_column("__new", each)) for each in self.definition.columns]
        query = exp.select(*items, copy=False).from_(table_of(self._relation.name, "__old"))
        return query.join(_aliased(WRITTEN, "__new"), on=exp.and_(*same), copy=False)

    def conflicts(self, rows: pa.Table, gone: Collection[bytes], seen: set[Values]) -> list[int]:
        """The places of rows whose values another row has. Raises SqlError 54000.

        Args:
            gone: the keys of records that the statement replaces or deletes.
            seen: the values of earlier rows; those of these rows are added.
        """
        values = self._values(rows)
        wanted = {each for each in values if each is not None}
        if not wanted:
            return []
        if len(seen) + len(wanted) > limits.MAX_SQL_COPY_KEYS:
            raise SqlError(
                LIMIT_EXCEEDED, f"one statement brings at most {limits.MAX_SQL_COPY_KEYS} rows to a table with UNIQUE",
                hint="bring them in parts",
            )  # fmt: skip
        taken = self._there(rows, wanted, gone) | seen
        found = []
        for place, each in enumerate(values):
            if each is not None and each in taken:
                found.append(place)
            elif each is not None:
                taken.add(each)
                seen.add(each)
        return found

    def _there(self, rows: pa.Table, wanted: Collection[Values], gone: Collection[bytes]) -> set[Values]:
        """The values of the table's rows among those of the written ones."""
        source = rows.select(self._relation.columns.names)
        chosen = {self._relation.topic: self.choice(wanted)}
        found = collected(self._session, self._plan, (), self._text, {WRITTEN: source}, chosen)
        if gone:
            keys = keys_of(self._relation, found)
            found = found.filter(pa.array([key not in gone for key in keys], pa.bool_()))
        return {each for each in self._values(found) if each is not None}

    def choice(self, wanted: Collection[Values]) -> Choice:
        """Chooses the rows of the table that have one of these values."""
        return self._session.access.having(self._relation, self.definition.columns, wanted)

    def distinct(self, rows: pa.Table) -> list[int]:
        """The places of rows whose values no row before them has."""
        seen: set[Values] = set()
        found = []
        for place, each in enumerate(self._values(rows)):
            if each is None or each not in seen:
                found.append(place)
            if each is not None:
                seen.add(each)
        return found

    def _values(self, rows: pa.Table) -> list[Values | None]:
        """The values of each row; None for those that are no other row's, since one of them is null."""
        made = values_of(rows, self.definition.columns)
        return [None if self.definition.is_nullable and None in each else each for each in made]

    def error(self, rows: pa.Table, place: int) -> SqlError:
        """The error of a row whose values are there already."""
        return duplicate(self._relation, rows, place, self.definition.name, self.definition.columns)


def _column(alias: str, name: str) -> Any:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def _aliased(name: str, alias: str) -> Any:
    return exp.alias_(exp.table_(exp.to_identifier(name, quoted=True)), exp.to_identifier(alias, quoted=True), table=True)


def checks_plan(session: Host, relation: TopicRelation, checks: Sequence[CheckDefinition], text: str) -> Any:
    """The plan of the conditions over rows. Raises SqlError."""
    items = [exp.alias_(parse_expression(each.condition), f"c{place}", quoted=True) for place, each in enumerate(checks)]
    alias = relation.name.rpartition(".")[2]
    query = exp.select(*items, copy=False).from_(_aliased(WRITTEN, alias))
    return checked(session, query, text, (), {WRITTEN: MemoryRelation(WRITTEN, relation.columns)})


def without_duplicates(session: Host, relation: TopicRelation, rows: pa.Table, seen: set[bytes] | None = None) -> pa.Table:
    """The rows. Raises SqlError 23505 if one of the keys is there already, or twice among them.

    Args:
        seen: the keys of earlier rows of the statement; those of these rows are added.
    """
    if relation.has_row_names:
        return rows
    keys = keys_of(relation, rows)
    seen = set() if seen is None else seen
    for place, key in enumerate(keys):
        if key in seen:
            raise _duplicate_key(relation, rows, place)
        seen.add(key)
    if len(seen) > limits.MAX_SQL_COPY_KEYS:
        raise SqlError(
            LIMIT_EXCEEDED,
            f"one statement brings at most {limits.MAX_SQL_COPY_KEYS} rows to a table with a primary key",
            hint="bring them in parts",
        )
    existing = session.existing(relation, keys)
    if existing:
        raise _duplicate_key(relation, rows, next(place for place, key in enumerate(keys) if key in existing))
    return rows


def check_distinct(relation: TopicRelation, rows: pa.Table) -> None:
    """Raises SqlError 23505 if two of the rows have one key."""
    seen: set[bytes] = set()
    for place, key in enumerate(keys_of(relation, rows)):
        if key in seen:
            raise _duplicate_key(relation, rows, place)
        seen.add(key)


def _duplicate_key(relation: TopicRelation, rows: pa.Table, place: int) -> SqlError:
    named = relation.definition.key_constraint if relation.definition is not None else ""
    return duplicate(relation, rows, place, named or f"{relation.name}_pkey", relation.keys)


def duplicate(relation: TopicRelation, rows: pa.Table, place: int, name: str, columns: Sequence[str]) -> SqlError:
    """The error of values that are there already."""
    row = rows.slice(place, 1).to_pylist()[0]
    shown = ", ".join("null" if row[each] is None else str(row[each])[:100] for each in columns)
    return SqlError(
        UNIQUE,
        f'duplicate key value violates unique constraint "{name}"',
        detail=f"Key ({', '.join(columns)})=({shown}) already exists.",
        hint="ON CONFLICT DO UPDATE or DO NOTHING says what to do",
        table=relation.name,
        constraint=name,
    )
