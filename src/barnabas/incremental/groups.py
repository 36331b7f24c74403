"""Any query by key: computed again, before and after the step, over the rows of the keys in the change.

The result before the step must be the one that an earlier step gave, to the last bit. A sum of floating-point numbers depends on the
order of the rows. So a query with such columns reads its rows in the order of their values, in one thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from barnabas.incremental.bag import Bag
from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, lines_of, listing, merging, repeating
from barnabas.incremental.database import Database
from barnabas.incremental.interface import FlowError
from barnabas.incremental.plan import Groups, quoted
from barnabas.limits import MAX_VIEW_RECOMPUTED_ROWS

ROWS_OF_ONE_THREAD = 100_000  # DuckDB gives 122,880 rows of a table to one thread
REAL = re.compile("DOUBLE|FLOAT|REAL")


class GroupedRows:
    """A query with keys. The keys are compared by a hash: two keys with one hash are computed together, which changes no result.

    Args:
        kinds: of the keys, common to all inputs.
    """

    def __init__(self, number: int, node: Groups, bags: Sequence[Bag], kinds: Sequence[str]) -> None:
        self._number, self._node, self._bags = number, node, bags
        self._keys = []
        self._order = " ORDER BY ALL" if any(REAL.search(each.kind) for each in node.columns) else ""
        for place, (bag, keys) in enumerate(zip(bags, node.keys, strict=True)):
            cast = [f"({key})::{kind}" for key, kind in zip(keys, kinds, strict=True)]
            self._keys.append(bag.key(f"input_{place}", cast))
            bag.lets_go(node.until[place] if node.until else None)

    def create(self, database: Database) -> None:
        """Its bags keep all."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """Its bags keep all."""

    def change(self, step: Step) -> Change:
        changes = [step.merged(bag.node, bag.columns) for bag in self._bags]
        if not any(each.rows for each in changes):
            return NOTHING
        touched = f"_touched_{self._number}"
        hashes = [
            f"SELECT {key} AS _k FROM ({bag.with_keys(f'SELECT * FROM {change.relation}')})"
            for bag, key, change in zip(self._bags, self._keys, changes, strict=True)
            if change.rows
        ]
        number = step.make(touched, f"SELECT DISTINCT _k FROM ({' UNION ALL '.join(hashes)})")
        before, after = [], []
        for place, (bag, key, change) in enumerate(zip(self._bags, self._keys, changes, strict=True)):
            name = f"_{self._number}_{place}"
            lines = lines_of(bag.table, f"{key} IN (SELECT _k FROM {touched})", number)
            rows = step.change(f"_before{name}", f"SELECT {listing(bag.columns)}, {WEIGHT} FROM ({lines}){self._order}")
            before.append(rows)
            after.append(added(step, f"_after{name}", bag, rows, change, self._order))
        old = computed(self._node, self._bags, before, -1)
        new = computed(self._node, self._bags, after, 1)
        several = merging(self._node.columns, f"{old} UNION ALL {new}")
        if self._order and sum(each.rows for each in (*before, *after)) > ROWS_OF_ONE_THREAD:
            with step.database.one_thread():
                return step.change(f"_change_{self._number}", several)
        return step.change(f"_change_{self._number}", several)


class WholeRows:
    """A query without keys: all rows are computed at each change. The result before the step is kept."""

    def __init__(self, number: int, node: Groups, bags: Sequence[Bag]) -> None:
        self._number, self._node, self._bags = number, node, bags
        self._table = f"state.result_of_{number}"
        for bag in bags:
            bag.lets_go(None)

    def create(self, database: Database) -> None:
        columns = ", ".join(f"{quoted(each.name)} {each.kind}" for each in self._node.columns)
        database.run(f"CREATE TABLE {self._table} ({columns}, {WEIGHT} BIGINT)")

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def change(self, step: Step) -> Change:
        changes = [step.merged(bag.node, bag.columns) for bag in self._bags]
        if not any(each.rows for each in changes) and not step.is_first:
            return NOTHING
        after = []
        for place, (bag, change) in enumerate(zip(self._bags, changes, strict=True)):
            rows = bag.lines(step.database)
            if rows.rows + change.rows > MAX_VIEW_RECOMPUTED_ROWS:
                raise FlowError(
                    f"a query without keys would read more than MAX_VIEW_RECOMPUTED_ROWS ({MAX_VIEW_RECOMPUTED_ROWS:,}) rows at each change"
                )
            after.append(added(step, f"_after_{self._number}_{place}", bag, rows, change))
        old = f"SELECT {listing(self._node.columns)}, -{WEIGHT} AS {WEIGHT} FROM {self._table}"
        new = computed(self._node, self._bags, after, 1)
        return step.change(f"_change_{self._number}", merging(self._node.columns, f"{old} UNION ALL {new}"))

    def keep(self, step: Step) -> None:
        change = step.changes[self._number]
        if change.rows == 0:
            return
        names = f"{listing(self._node.columns)}, {WEIGHT}"
        all_rows = f"SELECT {names} FROM {self._table} UNION ALL SELECT {names} FROM {change.relation}"
        step.make(f"_result_{self._number}", merging(self._node.columns, all_rows))
        step.database.run(f"DELETE FROM {self._table}")
        step.database.run(f"INSERT INTO {self._table} SELECT {names} FROM _result_{self._number}")


def added(step: Step, name: str, bag: Bag, rows: Change, change: Change, order: str = "") -> Change:
    """Rows before a step with its change."""
    if change.rows == 0:
        return rows
    names = f"{listing(bag.columns)}, {WEIGHT}"
    sql = " UNION ALL ".join(f"SELECT {names} FROM {each.relation}" for each in (rows, change) if each.rows)
    return step.change(name, f"SELECT * FROM ({merging(bag.columns, sql) if change.lowest < 0 else sql}){order}")


def computed(node: Groups, bags: Sequence[Bag], rows: Sequence[Change], weight: int) -> str:
    """The query over rows, with a weight."""
    inputs = ", ".join(
        f"input_{place} AS ({repeating(bag.columns, each)})" for place, (bag, each) in enumerate(zip(bags, rows, strict=True))
    )
    names = listing(node.columns)
    kinds = ", ".join(f"{quoted(each.name)}::{each.kind} AS {quoted(each.name)}" for each in node.columns)
    query = (
        f"WITH {inputs}{', ' if inputs else ''}q({names}) AS ({node.query}) SELECT {kinds}, {weight}::BIGINT AS {WEIGHT} FROM q"
    )
    return f"SELECT * FROM ({query})"
