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
        is_stream: whether the query reads it as a stream. A flow that appends rows gives each row of a stream once, and forgets it.
    """

    table: str
    columns: tuple[Column, ...]
    is_keyed: bool = False
    is_stream: bool = False


class Until(Struct, frozen=True):
    """Tells which rows of a node cannot change any more, nor meet another row: those for which an expression is below a bound.

    Args:
        sql: over the row, which is `input_0`.
        bound: over the columns `w0`, … of `marks`: the watermarks of the nodes `OnTime` by their numbers. It is null until all of them
            have rows.
    """

    sql: str
    bound: str

    @property
    def condition(self) -> str:
        """Over the row and `marks`; null where nothing is known."""
        return f"({self.sql}) < ({self.bound})"


class OnTime(Struct, frozen=True, tag="on_time"):
    """The rows of a table without those that come too late: below the watermark, or without a time.

    The watermark of a step is the greatest value of an expression in the rows of earlier steps. It never falls.

    Args:
        input: a table whose rows are only added.
        time: the column with the time.
        watermark: the expression, over `input_0`; of the type of the column.
    """

    input: int
    columns: tuple[Column, ...]
    time: str
    watermark: str

    @property
    def kind(self) -> str:
        """The type of the time."""
        return next(each.kind for each in self.columns if each.name == self.time)

    def is_late(self, mark: str) -> str:
        """The condition for a late row, with the watermark before the step as text of SQL."""
        time = f"input_0.{quoted(self.time)}"
        return f"({time} IS NULL OR coalesce({time} < {mark}, false))"


class Final(Struct, frozen=True, tag="final"):
    """The rows of a node that cannot change any more. Each of them comes once and is never taken back."""

    input: int
    columns: tuple[Column, ...]
    until: Until


class Sessions(Struct, frozen=True, tag="sessions"):
    """The rows of a table, each with the bounds of its session: rows of a key whose times are at most a gap apart are in one.

    Args:
        at: the time, an expression over `input_0`; rows with a null are one session.
        gap: an interval, in SQL.
        columns: of the input, and after them the begin of the session, and its last time plus the gap.
        until: of the rows of the result.
    """

    input: int
    keys: tuple[str, ...]
    at: str
    gap: str
    columns: tuple[Column, ...]
    until: Until | None = None

    @property
    def query(self) -> str:
        """Over `input_0`."""
        own = ", ".join(f"input_0.{quoted(each.name)}" for each in self.columns[:-2])
        by = f"PARTITION BY {', '.join(self.keys)} " if self.keys else ""
        first, last = (quoted(each.name) for each in self.columns[-2:])
        up, down = f"({by}ORDER BY __t NULLS LAST)", f"({by}ORDER BY __t DESC NULLS LAST)"
        timed = f"SELECT *, {self.at} AS __t FROM input_0"
        marked = (
            f"SELECT *, CASE WHEN coalesce(__t <= lag(__t) OVER {up} + {self.gap}, false) THEN NULL ELSE __t END AS __first, "
            f"CASE WHEN coalesce(lead(__t) OVER {up} <= __t + {self.gap}, false) THEN NULL ELSE __t END AS __last FROM ({timed}) AS input_0"
        )
        bounds = f"max(__first) OVER {up} AS __begin, min(__last) OVER {down} + {self.gap} AS __end"
        shown = f"CASE WHEN __t IS NOT NULL THEN __begin END AS {first}, CASE WHEN __t IS NOT NULL THEN __end END AS {last}"
        return f"SELECT {own}, {shown} FROM (SELECT *, {bounds} FROM ({marked}) AS input_0) AS input_0"


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
        until: of the rows of both inputs.
    """

    left: int
    right: int
    on: str | None
    columns: tuple[Named, ...]
    until: tuple[Until | None, Until | None] = (None, None)


