"""Aggregates by group, from accumulators.

Rules
  1. A line of the state is a group: its keys (`g0`, …), a hash of them, `_n` rows, and for each aggregate `_c` (its arguments that are not
     null) and `_s` (their sum, or the least of them, …).
  2. Where rows are only added, or an aggregate adds up exactly, the accumulators of the change are added to those of the group. Otherwise
     the accumulators of each group in the change are computed from all of its rows, which a bag keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.incremental.bag import HASH, Bag
from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, lines_of, listing, merging, nothing, same
from barnabas.incremental.database import Database
from barnabas.incremental.marks import MARKS, has_moved
from barnabas.incremental.plan import Column, Named, Sum, Sums, listed, quoted

ROWS = "_n"


class Accumulator:
    """How one aggregate is kept.

    Args:
        kind: of its sum in DuckDB, before the cast to the column's type.
    """

    def __init__(self, place: int, one: Sum, kind: str) -> None:
        self.one, self.kind = one, kind
        self.count, self.sum = f"_c{place}", f"_s{place}"

    @property
    def adds_exactly(self) -> bool:
        """Whether a row can be taken away from it."""
        return self.one.call == "count" or (self.one.call == "sum" and self.kind != "DOUBLE")

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Its columns and their types."""
        found = [(self.count, "BIGINT")] if self.one.call in ("count", "sum") else []
        return found if self.one.call == "count" else [*found, (self.sum, self.kind)]

    def made(self, is_plain: bool) -> list[str]:
        """The columns from rows; with weights unless these are all 1."""
        wanted = [self.one.filter] if self.one.filter else []
        where = _filter(wanted)
        if self.one.call not in ("count", "sum"):
            return [f"{self.one.call}({self.one.argument}){where} AS {self.sum}"]
        argument = self.one.argument
        if is_plain:
            count = f"count({argument or '*'}){where}"
            total = f"sum({argument}){where}"
        else:
            count = f"coalesce(sum({WEIGHT}){_filter([*wanted, f'({argument}) IS NOT NULL'] if argument else wanted)}, 0)"
            total = f"sum(({argument})::{self.kind} * {WEIGHT}){where}"
        found = [f"({count})::BIGINT AS {self.count}"]
        return found if self.one.call == "count" else [*found, f"({total})::{self.kind} AS {self.sum}"]

    def added(self) -> list[str]:
        """The columns of `d` (the change) and `o` (the group before) together."""
        count = f"coalesce(d.{self.count}, 0) + coalesce(o.{self.count}, 0) AS {self.count}"
        d, o = f"d.{self.sum}", f"o.{self.sum}"
        match self.one.call:
            case "count":
                return [count]
            case "sum":
                return [count, f"CASE WHEN {o} IS NULL THEN {d} WHEN {d} IS NULL THEN {o} ELSE {o} + {d} END AS {self.sum}"]
            case "min" | "max" as call:
                better = f"{d} < {o}" if call == "min" else f"{d} > {o}"
                return [f"CASE WHEN {o} IS NULL OR {better} THEN {d} ELSE {o} END AS {self.sum}"]
            case "bool_and":
                return [f"coalesce({o} AND {d}, {o}, {d}) AS {self.sum}"]
            case _:
                return [f"coalesce({o} OR {d}, {o}, {d}) AS {self.sum}"]

    def final(self) -> str:
        """The aggregate as a column."""
        value = self.count if self.one.call == "count" else self.sum
        if self.one.call == "sum":
            value = f"CASE WHEN {self.count} > 0 THEN {self.sum} END"
        return f"({value})::{self.one.kind} AS {quoted(self.one.name)}"


def _filter(conditions: Sequence[str]) -> str:
    return f" FILTER (WHERE {' AND '.join(f'({each})' for each in conditions)})" if conditions else ""


