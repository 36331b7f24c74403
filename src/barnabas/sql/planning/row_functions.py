"""Functions in FROM that give rows and that DuckDB knows in SELECT alone: `unnest` of several arrays, and those of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

_OF_TEXTS = ("regexp_split_to_table", "string_to_table", "generate_subscripts")


def read_row_functions(tree: Any) -> None:
    """Put a subquery in the place of each such function."""
    for node in list(tree.find_all(exp.Unnest)):
        if isinstance(node.parent, (exp.From, exp.Join)) and len(node.expressions) > 1:
            _place(node, *_arrays(node))
    for node in list(tree.find_all(exp.Table)):
        name = str(node.this.this).lower() if isinstance(node.this, exp.Anonymous) else ""
        if name in _OF_TEXTS:
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
            column = alias.this.name if alias.this is not None else name
            _place(node, [exp.alias_(node.this.copy(), column, quoted=True)], alias)


def _arrays(node: Any) -> tuple[list[Any], Any]:
    """The elements of several arrays beside each other; a shorter one ends with nulls."""
    alias = (node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest"))).copy()
    items = [
        exp.alias_(exp.Anonymous(this="unnest", expressions=[each.copy()]), f"c{place}")
        for place, each in enumerate(node.expressions)
    ]
    offset = node.args.get("offset")
    if offset:
        lengths = [exp.Anonymous(this="len", expressions=[each.copy()]) for each in node.expressions]
        longest = exp.Anonymous(this="greatest", expressions=lengths)
        places = exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), longest])
        items.append(exp.alias_(exp.Anonymous(this="unnest", expressions=[places]), "ordinality"))
        if isinstance(offset, exp.Identifier):
            alias.append("columns", offset.copy())
    return items, alias


def _place(node: Any, items: Sequence[Any], alias: Any) -> None:
    made = exp.Subquery(this=exp.select(*items, copy=False), alias=alias.copy())
    for clause in ("joins", "laterals"):
        made.set(clause, node.args.get(clause))
    node.replace(made)