class Lookup(Struct, frozen=True, tag="lookup"):
    """Each row of the left input joined with the rows that the right one has after the step of the row. Later changes of the right input
    change nothing.

    Args:
        left: rows are only added to it.
        is_left: whether a row without a partner stays, with nulls.
    """

    left: int
    right: int
    on: str | None
    columns: tuple[Named, ...]
    is_left: bool = False

    def joined(self, left: str, right: str, *extra: str) -> str:
        """The query over two relations."""
        word = "LEFT JOIN" if self.is_left else "JOIN"
        columns = ", ".join([listed(self.columns), *extra])
        return f"SELECT {columns} FROM ({left}) AS input_0 {word} ({right}) AS input_1 ON {self.on or 'true'}"


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
        until: of the rows of the input; the expression is one of the keys.
    """

    input: int
    keys: tuple[Named, ...]
    sums: tuple[Sum, ...]
    columns: tuple[Named, ...]
    until: Until | None = None


class Groups(Struct, frozen=True, tag="groups"):
    """Any query whose result for one key depends on the rows with that key alone. A change recomputes the keys that it touches.

    Args:
        keys: for each input the expressions of its keys, as many for each; none: every change recomputes everything.
        query: over `input_0`, … .
        until: of the rows of each input; none: all of them stay.
        is_filter: whether it is `SELECT * FROM input_0` with a condition that depends on the row and on other inputs.
    """

    inputs: tuple[int, ...]
    keys: tuple[tuple[str, ...], ...]
    query: str
    columns: tuple[Column, ...]
    until: tuple[Until | None, ...] = ()
    is_filter: bool = False


class Union(Struct, frozen=True, tag="union"):
    """The rows of all inputs, with the columns' names of the first."""

    inputs: tuple[int, ...]


class Less(Struct, frozen=True, tag="less"):
    """The rows of one input without those of another.

    The first input has all rows of the second, each at least as often, and the same columns.
    """

    input: int
    less: int


Node = Input | OnTime | Rows | Join | Lookup | Sums | Groups | Sessions | Union | Less | Final


class Plan(Struct, frozen=True):
    """The nodes; the last one is the result.

    Args:
        key: the columns of the result that identify a row. None: equal rows are told apart by a number, and the column `_row` identifies
            them.
        hidden: columns of the result that only identify rows, and that the view does not show.
        until: of the rows of the result.
        functions: of users, which the texts call. The plan has them whole, so that another definition changes no view.
    """

    nodes: tuple[Node, ...]
    key: tuple[str, ...] | None = None
    hidden: tuple[str, ...] = ()
    until: Until | None = None
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
            case Rows(input=one) | Sums(input=one) | OnTime(input=one) | Sessions(input=one) | Final(input=one):
                return (one,)
            case Join(left=left, right=right) | Lookup(left=left, right=right) | Less(input=left, less=right):
                return left, right
            case Groups(inputs=inputs) | Union(inputs=inputs):
                return inputs

    def only_grows(self, number: int) -> bool:
        """Whether rows of a node are only added, never taken away."""
        match self.nodes[number]:
            case Input(is_keyed=is_keyed):
                return not is_keyed
            case Final():
                return True
            case Lookup(left=left):
                return self.only_grows(left)
            case Rows() | Join() | Union() | OnTime():
                return all(self.only_grows(each) for each in self.inputs_of(number))
            case _:
                return False

    @property
    def lookups(self) -> Mapping[int, Lookup]:
        """The nodes whose rows depend on the step in which they came, by their numbers."""
        return {number: each for number, each in enumerate(self.nodes) if isinstance(each, Lookup)}

    @property
    def marks(self) -> Mapping[int, OnTime]:
        """The nodes with watermarks, by their numbers."""
        return {number: each for number, each in enumerate(self.nodes) if isinstance(each, OnTime)}

    def query(self, last: int | None = None) -> str:
        """The whole query, over relations with the names of the tables, `marks` if there are watermarks, and `looked_3` for a lookup 3.

        Late rows are not among those of the tables.

        Args:
            last: another node than the last.
        """
        last = len(self.nodes) - 1 if last is None else last
        parts = [f"n{number} AS ({self._text(number)})" for number in range(last + 1)]
        return f"WITH {', '.join(parts)} SELECT * FROM n{last}"

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
            case OnTime():
                return f"SELECT * FROM n{node.input}"
            case Lookup(columns=columns):
                return f"SELECT {', '.join(quoted(each.name) for each in columns)} FROM looked_{number}"
            case Final(input=one, until=until):
                return f"SELECT input_0.* FROM n{one} AS input_0, marks WHERE {until.condition}"
            case Groups(query=query, columns=columns) | Sessions(query=query, columns=columns):
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


_DECODER = msgspec.json.Decoder(Plan)  # made at import, because threads must not make it at once


def encode(plan: Plan) -> bytes:
    """A plan as JSON."""
    return msgspec.json.encode(plan)


def decode(payload: bytes) -> Plan:
    """Raises msgspec.MsgspecError."""
    return _DECODER.decode(payload)
