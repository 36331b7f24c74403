"""`*` over JOIN … USING: the columns that are joined come first, once, as in Postgres and Spark."""

from __future__ import annotations

from typing import Any

from sqlglot import exp


def order_stars(tree: Any) -> None:
    """Write the order into the stars of a tree. Selects that mix USING with other joins stay as they are."""
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        if not joins or not all(join.args.get("using") for join in joins):
            continue
        for item in list(select.expressions):
            if isinstance(item, exp.Star) and not any(item.args.values()):
                _write(item, joins)


def _write(star: exp.Star, joins: list[Any]) -> None:
    names: list[str] = []
    for join in reversed(joins):
        names += [each.name for each in join.args["using"] if each.name.lower() not in map(str.lower, names)]
    select: Any = star.parent
    place = select.expressions.index(star)
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
    rest = exp.Star(except_=[each.copy() for each in columns])
    select.set("expressions", [*select.expressions[:place], *columns, rest, *select.expressions[place + 1 :]])
