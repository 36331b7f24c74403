"""The plan of a query that is kept: nodes, each with the way in which its result follows from its inputs.

Rules
  1. A node's inputs are earlier nodes. In SQL texts they are relations `input_0`, `input_1`, … ; the dialect is DuckDB's.
  2. Every text depends on rows alone: no clock, no random numbers, no other tables.
  3. `Plan.query` is the same query for all rows at once. After each step, the result of a flow equals it.
  4. A plan is stored as JSON with its job, so that a restart continues with the plan that made the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from barnabas.functions.definition import Function


class Column(Struct, frozen=True):
    """A column. `kind` is its type in DuckDB's words."""

    name: str
    kind: str


class Named(Struct, frozen=True):
    """A column that an expression makes."""

    name: str
    kind: str
    sql: str


class Input(Struct, frozen=True, tag="input"):
    """The rows of a table.

    Args:
        table: its name among the inputs of a step.
        is_keyed: whether a row replaces the row with the same `_key`, and a deletion removes it; otherwise rows are only added.
    """

    table: str
    columns: tuple[Column, ...]
    is_keyed: bool = False


class Rows(Struct, frozen=True, tag="rows"):
    """Makes rows of each row by itself: projections, filters, `unnest`.

    Args:
        source: the text behind FROM; it may add lateral tables that depend on the row alone.
    """

    input: int
    columns: tuple[Named, ...]
    where: str | None = None
    source: str = "input_0"


class Join(Struct, frozen=True, tag="join"):
    """The inner join of two inputs.

    Args:
        on: the condition; None for all pairs.
    """

    left: int
    right: int
    on: str | None
    columns: tuple[Named, ...]


class Sum(Struct, frozen=True):
    """An aggregate that one row can be added to, and one of `count` and `sum` taken from.

    Args:
        call: count, sum, min, max, bool_and or bool_or.
        kind: of its result. A sum of integers is HUGEINT, of decimals DECIMAL(38, s), of others DOUBLE.
        argument: None for `count(*)`.
        filter: rows for which it is not true do not count.
    """

    name: str
    kind: str
    call: str
    argument: str | None = None
    filter: str | None = None


class Sums(Struct, frozen=True, tag="sums"):
    """Aggregates by group. Without keys there is one row, also if there is no input.

    Args:
        keys: the groups; nulls are one group.
        columns: of the result, over the names of `keys` and `sums`.
    """

    input: int
    keys: tuple[Named, ...]
    sums: tuple[Sum, ...]
    columns: tuple[Named, ...]


class Groups(Struct, frozen=True, tag="groups"):
    """Any query whose result for one key depends on the rows with that key alone. A change recomputes the keys that it touches.

    Args:
        keys: for each input the expressions of its keys, as many for each; none: every change recomputes everything.
        query: over `input_0`, … .
    """

    inputs: tuple[int, ...]
    keys: tuple[tuple[str, ...], ...]
    query: str
    columns: tuple[Column, ...]


class Union(Struct, frozen=True, tag="union"):
    """The rows of all inputs, with the columns' names of the first."""

    inputs: tuple[int, ...]


class Less(Struct, frozen=True, tag="less"):
    """The rows of one input without those of another.

    The first input has all rows of the second, each at least as often, and the same columns.
    """

    input: int
    less: int


Node = Input | Rows | Join | Sums | Groups | Union | Less


