"""Whether a query gives other rows in another time zone. Views and jobs compute in UTC, whatever zone the session has that makes them.

Rules
  1. Types are told by names: of columns with a time zone, and those that the query gives to such values. A name with both meanings is
     doubtful.
  2. Some operations keep a time with a time zone as a moment, and depend on no zone: comparing it with another one, its least and
     greatest value, windows, a duration of hours. Anything else depends on a zone, and so does everything doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from barnabas.sql.continuous.functions import name_of
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.planning.zoned_times import is_short
from barnabas.sql.states import not_supported

_AWARE = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_CALLS = frozenset(  # that give moments
    ("now", "current_timestamp", "get_current_timestamp", "make_timestamptz", "to_timestamp", "timestamp_seconds", "timestamp_millis",
     "timestamp_micros")
)  # fmt: skip
_CLOCKS = frozenset(("today", "current_localtimestamp", "current_localtime", "get_current_time"))
_KEEPING = frozenset((  # calls whose arguments may be moments
    "__bucket", "__window", "__hops", "__session", "time_bucket", "date_bin", "struct_extract", "struct_pack", "row", "timezone", "epoch",
    "epoch_ms", "epoch_us", "epoch_ns", "min_by", "max_by", "arg_min", "arg_max", "first", "last", "any_value", "list", "list_min",
    "list_max", "isfinite", "list_transform", "unnest",
))  # fmt: skip
_KEPT = (
    exp.AtTimeZone, exp.Min, exp.Max, exp.Count, exp.ArgMax, exp.ArgMin, exp.First, exp.Last, exp.AnyValue, exp.ArrayAgg, exp.Coalesce,
    exp.Nullif, exp.Dot, exp.Bracket, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Window, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Unnest, exp.DateBin, exp.ApproxDistinct, exp.And, exp.Or, exp.Xor,
    exp.Struct, exp.Array, exp.Exists, exp.Is,
)  # fmt: skip
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)
_LOOKED_AT = (exp.Func, exp.Binary, exp.Cast, exp.Between, exp.In, exp.SetOperation, exp.Anonymous, exp.Values)
_ALIKE = (exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)
_MOMENT = re.compile(
    r".*\d:\d\d(?::\d\d(?:\.\d+)?)? *(?:Z|[+-]\d\d(?::?\d\d)?)\s*\Z|\s*(?:epoch|-?infinity)\s*\Z", re.IGNORECASE | re.DOTALL
)


def refuse_zone(query: QueryPlan, zone: str, what: str) -> None:
    """Raises SqlError 0A000 for a query whose rows depend on the time zone of a session.

    Args:
        zone: of the session, which is not UTC.
        what: would keep the rows, as the first words of the error.
    """
    for node in _Moments(query).doubtful():
        raise not_supported(
            f"{what} computes in UTC, and {_shown(node)} depends on the time zone of the session, {zone}", position_in(node),
            f"SET TIME ZONE 'UTC', or name the zone: t AT TIME ZONE '{zone}' is the time of a clock there",
        )  # fmt: skip


def _shown(node: Any) -> str:
    text: str = node.sql("postgres")
    return text if len(text) <= 80 else f"{text[:79]}…"


class _Moments:
    """The values with a time zone in a query."""

    def __init__(self, query: QueryPlan) -> None:
        self._tree = query.tree
        fields = [each for made in query.inputs for each in made.schema]
        self._names = {each.name.lower() for each in fields if _has_zone(each.type)}
        self._calls = _CALLS | {each.call for each in query.functions if "TIME ZONE" in each.kind or "TIMESTAMPTZ" in each.kind}
        self._others = {each.name.lower() for each in fields if _is_local(each.type)}
        self._learn()

    def _learn(self) -> None:
        """Add the names that the query gives to its values."""
        aliases = list(self._tree.find_all(exp.Alias))
        before = -1
        while before != len(self._names):
            before = len(self._names)
            self._names.update(each.alias.lower() for each in aliases if self.is_moment(each.this))
        if self._names:
            lists = [each.args.get("columns") or [] for each in self._tree.find_all(exp.TableAlias)]
            self._names.update(column.name.lower() for columns in lists for column in columns)
        self._others.update(each.alias.lower() for each in aliases if not self.is_moment(each.this) and _may_be_local(each.this))

    def is_moment(self, node: Any) -> bool:
        """Whether an expression may have a time zone."""
        match node:
            case exp.Column():
                return node.name.lower() in self._names
            case exp.Cast():
                return node.to.this in _AWARE
            case exp.AtTimeZone():
                return not self.is_moment(node.this)
            case exp.Anonymous(this="timezone" | "TIMEZONE", expressions=[_, time]):
                return not self.is_moment(time)
            case exp.Func() | exp.Anonymous() if name_of(node) in self._calls:
                return True
            case exp.Sub() if self.is_moment(node.this) and self.is_moment(node.expression):
                return False
            case exp.Case():
                return any(map(self.is_moment, _results(node)))
            case exp.Window() | exp.Filter() | exp.IgnoreNulls() | exp.RespectNulls() | exp.Subquery():
                return self.is_moment(node.this)
            case exp.Query():
                return any(map(self.is_moment, node.selects))
            case exp.Literal() | exp.Predicate() | exp.Connector() | exp.Not() | exp.Count() | exp.Extract():
                return False
        return any(map(self.is_moment, node.iter_expressions()))

    def doubtful(self) -> Iterator[Any]:
        """The parts of the query that may depend on a zone."""
        both = self._names & self._others
        for node in self._tree.walk():
            is_doubtful = _names_of(node) & both or (both and _is_natural(node))
            if is_doubtful or (isinstance(node, _LOOKED_AT) and not self._is_same_everywhere(node)):
                yield node

    def _is_same_everywhere(self, node: Any) -> bool:
        match node:
            case exp.Cast():
                return self._is_same_cast(node)
            case exp.Between() | exp.In() | exp.Binary() if isinstance(node, _COMPARED):
                return self._are_alike(list(node.iter_expressions()))
            case exp.Add() | exp.Sub():
                return self._is_same_sum(node)
            case exp.Values():
                rows = [each.expressions for each in node.expressions if isinstance(each, exp.Tuple)]
                return all(self._are_alike(list(column)) for column in zip(*rows, strict=False))
            case exp.SetOperation():
                return self._is_same_union(node)
            case exp.CurrentDate() | exp.CurrentTime() | exp.Localtime() | exp.Localtimestamp():
                return False
            case exp.Anonymous() if str(node.this).lower() in _CLOCKS:
                return False
        parts = list(node.iter_expressions())
        if not any(map(self.is_moment, parts)):
            return True
        if isinstance(node, exp.Case):
            compared = [node.this, *(each.this for each in node.args["ifs"])] if node.this else []
            return self._are_alike(_results(node)) and self._are_alike(compared)
        if isinstance(node, _ALIKE):
            return self._are_alike(parts)
        if isinstance(node, exp.Extract):
            return node.name.upper() == "EPOCH"
        is_keeping = isinstance(node, exp.Anonymous) and str(node.this).lower() in _KEEPING
        return is_keeping or isinstance(node, _KEPT)

    def _is_same_cast(self, node: Any) -> bool:
        if node.to.this in _AWARE:
            return self._is_known(node.this)
        return not self.is_moment(node.this)

    def _is_known(self, node: Any) -> bool:
        """Whether a value is the same moment everywhere."""
        inner = node.unnest()
        if isinstance(inner, exp.Literal):
            return bool(inner.is_string and _MOMENT.match(inner.name))
        return isinstance(inner, exp.Null) or self.is_moment(inner)

    def _are_alike(self, parts: list[Any]) -> bool:
        """Whether all of several values, which are compared, are moments, or none is."""
        found = [each for each in parts if isinstance(each, exp.Expression) and not isinstance(each, exp.Boolean)]
        return not any(map(self.is_moment, found)) or all(map(self._is_known, found))

    def _is_same_sum(self, node: Any) -> bool:
        sides = node.this, node.expression
        moments = [self.is_moment(each) for each in sides]
        if all(moments) or not any(moments):
            return True
        return is_short(sides[0] if moments[1] else sides[1])

    def _is_same_union(self, node: Any) -> bool:
        """Whether its queries have moments at the same places."""
        left, right = ([self.is_moment(each.unalias()) for each in side.selects] for side in (node.left, node.right))
        has_star = any(each.is_star for side in (node.left, node.right) for each in side.selects)
        return left == right if not has_star else not (self._names and self._others)


def _names_of(node: Any) -> set[str]:
    """The name of a column, or those that a join compares."""
    if isinstance(node, exp.Join):
        return {each.name.lower() for each in node.args.get("using") or ()}
    return {node.name.lower()} if isinstance(node, exp.Column) else set()


def _is_natural(node: Any) -> bool:
    return isinstance(node, exp.Join) and str(node.args.get("method") or "").upper() == "NATURAL"


def _results(case: Any) -> list[Any]:
    found = [each.args.get("true") for each in case.args["ifs"]]
    return [*found, *([case.args["default"]] if case.args.get("default") is not None else [])]


def _has_zone(kind: pa.DataType) -> bool:
    if pt.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(at).type) for at in range(kind.num_fields))


def _is_local(kind: pa.DataType) -> bool:
    if pt.is_nested(kind):
        return any(_is_local(kind.field(at).type) for at in range(kind.num_fields))
    return pt.is_date(kind) or (pt.is_timestamp(kind) and kind.tz is None)


def _may_be_local(node: Any) -> bool:
    """Whether an expression may be a date or a time without a zone: nothing tells that it is a number or a truth value."""
    other = (exp.Literal, exp.Predicate, exp.Connector, exp.Not, exp.Count, exp.Sum, exp.Avg, exp.RowNumber, exp.Rank)
    return not isinstance(node, other)
