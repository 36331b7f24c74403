"""Rows that only rename or leave out columns are made by the node below them, if nobody else reads it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from barnabas.incremental.plan import Join, Named, Node, Plan, Rows, Sums

_PLAIN = re.compile(r'(?:input_0\.)?"((?:[^"]|"")+)"')
_CONSTANT = re.compile(r"NULL|true|false|\d+")


def simplified(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, some of them with other columns; the numbers stay. A node that nobody reads any more is for the caller to drop."""
    found = list(nodes)
    readers = Counter(each for number in range(len(found)) for each in Plan(tuple(found)).inputs_of(number))
    for number, node in enumerate(found):
        if not isinstance(node, Rows) or node.where or node.source != "input_0":
            continue
        below = found[node.input]
        if readers[node.input] != 1 or not isinstance(below, (Rows, Join, Sums)):
            continue
        columns = _through(node.columns, below.columns)
        if columns is not None:
            found[number] = replace(below, columns=columns)
            readers.subtract([node.input])
    return found


def _through(columns: Sequence[Named], below: Sequence[Named]) -> tuple[Named, ...] | None:
    """Columns over those of the node below, as the node below can make them."""
    known = {each.name: each for each in below}
    made = []
    for each in columns:
        plain = _PLAIN.fullmatch(each.sql)
        if plain is not None:
            own = known[plain[1].replace('""', '"')]
            made.append(Named(each.name, each.kind, own.sql if own.kind == each.kind else f"({own.sql})::{own.kind}"))
        elif _CONSTANT.fullmatch(each.sql):
            made.append(each)
        else:
            return None
    return tuple(made)


def is_identity(node: Node, plan: Plan) -> bool:
    """Whether a node gives the rows of its input as they are."""
    if not isinstance(node, Rows) or node.where or node.source != "input_0":
        return False
    columns = plan.columns_of(node.input)
    plain = [_PLAIN.fullmatch(each.sql) for each in node.columns]
    return [(each.name, each.kind) for each in node.columns] == [(each.name, each.kind) for each in columns] and all(
        found is not None and found[1].replace('""', '"') == each.name for found, each in zip(plain, node.columns, strict=True)
    )
