"""Window functions: a query by what all of them are partitioned by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Groups, quoted
from barnabas.sql.continuous.context import Context
from barnabas.sql.continuous.functions import multiplies
from barnabas.sql.continuous.joining import ONE
from barnabas.sql.continuous.parts import Item, NotSplit, Part, column_of, free_name, outer_nodes, placed, replaced, text, used_by
from barnabas.sql.continuous.ties import settled_window
from barnabas.sql.dialect import to_duckdb


def with_windows(
    planner: Context, part: Part, items: Sequence[Item], qualify: Sequence[Any], order: Any
) -> tuple[Part, list[Item], Any]:
    """A part with the windows' values as columns, and the expressions over it."""
    windows: list[Any] = []
    trees = [*(each for _, each in items), *qualify, *(each for _, each in order)]
    for tree in trees:
        for each in outer_nodes(tree):
            if isinstance(each, exp.Window) and each not in windows and each.find_ancestor(exp.Window) is None:
                windows.append(each.copy())
    if any(each.args.get("alias") for each in windows) or any(multiplies(each) for _, each in items):
        raise NotSplit("named windows, or windows beside unnest")
    common = [
        each
        for each in windows[0].args.get("partition_by") or []
        if all(each in (other.args.get("partition_by") or []) for other in windows)
    ]
    columns = planner.nodes.columns(part.node)
    row = [f"{ONE}.{quoted(each.name)}" for each in columns]
    names = [f"w{place}" for place in range(len(windows))]
    taken = [each.name for each in columns]
    names = [free_name(each, taken) for each in names]
    texts = [text(settled_window(each, [column_of(*of) for of in part.columns]), part) for each in windows]
    query = f"SELECT {', '.join([*row, *(f'({each}) AS {quoted(name)}' for each, name in zip(texts, names, strict=True))])} FROM {ONE}"
    source = planner.source_number()
    made = dict(zip(names, windows, strict=True))

    def change(node: Any) -> Any | None:
        found = next((name for name, each in made.items() if each == node), None) if isinstance(node, exp.Window) else None
        return None if found is None else column_of(source, found)

    if qualify:
        inner = {
            **{of: (None, name) for of, name in part.columns.items()},
            **{(source, name): (None, name) for name in names},
        }
        tests = [to_duckdb(placed(exp.Paren(this=replaced(each, change)), lambda of: inner[of])) for each in qualify]
        query = f"SELECT * FROM ({query}) WHERE {' AND '.join(tests)}"
    found = planner.nodes.kinds(query, [columns])
    keys = tuple(text(each, part) for each in common)
    if not keys:
        planner.note("each change recomputes the windows of all rows (OVER without PARTITION BY)")
    node = planner.nodes.add(Groups((part.node,), (keys,), query, tuple(found)))
    both = {**part.columns, **{(source, name): name for name in names}}
    unique = list(part.unique)
    for place, each in enumerate(windows):
        partition = each.args.get("partition_by") or []
        if isinstance(each.this, exp.RowNumber) and all(isinstance(one, exp.Column) for one in partition):
            unique.append(frozenset([names[place], *(part.columns[next(iter(used_by(one)))] for one in partition)]))
    never = part.not_null | {
        name for name, each in made.items() if isinstance(each.this, (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Count))
    }
    made_part = Part(node, both, tuple(unique), frozenset(never))
    changed = [(name, replaced(each, change)) for name, each in items]
    return made_part, changed, [(one, replaced(each, change)) for one, each in order]
