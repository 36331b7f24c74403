"""Lower bounds of expressions: the least value that rows of later steps can have, in terms of watermarks.

Rules
  1. A bound is the least of several expressions, each over the watermark of one table, `w3`.
  2. An expression that never falls when a column rises has the bound of the column put in its place: windows, truncated times, a time plus
     an interval. Nothing is known of any other expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlglot
from sqlglot import exp

from barnabas.incremental.plan import Until
from barnabas.sql.continuous.functions import name_of
from barnabas.sql.dialect import to_duckdb

Bound = tuple[tuple[int, Any], ...]  # the number of a node OnTime, and an expression over its watermark
Bounds = Mapping[str, Bound]  # by columns
_RISING = frozenset(("__bucket", "__window", "time_bucket", "date_trunc", "date_bin", "struct_extract"))
_NAIVE = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATE, exp.DType.DATETIME)
_AWARE = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_UNEVEN = re.compile(r"mon|year|decade|cent|mill", re.IGNORECASE)  # intervals of months have no fixed length
Find = Callable[[Any], Bound | None]


def parsed(text: str) -> Any:
    """The tree of DuckDB's text."""
    return sqlglot.parse_one(text, dialect="duckdb")


def of_columns(bounds: Bounds, relation: str = "input_0") -> Find:
    """Looks up the columns of a relation, with or without its name."""

    def find(column: Any) -> Bound | None:
        return bounds.get(column.name) if column.table in ("", relation) else None

    return find


def bound_of(tree: Any, find: Find, *, is_aware: bool) -> Bound | None:
    """The bound of an expression.

    Args:
        find: the bound of a column.
        is_aware: whether the watermarks have a time zone. Casts to times without one may fall then, when clocks are set back.
    """
    match tree:
        case exp.Paren():
            return bound_of(tree.this, find, is_aware=is_aware)
        case exp.Column():
            return find(tree)
        case exp.Cast() if not isinstance(tree, exp.TryCast):
            wanted = _AWARE if is_aware else _NAIVE
            return _through(tree, tree.this, find, is_aware=is_aware) if tree.to.this in wanted else None
        case exp.Add() | exp.Sub() if is_constant(tree.expression):
            return _through(tree, tree.this, find, is_aware=is_aware)
        case exp.Add() if is_constant(tree.this):
            return _through(tree, tree.expression, find, is_aware=is_aware)
        case exp.Func() if name_of(tree) in _RISING:
            moving = [each for each in tree.iter_expressions() if not is_constant(each)]
            return _through(tree, moving[0], find, is_aware=is_aware) if len(moving) == 1 else None
    return None


def _through(tree: Any, moving: Any, find: Find, *, is_aware: bool) -> Bound | None:
    """The bound of a part of an expression, with the rest around it."""
    inner = bound_of(moving, find, is_aware=is_aware)
    return None if inner is None else tuple((mark, put(tree, moving, value)) for mark, value in inner)


def put(tree: Any, place: Any, value: Any) -> Any:
    """A copy of an expression with a value in a place."""
    path = []
    node = place
    while node is not tree:
        path.append((node.arg_key, node.index))
        node = node.parent
    made = found = tree.copy()
    for key, index in reversed(path):
        found = found.args[key] if index is None else found.args[key][index]
    if found is made:
        return value.copy()
    found.replace(exp.Paren(this=value.copy()) if isinstance(value, exp.Binary) else value.copy())
    return made


def is_constant(tree: Any) -> bool:
    """Whether an expression has no columns."""
    return tree.find(exp.Column, exp.Query) is None


def hops(source: str, find: Find, *, is_aware: bool) -> dict[tuple[str, str], Bound]:
    """The bounds of the columns that `unnest(__hops(…))` makes in the text behind FROM, by relation and name."""
    if "__hops" not in source.lower():
        return {}
    found: dict[tuple[str, str], Bound] = {}
    for each in parsed(f"SELECT * FROM {source}").find_all(exp.Unnest):
        call = each.expressions[0] if len(each.expressions) == 1 else None
        alias = each.args.get("alias")
        if not isinstance(call, exp.Anonymous) or str(call.this).lower() != "__hops" or alias is None:
            continue
        inner = bound_of(call.expressions[2], find, is_aware=is_aware)
        names = [one.name for one in alias.args.get("columns") or []]
        if inner is not None and len(names) == 1 and all(map(is_constant, call.expressions[:2])):
            least = [
                (mark, exp.Anonymous(this="list_min", expressions=[put(call, call.expressions[2], one)])) for mark, one in inner
            ]
            found[alias.name, names[0]] = tuple(least)
    return found


def text_of(bound: Bound) -> str:
    """A bound in SQL; null while one of its watermarks is."""
    texts = list(dict.fromkeys(to_duckdb(tree) for _, tree in bound))
    if len(texts) == 1:
        return texts[0]
    unknown = " OR ".join(f"w{mark} IS NULL" for mark in sorted({mark for mark, _ in bound}))
    return f"CASE WHEN {unknown} THEN NULL ELSE least({', '.join(texts)}) END"


def until(tree: Any, bound: Bound) -> Until:
    """The rows for which an expression is below a bound."""
    return Until(tree if isinstance(tree, str) else to_duckdb(tree), text_of(bound))


def least(*bounds: Bound | None) -> Bound | None:
    """The least of several bounds; None if one of them is unknown."""
    found: list[tuple[int, Any]] = []
    for each in bounds:
        if each is None:
            return None
        found += [one for one in each if one not in found]
    return tuple(found)


def orders(condition: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs (a, b) with a >= b wherever a condition is true."""
    match condition:
        case exp.And():
            yield from orders(condition.this)
            yield from orders(condition.expression)
        case exp.Paren():
            yield from orders(condition.this)
        case exp.EQ() | exp.NullSafeEQ():
            yield condition.this, condition.expression
            yield condition.expression, condition.this
        case exp.GT() | exp.GTE():
            yield from _solved(condition.this, condition.expression)
        case exp.LT() | exp.LTE():
            yield from _solved(condition.expression, condition.this)
        case exp.Between():
            yield from _solved(condition.this, condition.args["low"])
            yield from _solved(condition.args["high"], condition.this)


def _solved(greater: Any, smaller: Any) -> Iterator[tuple[Any, Any]]:
    """`i >= a - b` as `b + i >= a`, and `a - b >= i` as `a >= b + i`; others as they are."""
    greater, smaller = greater.unnest(), smaller.unnest()
    if isinstance(smaller, exp.Sub) and is_constant(greater) and not is_constant(smaller.expression):
        yield exp.Add(this=smaller.expression.copy(), expression=greater.copy()), smaller.this
    elif isinstance(greater, exp.Sub) and is_constant(smaller) and not is_constant(greater.expression):
        yield greater.this, exp.Add(this=greater.expression.copy(), expression=smaller.copy())
    else:
        yield greater, smaller


def of_column(tree: Any, bound: Bound) -> tuple[str, Bound] | None:
    """From `column + interval >= bound` the bound of the column."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return tree.name, bound
    if (
        not isinstance(tree, (exp.Add, exp.Sub))
        or not isinstance(tree.this.unnest(), exp.Column)
        or not is_constant(tree.expression)
    ):
        return None
    if _UNEVEN.search(to_duckdb(tree.expression)):
        return None
    other = exp.Sub if isinstance(tree, exp.Add) else exp.Add
    moved = tuple((mark, other(this=exp.Paren(this=each.copy()), expression=tree.expression.copy())) for mark, each in bound)
    return tree.this.unnest().name, moved