class SummedRows:
    """A row for each group.

    Args:
        columns: of the input.
        bag: the rows of the input, if the accumulators of a group are computed anew.
    """

    is_read = True  # by a node, or by a result with a state of its own

    def __init__(self, number: int, node: Sums, columns: Sequence[Column], kinds: Sequence[str], bag: Bag | None) -> None:
        self._number, self._node, self._columns, self._bag = number, node, columns, bag
        self._accumulators = accumulators(node, kinds)
        self._table = f"state.sums_{number}"
        self._keys = [f"g{place}" for place in range(len(node.keys))]
        self._hash = f"hash({', '.join(self._keys) or '0'})"
        self._touched = f"_touched_{number}"
        self._parts, self._old, self._next = f"_parts_{number}", f"_before_{number}", f"_after_{number}"
        if bag is not None:
            self._bag_key = bag.key("input_0", [_cast(each) for each in node.keys] or ["0"])
            bag.lets_go(node.until)

    def create(self, database: Database) -> None:
        columns = [f"{name} {each.kind}" for name, each in zip(self._keys, self._node.keys, strict=True)]
        columns += [f"{name} {kind}" for each in self._accumulators for name, kind in each.columns]
        database.run(f"CREATE TABLE {self._table} ({''.join(f'{each}, ' for each in columns)}{ROWS} BIGINT, {HASH} UBIGINT)")

    def rehash(self, database: Database) -> None:
        """Compute all hashes anew."""
        database.run(f"UPDATE {self._table} SET {HASH} = {self._hash}")

    def change(self, step: Step) -> Change:
        change = step.changes[self._node.input]
        if self._bag is not None:
            change = step.merged(self._node.input, self._columns)
        if change.rows == 0 and (self._keys or not step.is_first):
            return NOTHING
        self._accumulate(step, change)
        hashes = f"SELECT {HASH} FROM {self._parts if self._bag is None or not self._keys else self._touched}"
        step.make(self._old, lines_of(self._table, f"{HASH} IN ({hashes})", change.rows))
        step.make(self._next, self._joined())
        return step.change(f"_change_{self._number}", self._compared(step), (-1, 1)) if self.is_read else NOTHING

    def rows(self) -> str:
        """All rows, as a query."""
        return self._finals(self._table)

    def come(self, step: Step) -> str | None:
        """The rows of the groups in the step, as a query; None if the step has none."""
        return self._finals(self._next, f" WHERE {ROWS} > 0") if step.made(self._next) else None

    def gone(self) -> str:
        """The rows of the groups that have no rows after the step, as a query. Their keys are those of the groups."""
        return self._finals(self._next, f" WHERE {ROWS} <= 0 AND _r IS NOT NULL")

    def _accumulate(self, step: Step, change: Change) -> None:
        """The groups in the change, with accumulators: of the change alone, or of all their rows."""
        rows, is_plain = f"SELECT * FROM {change.relation}", change.is_plain
        if change.rows == 0:
            rows = f"SELECT {nothing(self._columns)}, 1::BIGINT AS {WEIGHT} WHERE false"
        if self._bag is not None:
            rows, is_plain = self._all_rows(step, rows), False
        keys = [f"{_cast(each)} AS {name}" for name, each in zip(self._keys, self._node.keys, strict=True)]
        count = "count(*)" if is_plain else f"coalesce(sum({WEIGHT}), 0)::BIGINT"
        made = [*keys, f"{count} AS {ROWS}", *(each for one in self._accumulators for each in one.made(is_plain))]
        grouped = f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}" if keys else ""
        sums = f"SELECT {', '.join(made)} FROM ({rows}) AS input_0{grouped}"
        step.make(self._parts, f"SELECT *, {self._hash} AS {HASH} FROM ({sums})")

    def _all_rows(self, step: Step, change: str) -> str:
        """The rows of the groups in the change, with those of the change."""
        assert self._bag is not None
        before, names = self._bag.weighted(), f"{listing(self._columns)}, {WEIGHT}"
        if self._keys:
            number = step.make(self._touched, f"SELECT DISTINCT {self._bag_key} AS {HASH} FROM ({self._bag.with_keys(change)})")
            lines = lines_of(self._bag.table, f"{self._bag_key} IN (SELECT {HASH} FROM {self._touched})", number)
            before = f"SELECT {names} FROM ({lines})"
        rows = merging(self._columns, f"{before} UNION ALL SELECT {names} FROM ({change})")
        step.make(f"_rows_{self._number}", rows)
        return f"SELECT * FROM _rows_{self._number} WHERE {WEIGHT} > 0"

    def _joined(self) -> str:
        """The lines after the step, with those before it as `_o…`."""
        keys = [f"CASE WHEN d.{HASH} IS NULL THEN o.{name} ELSE d.{name} END AS {name}" for name in self._keys]
        names = [name for each in self._accumulators for name, _ in each.columns]
        if self._bag is None:
            made = [each for one in self._accumulators for each in one.added()]
            made.append(f"coalesce(d.{ROWS}, 0) + coalesce(o.{ROWS}, 0) AS {ROWS}")
        else:
            made = [*(f"d.{name}" for name in names), f"coalesce(d.{ROWS}, 0) AS {ROWS}"]
        equal = same("d", "o", self._keys)
        hashes = f"coalesce(d.{HASH}, o.{HASH}) AS {HASH}, o._r"
        columns = ", ".join([*keys, *made, hashes])
        return f"SELECT {columns} FROM {self._parts} AS d FULL JOIN {self._old} AS o ON d.{HASH} = o.{HASH} AND {equal}"

    def _compared(self, step: Step) -> str:
        """The result's rows before the step with weight -1, those after it with 1."""
        after = f"SELECT *, 1::BIGINT AS {WEIGHT} FROM ({self._finals(self._next, f' WHERE {ROWS} > 0' if self._keys else '')})"
        if step.is_first:
            return after
        return f"SELECT *, -1::BIGINT AS {WEIGHT} FROM ({self._finals(self._old)}) UNION ALL {after}"

    def _finals(self, relation: str, where: str = "") -> str:
        keys = [f"{name} AS {quoted(each.name)}" for name, each in zip(self._keys, self._node.keys, strict=True)]
        inner = ", ".join([*keys, *(each.final() for each in self._accumulators)])
        return f"SELECT {listed(self._node.columns)} FROM (SELECT {inner} FROM {relation}{where})"

    def keep(self, step: Step) -> None:
        if not step.made(self._next):
            return
        names = [*self._keys, *(name for each in self._accumulators for name, _ in each.columns), ROWS]
        sets = ", ".join(f"{name} = m.{name}" for name in names[len(self._keys) :])
        alive = f"{ROWS} > 0" if self._keys else "true"
        database = step.database
        database.run(f"UPDATE {self._table} AS s SET {sets} FROM {self._next} AS m WHERE s.rowid = m._r")
        if self._keys:
            database.run(
                f"DELETE FROM {self._table} WHERE rowid IN (SELECT _r FROM {self._next} WHERE _r IS NOT NULL AND {ROWS} <= 0)"
            )
        columns = ", ".join([*names, HASH])
        database.run(f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {self._next} WHERE _r IS NULL AND {alive}")

    @property
    def forgets(self) -> bool:
        """Whether it forgets groups whose rows stay in the result."""
        return self._node.until is not None

    def forget(self, step: Step) -> None:
        """Forget the groups that no row can come to after the step. Their rows in the result stay."""
        until = self._node.until
        if until is None or not has_moved(step, until):
            return
        place = next(place for place, each in enumerate(self._node.keys) if each.sql == until.sql)
        step.database.run(f"DELETE FROM {self._table} WHERE {self._keys[place]} < (SELECT {until.bound} FROM {MARKS})")


def _cast(key: Named) -> str:
    return f"({key.sql})::{key.kind}"


def accumulators(node: Sums, kinds: Sequence[str]) -> list[Accumulator]:
    """Of all aggregates of a node; `kinds` are their types before the cast."""
    return [Accumulator(place, one, kind) for place, (one, kind) in enumerate(zip(node.sums, kinds, strict=True))]


def natural_kinds(database: Database, node: Sums, columns: Sequence[Column]) -> list[str]:
    """The types of a node's aggregates before the cast to the columns' types."""
    if not node.sums:
        return []
    calls = ", ".join(f"{each.call}({each.argument or '*'})" for each in node.sums)
    return database.kinds(f"SELECT {calls} FROM (SELECT {nothing(columns) or '0'}) AS input_0")
