"""A flow whose result only grows: it keeps the tables beside a stream, and gives the rows that the rows of each step make.

The nodes over tables alone are kept as in every flow. All nodes over streams are one query: over the rows of the step, and over the rows
that the tables have after it. The rows come in the order of the stream's rows. A node Final, and the nodes below it, are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from barnabas.incremental.append_only import is_kept, reason_against, streamed
from barnabas.incremental.bag import Bag
from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, listing, nothing, repeating
from barnabas.incremental.database import Database
from barnabas.incremental.flow import META, DuckFlow, Kept, Result, opened
from barnabas.incremental.inputs import ORDER, KeyedRows, given
from barnabas.incremental.interface import FlowError
from barnabas.incremental.plan import Groups, Input, Join, Less, Lookup, Plan, Rows, Union, listed, quoted
from barnabas.limits import MAX_JOB_APPENDED_ROWS

BEGUN = "state.begun"


def open_appending(plan: Plan, path: Path | None, memory_bytes: int, threads: int, setup: Sequence[str] = ()) -> AppendFlow:
    """As `open_flow`, for a plan whose rows can be appended. Raises FlowError."""
    reason = reason_against(plan)
    if reason is not None:
        raise FlowError(f"the rows of the plan cannot be appended: {reason}")
    return opened(AppendFlow, plan, path, memory_bytes, threads, setup)


class AppendFlow(DuckFlow):
    """Use `open_appending`. A step gives rows with the columns of the plan; none of them is kept."""

    def __init__(self, plan: Plan, database: Database) -> None:
        self._streams = streamed(plan)
        super().__init__(plan, database)

    def begin(self, tables: Iterable[Mapping[str, pa.Table]], begun: str) -> None:
        """Take step 0: the rows that the tables have at the beginning, in parts.

        Args:
            begun: a text that is kept as long as the state, for the caller.

        Raises:
            FlowError: nothing of the step remains.
        """
        with self._database.transaction():
            self._keep(Step(self._database, 0, {}))
            for part in tables:
                self._keep(Step(self._database, 1, part))
            self._database.run(f"INSERT INTO {BEGUN} VALUES (?)", [begun])
            self._database.run(f"UPDATE {META} SET position = 0")
        self._position = 0

    @property
    def begun(self) -> str | None:
        """The text that `begin` was given; None before."""
        found = self._database.one(f"SELECT max(note) FROM {BEGUN}")[0]
        return None if found is None else str(found)

    def _stepped(self, step: Step) -> pa.Table:
        self._keep(step, drops=False)
        rows = self._result.change(step)
        step.drop()
        return rows

    def _keep(self, step: Step, *, drops: bool = True) -> None:
        """Bring the tables up to a step."""
        self._marks.begin(step)
        for number, node in enumerate(self._nodes):
            step.changes[number] = node.change(step)
        for each in self._states:
            each.keep(step)
        for one in self._forgetting:
            one.forget(step)
        if drops:
            step.drop()

    def _node(self, number: int) -> Kept:
        return super()._node(number) if number not in self._streams or is_kept(self.plan, number) else _Streamed()

    def _shown(self) -> Result:
        above = [each for each in self._streams if not is_kept(self.plan, each)]
        beside = {each for number in above for each in self.plan.inputs_of(number)} - self._streams
        return AppendedRows(self.plan, self._streams, {number: self._bag(number) for number in sorted(beside)})


class _Streamed:
    """A node over streams: it has neither a state nor a change of its own."""

    def change(self, step: Step) -> Change:
        return NOTHING

    def create(self, database: Database) -> None:
        """It keeps nothing."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """It keeps nothing."""


class AppendedRows:
    """The query over the streams.

    Args:
        streams: the nodes over streams.
        bags: the rows of the nodes over tables that these read.
    """

    def __init__(self, plan: Plan, streams: frozenset[int], bags: Mapping[int, Bag]) -> None:
        self._plan, self._streams, self._bags = plan, streams, bags
        self._kept = {number for number in streams if is_kept(plan, number)}
        self._inputs = {number: node for number in sorted(streams) if isinstance(node := plan.nodes[number], Input)}

    def create(self, database: Database) -> None:
        database.run(f"CREATE TABLE {BEGUN} (note VARCHAR)")

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """It keeps no rows."""

    def forget(self, step: Step) -> None:
        """It keeps no rows."""

    def rows(self) -> str:
        raise FlowError("rows that were appended are not kept")

    def change(self, step: Step) -> pa.Table:
        """The rows of a step, after the tables were brought up to it."""
        taken = {number: given(step, node.table, [each.name for each in node.columns]) for number, node in self._inputs.items()}
        if all(each is None for each in taken.values()) and not any(step.changes[each].rows for each in self._kept):
            return step.database.table(f"SELECT {nothing(self._plan.columns)} WHERE false")
        given_names = []
        try:
            for number, rows in taken.items():
                if rows is not None:
                    given_names.append(f"_given_{number}")
                    step.database.give(given_names[-1], rows.append_column(ORDER, pa.array(np.arange(rows.num_rows))))
            parts = [f"n{number} AS ({self._text(number, taken, step)})" for number in sorted({*self._streams, *self._bags})]
            last = f"SELECT {listing(self._plan.columns)} FROM n{len(self._plan.nodes) - 1} ORDER BY {ORDER}"
            found = step.database.table(f"WITH {', '.join(parts)} {last} LIMIT {MAX_JOB_APPENDED_ROWS + 1}")
            if found.num_rows > MAX_JOB_APPENDED_ROWS:
                raise FlowError(
                    f"the records of one micro-batch make more than MAX_JOB_APPENDED_ROWS ({MAX_JOB_APPENDED_ROWS:,}) rows"
                )
            return found
        finally:
            for name in given_names:
                step.database.take_back(name)

    def _text(self, number: int, taken: Mapping[int, pa.Table | None], step: Step) -> str:
        """A node as a query; a node over streams has the column `_o`, the place of its row among those of the step."""
        if number in self._bags:
            bag = self._bags[number]
            if isinstance(bag, KeyedRows):
                return f"SELECT {listing(bag.columns)} FROM {bag.table}"
            return f"SELECT * EXCLUDE _n FROM (SELECT {listing(bag.columns)}, unnest(range({WEIGHT})) AS _n FROM {bag.table})"
        if number in self._kept:
            return f"SELECT *, 0 AS {ORDER} FROM ({repeating(self._plan.columns_of(number), step.changes[number])})"
        inputs = ", ".join(f"input_{place} AS (SELECT * FROM n{each})" for place, each in enumerate(self._plan.inputs_of(number)))
        match self._plan.nodes[number]:
            case Input(columns=columns):
                if taken[number] is None:
                    return f"SELECT {nothing(columns)}, 0 AS {ORDER} WHERE false"
                cast = "".join(f"{quoted(each.name)}::{each.kind} AS {quoted(each.name)}, " for each in columns)
                return f"SELECT {cast}{ORDER} FROM _given_{number}"
            case Lookup() as node:
                return f"WITH {inputs} {node.joined('FROM input_0', 'FROM input_1', f'input_0.{ORDER}')}"
            case Rows(columns=columns, where=where, source=source):
                made = f"WITH {inputs} SELECT {listed(columns)}, input_0.{ORDER} FROM {source}"
                return made + (f" WHERE {where}" if where else "")
            case Join(left=left, on=on, columns=columns):
                side = 0 if left in self._streams else 1
                return f"WITH {inputs} SELECT {listed(columns)}, input_{side}.{ORDER} FROM input_0 JOIN input_1 ON {on or 'true'}"
            case Union(inputs=several):
                return " UNION ALL ".join(f"SELECT * FROM n{each}" for each in several)
            case Less(input=one, less=less):
                return f"SELECT * FROM n{one} EXCEPT ALL SELECT * FROM n{less}"
            case Groups(query=query, columns=columns):
                return f"WITH {inputs} SELECT {listing(columns)}, {ORDER} FROM ({query})"
        raise FlowError(f"node {number} cannot be over a stream")
