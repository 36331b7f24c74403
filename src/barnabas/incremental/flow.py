"""A flow whose state lies in DuckDB.

A step is one transaction. The changes of the nodes are computed in their order, each from the changes of its inputs and from the rows
before the step. Then every state is brought up to the step. The number of the step lies in the state, too. So a process that dies leaves
the state of the last step that was committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import duckdb
import msgspec
import pyarrow as pa

from barnabas.incremental.bag import Bag
from barnabas.incremental.changes import Change, Step, listing, nothing
from barnabas.incremental.database import Database, failing
from barnabas.incremental.final import FinalRows
from barnabas.incremental.groups import GroupedRows, WholeRows
from barnabas.incremental.inputs import AddedRows, KeyedRows
from barnabas.incremental.interface import DELETED, FlowError, Size
from barnabas.incremental.join import JoinedRows, LookedUpRows
from barnabas.incremental.marks import Marks, OnTimeRows
from barnabas.incremental.plan import (
    Final,
    Groups,
    Input,
    Join,
    Less,
    Lookup,
    OnTime,
    Plan,
    Rows,
    Sessions,
    Sums,
    Union,
    decode,
    encode,
)
from barnabas.incremental.result import CountedResult, KeyedResult, SummedResult, is_of_groups, let_go
from barnabas.incremental.rows import AllRows, FewerRows, MadeRows
from barnabas.incremental.sessions import SessionRows, as_groups
from barnabas.incremental.sums import SummedRows, accumulators, natural_kinds

META = "state.flow"


class State(Protocol):
    """What is kept from step to step."""

    def create(self, database: Database) -> None:
        """Make it, empty."""

    def rehash(self, database: Database) -> None:
        """Compute its hashes anew."""

    def keep(self, step: Step) -> None:
        """Bring it up to the step."""


class Forgetting(Protocol):
    """A state that watermarks bound."""

    def forget(self, step: Step) -> None:
        """Forget what cannot change after the step."""


class Result(State, Forgetting, Protocol):
    """The result, from the changes of the nodes."""

    def change(self, step: Step) -> pa.Table:
        """The changes that the caller gets."""

    def rows(self) -> str:
        """All rows, as a query."""


class Kept(State, Protocol):
    """A node of the plan."""

    def change(self, step: Step) -> Change:
        """Its change, from the changes of its inputs and the state before the step."""


def open_flow(plan: Plan, path: Path | None, memory_bytes: int, threads: int, setup: Sequence[str] = ()) -> DuckFlow:
    """Open the state of a plan, or make it.

    Args:
        path: of the file; None: in memory.
        memory_bytes: for queries and cached state; what does not fit is written to the disk, beside the file.
        setup: statements that define functions which the plan uses.

    Raises:
        FlowError: the file belongs to another plan or process, or is none; or a text of the plan is wrong.
    """
    return opened(DuckFlow, plan, path, memory_bytes, threads, setup)


F = TypeVar("F", bound="DuckFlow")


def opened(kind: type[F], plan: Plan, path: Path | None, memory_bytes: int, threads: int, setup: Sequence[str] = ()) -> F:
    """The same for one kind of flow."""
    database = Database(path, memory_bytes, threads, setup, plan.functions)
    try:
        return kind(plan, database)
    except BaseException:
        database.close()
        raise


class DuckFlow:
    """Use `open_flow`."""

    def __init__(self, plan: Plan, database: Database) -> None:
        self._plan, self._database = plan, database
        self._marks = Marks(plan)
        self._bags: dict[int, Bag] = {}
        self._own: list[Bag] = []  # of one node each
        self._nodes: list[Kept] = []
        for number in range(len(plan.nodes)):
            self._nodes.append(self._node(number))
        self._result: Result = self._shown()
        bags = [each for each in self._bags.values() if not isinstance(each, KeyedRows)]
        self._states: list[State] = [*self._nodes, *bags, *self._own, self._result]
        forgetting: list[Forgetting] = [*bags, self._result]
        forgetting += [each for each in self._nodes if isinstance(each, (SummedRows, SessionRows))]
        self._forgetting = forgetting if self._marks else []
        self._open: tuple[int, str] | None = None
        self._position, self._note = self._start()

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def position(self) -> int:
        return self._position

    @property
    def note(self) -> str:
        return self._note

    def step(self, number: int, inputs: Mapping[str, pa.Table], note: str = "") -> pa.Table:
        self.rollback()
        if number != self._position + 1:
            raise FlowError(f"step {number} does not follow step {self._position}")
        self._database.run("BEGIN")
        self._open = number, note
        try:
            changes = self._stepped(Step(self._database, number, inputs))
            self._database.run(f"UPDATE {META} SET position = ?, note = ?", [number, note])
            return changes
        except BaseException:
            self.rollback()
            raise

    def _stepped(self, step: Step) -> pa.Table:
        self._marks.begin(step)
        for number, node in enumerate(self._nodes):
            step.changes[number] = node.change(step)
        changes = self._result.change(step)
        for each in self._states:
            each.keep(step)
        for one in self._forgetting:
            one.forget(step)
        step.drop()
        return changes

    def commit(self) -> None:
        assert self._open is not None, "no step is open"
        try:
            self._database.run("COMMIT")
        except BaseException:
            self.rollback()
            raise
        (self._position, self._note), self._open = self._open, None

    def rollback(self) -> None:
        if self._open is not None:
            self._open = None
            self._database.undo()

    def result(self) -> pa.Table:
        return self._query(f"SELECT {listing(self.plan.columns)} FROM ({self._result.rows()})")

    def snapshot(self) -> pa.Table:
        return self._query(f"SELECT *, false AS {DELETED} FROM ({self._result.rows()})")

    def _query(self, text: str) -> pa.Table:
        cursor = self._database.committed()
        try:
            with failing():
                rows: pa.Table = cursor.sql(text).to_arrow_table()
                return rows
        finally:
            cursor.close()

    def release(self) -> None:
        if self._marks and self._open is None:
            with self._database.transaction():
                self._marks.release(self._database)
                if self.plan.until is not None:
                    let_go(self._database, self.plan.until)

    def late(self) -> int:
        return self._marks.late(self._database)

    def size(self) -> Size:
        return self._database.size()

    def close(self) -> None:
        self.rollback()
        self._database.close()

    def _start(self) -> tuple[int, str]:
        """Make the state, or check that it is this plan's; gives the position and the note."""
        if not self._database.has(META):
            self._create()
        self._database.run(f"ALTER TABLE {META} ADD COLUMN IF NOT EXISTS note VARCHAR DEFAULT ''")  # an older state has none
        payload, position, version, note = self._database.one(f"SELECT plan, position, version, note FROM {META}")
        try:
            same = decode(payload) == self._plan
        except msgspec.MsgspecError:
            same = False
        if not same:
            raise FlowError("the state was made by another plan")
        if version != duckdb.__version__:
            self._rehash()
        return int(position), str(note)

    def _create(self) -> None:
        with self._database.transaction():
            self._marks.create(self._database)
            for each in self._states:
                each.create(self._database)
            self._database.run(f"CREATE TABLE {META} (plan BLOB, position BIGINT, version VARCHAR, note VARCHAR)")
            self._database.run(f"INSERT INTO {META} VALUES (?, -1, ?, '')", [encode(self._plan), duckdb.__version__])

    def _rehash(self) -> None:
        """Another version of DuckDB may compute other hashes."""
        with self._database.transaction():
            for each in self._states:
                each.rehash(self._database)
            self._database.run(f"UPDATE {META} SET version = ?", [duckdb.__version__])

    def _shown(self) -> Result:
        plan, last = self._plan, len(self._plan.nodes) - 1
        node = self._nodes[last]
        if plan.key is None:
            return CountedResult(last, plan.columns, plan.until)
        if isinstance(node, SummedRows) and not node.forgets and is_of_groups(plan.nodes[last], plan.key):
            return SummedResult(node, plan.columns, plan.key)
        return KeyedResult(last, plan.columns, plan.key, plan.until)

    def _bag(self, number: int) -> Bag:
        """The bag of a node's rows, which all nodes above it share."""
        return self._bags.setdefault(number, Bag(number, self._plan.columns_of(number)))

    def _node(self, number: int) -> Kept:
        plan = self._plan
        match plan.nodes[number]:
            case Input(is_keyed=True) as node:
                keyed = KeyedRows(number, node)
                self._bags[number] = keyed
                return keyed
            case Input() as node:
                return AddedRows(number, node)
            case OnTime() | Final() | Sessions() as node:
                return self._timed(number, node)
            case Rows() as node:
                return MadeRows(number, node)
            case Union() as node:
                return AllRows(number, node, [plan.columns_of(each) for each in node.inputs])
            case Less() as node:
                return FewerRows(number, node, plan.columns_of(number))
            case Join(left=left, right=right) as node:
                return JoinedRows(number, node, self._bag(left), self._bag(right))
            case Lookup(left=left, right=right) as node:
                return LookedUpRows(number, node, plan.columns_of(left), self._bag(right))
            case Sums() as node:
                return self._sums(number, node)
            case Groups() as node:
                bags = [self._bag(each) for each in node.inputs]
                if not any(node.keys):
                    return WholeRows(number, node, bags)
                return GroupedRows(number, node, bags, self._key_kinds(node, bags))

    def _timed(self, number: int, node: OnTime | Final | Sessions) -> Kept:
        """A node about time. A bag of its own has the rows that it waits for."""
        columns = self._plan.columns_of(node.input)
        match node:
            case OnTime():
                return OnTimeRows(number, node)
            case Final():
                return FinalRows(number, node, columns)
            case Sessions():
                own = Bag(node.input, columns, f"state.open_{number}")
                self._own.append(own)
                return SessionRows(number, node, own, self._key_kinds(as_groups(node), [own]))

    def _sums(self, number: int, node: Sums) -> SummedRows:
        columns = self._plan.columns_of(node.input)
        kinds = natural_kinds(self._database, node, columns)
        is_exact = self._plan.only_grows(node.input) or all(each.adds_exactly for each in accumulators(node, kinds))
        return SummedRows(number, node, columns, kinds, None if is_exact else self._bag(node.input))

    def _key_kinds(self, node: Groups, bags: Sequence[Bag]) -> list[str]:
        """The types of the keys, to which the keys of all inputs can be cast."""
        parts = [
            f"SELECT {', '.join(keys)} FROM (SELECT {nothing(bag.columns)}) AS input_{place}"
            for place, (bag, keys) in enumerate(zip(bags, node.keys, strict=True))
        ]
        return self._database.kinds(" UNION ALL ".join(parts))
