"""The nodes of a plan while it is made. Types are DuckDB's answers about empty rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from barnabas.incremental.plan import (
    Column,
    Final,
    Groups,
    Input,
    Join,
    Less,
    Lookup,
    Node,
    OnTime,
    Plan,
    Rows,
    Sessions,
    Sums,
    Union,
    quoted,
)
from barnabas.sql.continuous.simplify import is_identity, simplified


class Nodes:
    """The nodes by their numbers; equal nodes are one.

    Args:
        cursor: of a DuckDB that knows the functions of the dialect.
    """

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self._found: list[Node] = []
        self._numbers: dict[Node, int] = {}

    def add(self, node: Node) -> int:
        """The number of a node."""
        if node not in self._numbers:
            self._numbers[node] = len(self._found)
            self._found.append(node)
        return self._numbers[node]

    def node(self, number: int) -> Node:
        """A node by its number."""
        return self._found[number]

    def columns(self, number: int) -> tuple[Column, ...]:
        """The columns of a node."""
        return Plan(tuple(self._found)).columns_of(number)

    def kinds(self, text: str, inputs: Sequence[Sequence[Column]]) -> list[Column]:
        """The columns of a query over `input_0`, … . Raises duckdb.Error."""
        parts = [f"input_{place} AS (SELECT {_nothing(columns)} WHERE false)" for place, columns in enumerate(inputs)]
        prefix = f"WITH {', '.join(parts)} " if parts else ""
        found = self.cursor.execute(f"DESCRIBE {prefix}SELECT * FROM ({text})").fetchall()
        return [Column(row[0], row[1]) for row in found]

    def plan(self, last: int, key: tuple[str, ...] | None, hidden: tuple[str, ...]) -> Plan:
        """The plan whose result is a node, without the nodes that it does not need."""
        nodes, last = _needed(self._found, last)
        nodes, last = _without_identities(nodes, last)
        nodes, last = _needed(simplified(nodes), last)
        return Plan(tuple(nodes), key, hidden)


def _needed(nodes: Sequence[Node], last: int) -> tuple[list[Node], int]:
    """The nodes that one of them reads, and itself, which becomes the last."""
    whole = Plan(tuple(nodes))
    wanted, pending = set[int](), [last]
    while pending:
        number = pending.pop()
        if number not in wanted:
            wanted.add(number)
            pending += whole.inputs_of(number)
    order = [*sorted(wanted - {last}), last]
    numbers = {number: place for place, number in enumerate(order)}
    return [moved(nodes[number], numbers) for number in order], len(order) - 1


def _without_identities(nodes: Sequence[Node], last: int) -> tuple[list[Node], int]:
    """The nodes without those that give the rows of another one as they are."""
    whole = Plan(tuple(nodes))
    instead: dict[int, int] = {}
    for number, node in enumerate(nodes):
        below = next(iter(whole.inputs_of(number)), number)
        instead[number] = instead[below] if is_identity(node, whole) else number
    found = [moved(node, instead) for node in nodes]
    return _needed(found, instead[last])


def _nothing(columns: Sequence[Column]) -> str:
    return ", ".join(f"NULL::{each.kind} AS {quoted(each.name)}" for each in columns) or "0 AS _none"


def moved(node: Node, numbers: Mapping[int, int]) -> Node:
    """A node whose inputs have other numbers; it forgets nothing yet."""
    match node:
        case Input():
            return node
        case Rows():
            return Rows(numbers[node.input], node.columns, node.where, node.source)
        case Join():
            return Join(numbers[node.left], numbers[node.right], node.on, node.columns)
        case Lookup():
            return replace(node, left=numbers[node.left], right=numbers[node.right])
        case Sums():
            return Sums(numbers[node.input], node.keys, node.sums, node.columns)
        case Groups():
            return replace(node, inputs=tuple(numbers[each] for each in node.inputs))
        case Union():
            return Union(tuple(numbers[each] for each in node.inputs))
        case Less():
            return Less(numbers[node.input], numbers[node.less])
        case OnTime() | Sessions() | Final():
            return replace(node, input=numbers[node.input])