class Plan(Struct, frozen=True):
    """The nodes; the last one is the result.

    Args:
        key: the columns of the result that identify a row. None: equal rows are told apart by a number, and the column `_row` identifies
            them.
        hidden: columns of the result that only identify rows, and that the view does not show.
        functions: of users, which the texts call. The plan has them whole, so that another definition changes no view.
    """

    nodes: tuple[Node, ...]
    key: tuple[str, ...] | None = None
    hidden: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return self.columns_of(len(self.nodes) - 1)

    @property
    def tables(self) -> Mapping[str, Input]:
        """The inputs by their names; a table that is read twice has one node."""
        return {each.table: each for each in self.nodes if isinstance(each, Input)}

    def columns_of(self, number: int) -> tuple[Column, ...]:
        """The columns of a node."""
        node = self.nodes[number]
        if isinstance(node, (Union, Less)):
            return self.columns_of(self.inputs_of(number)[0])
        return tuple(Column(each.name, each.kind) for each in node.columns)

    def inputs_of(self, number: int) -> Sequence[int]:
        """The nodes that a node reads."""
        match self.nodes[number]:
            case Input():
                return ()
            case Rows(input=one) | Sums(input=one):
                return (one,)
            case Join(left=left, right=right) | Less(input=left, less=right):
                return left, right
            case Groups(inputs=inputs) | Union(inputs=inputs):
                return inputs

    def only_grows(self, number: int) -> bool:
        """Whether rows of a node are only added, never taken away."""
        match self.nodes[number]:
            case Input(is_keyed=is_keyed):
                return not is_keyed
            case Rows() | Join() | Union():
                return all(self.only_grows(each) for each in self.inputs_of(number))
            case _:
                return False

    def query(self) -> str:
        """The whole query, over relations with the names of the tables."""
        parts = [f"n{number} AS ({self._text(number)})" for number in range(len(self.nodes))]
        return f"WITH {', '.join(parts)} SELECT * FROM n{len(self.nodes) - 1}"

    def _text(self, number: int) -> str:
        node = self.nodes[number]
        inputs = ", ".join(f"input_{place} AS (SELECT * FROM n{each})" for place, each in enumerate(self.inputs_of(number)))
        match node:
            case Input(table=table, columns=columns):
                return f"SELECT {', '.join(quoted(each.name) for each in columns)} FROM {quoted(table)}"
            case Rows(columns=columns, where=where, source=source):
                return f"WITH {inputs} SELECT {listed(columns)} FROM {source}" + (f" WHERE {where}" if where else "")
            case Join(on=on, columns=columns):
                return f"WITH {inputs} SELECT {listed(columns)} FROM input_0 JOIN input_1 ON {on or 'true'}"
            case Sums(keys=keys, sums=sums, columns=columns):
                inner = [*(f"{each.sql} AS {quoted(each.name)}" for each in keys), *(call_of(each) for each in sums)]
                grouped = f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}" if keys else ""
                return f"WITH {inputs} SELECT {listed(columns)} FROM (SELECT {', '.join(inner)} FROM input_0{grouped})"
            case Groups(query=query, columns=columns):
                names = ", ".join(quoted(each.name) for each in columns)
                kinds = ", ".join(f"{quoted(each.name)}::{each.kind} AS {quoted(each.name)}" for each in columns)
                return f"WITH {inputs}{', ' if inputs else ''}q({names}) AS ({query}) SELECT {kinds} FROM q"
            case Union(inputs=several):
                return " UNION ALL ".join(f"SELECT * FROM n{each}" for each in several)
            case Less(input=one, less=less):
                return f"SELECT * FROM n{one} EXCEPT ALL SELECT * FROM n{less}"


def listed(columns: Sequence[Named]) -> str:
    """Columns of a SELECT."""
    return ", ".join(f"({each.sql})::{each.kind} AS {quoted(each.name)}" for each in columns)


def call_of(one: Sum) -> str:
    """An aggregate as a column of a SELECT."""
    condition = f" FILTER (WHERE {one.filter})" if one.filter else ""
    return f"({one.call}({one.argument or '*'}){condition})::{one.kind} AS {quoted(one.name)}"


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def encode(plan: Plan) -> bytes:
    """A plan as JSON."""
    return msgspec.json.encode(plan)


def decode(payload: bytes) -> Plan:
    """Raises msgspec.MsgspecError."""
    return msgspec.json.decode(payload, type=Plan)
