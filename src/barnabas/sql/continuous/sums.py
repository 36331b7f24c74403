"""Aggregates by group: sums where each aggregate is one, and otherwise a query by the keys of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Named, Rows, Sum, Sums, quoted
from barnabas.sql.continuous.context import Context
from barnabas.sql.continuous.functions import name_of
from barnabas.sql.continuous.joining import ONE, Joining, kept
from barnabas.sql.continuous.nulls import is_never_null
from barnabas.sql.continuous.parts import NotSplit, Part, column_of, replaced, text, used_by
from barnabas.sql.continuous.ties import settled_aggregate

_CALLS = {exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or"}
_NAMED = {"bool_and": "bool_and", "bool_or": "bool_or", "every": "bool_and"}
SUMMED = ("HUGEINT", "DOUBLE")


class Summing:
    """Makes the nodes of groups. The keys of a group become the columns `g0`, … of a source."""

    def __init__(self, planner: Context) -> None:
        self._planner, self._nodes = planner, planner.nodes

    def grouped(self, part: Part, source: int, keys: Sequence[Any], calls: Sequence[Any], values: list[tuple[Any, Any]]) -> Part:
        """One row for each value of the keys; fills in what each aggregate is in expressions."""
        never = [is_never_null(each, part, part.not_null) for each in keys]
        simple = [self._simple(part, each) for each in calls]
        if all(simple):
            node, not_null = self._sums(part, source, keys, calls, values)
        elif (distinct := self._distinct(calls, simple)) is not None:
            if len(distinct) > 1:
                return self._joined(part, source, keys, calls, distinct, values)
            node, not_null = self._twice(part, source, keys, calls, distinct[0], values)
        else:
            node, not_null = self._query(part, source, keys, calls, values)
        columns = {(source, each.name): each.name for each in self._nodes.columns(node)}
        names = [f"g{place}" for place in range(len(keys))]
        not_null |= {name for name, is_never in zip(names, never, strict=True) if is_never}
        plain = {name: (None, name) for name in columns.values()}
        unique = [frozenset(names)]
        fixed = {
            part.columns[next(iter(used_by(each)))]: f"g{place}"
            for place, each in enumerate(keys)
            if isinstance(each, exp.Column)
        }
        unique += [frozenset(fixed[name] for name in one) for one in part.unique if one <= set(fixed)]
        is_sums = isinstance(self._nodes.node(node), Sums)
        return Part(
            node,
            columns,
            tuple(sorted(set(unique), key=lambda each: (len(each), sorted(each)))),
            frozenset(not_null),
            plain if is_sums else None,
        )

    def kinds(self, part: Part, texts: Sequence[str]) -> list[str]:
        if not texts:
            return []
        return [
            each.kind for each in self._nodes.kinds(f"SELECT {', '.join(texts)} FROM {ONE}", [self._nodes.columns(part.node)])
        ]

    def named_keys(self, part: Part, keys: Sequence[Any]) -> tuple[Named, ...]:
        texts = [text(each, part) for each in keys]
        return tuple(
            Named(f"g{place}", kind, each) for place, (each, kind) in enumerate(zip(texts, self.kinds(part, texts), strict=True))
        )

    def _simple(self, part: Part, call: Any) -> tuple[str, Any, Any] | None:
        """The call, the argument and the filter of an aggregate that is a sum."""
        condition = None
        if isinstance(call, exp.Filter):
            condition, call = call.expression.this, call.this
        argument = call.this
        if isinstance(argument, exp.Order) and not isinstance(call, exp.Anonymous):
            argument = argument.this
        if isinstance(call, exp.Anonymous) and name_of(call) in _NAMED and len(call.expressions) == 1:
            return _NAMED[name_of(call)], call.expressions[0], condition
        if isinstance(call, exp.CountIf):
            ones = [
                exp.If(this=argument.copy(), true=exp.Literal.number(1)),
                exp.If(this=exp.Not(this=exp.Paren(this=argument.copy())), true=exp.Literal.number(0)),
            ]
            return "sum", exp.Case(ifs=ones), condition  # null without rows, as DuckDB has it
        if isinstance(argument, exp.Distinct):
            if type(call) not in (exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr) or len(argument.expressions) != 1:
                return None
            argument = argument.expressions[0]
        if isinstance(call, exp.Count):
            is_all = argument is None or isinstance(argument, exp.Star)
            return None if call.expressions else ("count", None if is_all else argument, condition)
        if call.expressions or argument is None:
            return None
        if isinstance(call, (exp.Sum, exp.Avg)):
            wanted = "sum" if self._is_summed(part, argument, isinstance(call, exp.Avg)) else None
            return None if wanted is None else ("avg" if isinstance(call, exp.Avg) else "sum", argument, condition)
        return (_CALLS[type(call)], argument, condition) if type(call) in _CALLS else None

    def _is_summed(self, part: Part, argument: Any, is_average: bool) -> bool:
        sql = text(argument, part)
        try:
            kinds = self.kinds(part, [f"sum({sql})", *([f"avg({sql})"] if is_average else [])])
        except duckdb.Error:
            return False
        return (kinds[0] in SUMMED or kinds[0].startswith("DECIMAL")) and kinds[1:] in ([], ["DOUBLE"])

    def _sums(
        self, part: Part, source: int, keys: Sequence[Any], calls: Sequence[Any], values: list[tuple[Any, Any]]
    ) -> tuple[int, set[str]]:
        named = self.named_keys(part, keys)
        found: dict[tuple[str, str | None, str | None], Sum] = {}
        for call in calls:
            simple = self._simple(part, call)
            assert simple is not None
            values.append((call, self._value(part, source, simple, found)))
        sums = tuple(found.values())
        every: list[Any] = [*named, *sums]
        columns = [Column(each.name, each.kind) for each in every] or [Column("one", "INTEGER")]
        made = kept(columns) if named or sums else (Named("one", "INTEGER", "1"),)
        return self._nodes.add(Sums(part.node, named, sums, made)), {each.name for each in sums if each.call == "count"}

    def _value(self, part: Part, source: int, simple: tuple[str, Any, Any], found: dict[Any, Sum]) -> Any:
        """An aggregate as an expression over sums, which come to `found`."""
        call, argument, condition = simple
        sql = None if argument is None else text(argument, part)
        where = None if condition is None else text(condition, part)

        def one(name: str) -> Any:
            wanted = name, sql, where
            if wanted not in found:
                kind = "BIGINT" if name == "count" else self.kinds(part, [f"{name}({sql})"])[0]
                found[wanted] = Sum(f"a{len(found)}", kind, name, sql, where)
            return column_of(source, found[wanted].name)

        return _average(one("sum"), one("count")) if call == "avg" else one(call)

    def _distinct(self, calls: Sequence[Any], simple: Sequence[Any]) -> list[Any] | None:
        """The arguments of the aggregates with DISTINCT; None if another one is no sum."""
        arguments: list[Any] = []
        for call, is_simple in zip(calls, simple, strict=True):
            if is_simple:
                continue
            found = distinct_of(call)
            if found is None:
                return None
            if found[1] not in arguments:
                arguments.append(found[1])
        return arguments

    def _joined(
        self,
        part: Part,
        source: int,
        keys: Sequence[Any],
        calls: Sequence[Any],
        distinct: Sequence[Any],
        values: list[tuple[Any, Any]],
    ) -> Part:
        """Several arguments of DISTINCT: the groups for each, joined."""
        whole: Part | None = None
        for place, argument in enumerate(distinct):
            own = [
                each
                for each in calls
                if ((found := distinct_of(each)) is None and place == 0) or (found is not None and found[1] == argument)
            ]
            number = self._planner.source_number() if place else source
            found_part = self.grouped(part, number, keys, own, values)
            if whole is None:
                whole = found_part
                continue
            names = [f"g{each}" for each in range(len(keys))]
            equal = [exp.NullSafeEQ(this=column_of(source, name), expression=column_of(number, name)) for name in names]
            whole = Joining(self._nodes).inner(whole, found_part, equal)
        assert whole is not None
        return whole

    def _twice(
        self, part: Part, source: int, keys: Sequence[Any], calls: Sequence[Any], distinct: Any, values: list[tuple[Any, Any]]
    ) -> tuple[int, set[str]]:
        """Sums by the keys and the argument of DISTINCT, and sums of those."""
        inner = self._planner.source_number()
        partial: list[tuple[Any, Any]] = []
        others = [each for each in calls if self._simple(part, each)]
        first, _ = self._sums(part, inner, [*keys, distinct], others, partial)
        columns = {(inner, each.name): each.name for each in self._nodes.columns(first)}
        below = Part(first, columns)
        node = self._nodes.node(first)
        assert isinstance(node, Sums)
        named = tuple(Named(f"g{place}", node.keys[place].kind, f"{ONE}.{quoted(f'g{place}')}") for place in range(len(keys)))
        argument = f"{ONE}.{quoted(f'g{len(keys)}')}"
        sums = [self._outer_sum(below, each) for each in node.sums]
        seen = {each.name for each in node.sums}
        for call in calls:
            if call in others:
                made = next(value for each, value in partial if each == call)
                values.append(
                    (call, replaced(made, lambda each: column_of(source, each.name) if isinstance(each, exp.Column) else None))
                )
                continue
            kind_of = (distinct_of(call) or (exp.Count, None))[0]
            wanted: list[str] = {exp.Count: ["count"], exp.Sum: ["sum"], exp.Avg: ["sum", "count"]}[kind_of]
            for name in wanted:
                if f"d_{name}" not in seen:
                    seen.add(f"d_{name}")
                    kind = "BIGINT" if name == "count" else self.kinds(below, [f"sum({argument})"])[0]
                    if name == "sum" and kind not in SUMMED and not kind.startswith("DECIMAL"):
                        raise NotSplit("a sum of another type")
                    sums.append(Sum(f"d_{name}", kind, name, argument))
            made = column_of(source, f"d_{wanted[0]}")
            values.append((call, _average(made, column_of(source, "d_count")) if kind_of is exp.Avg else made))
        counted = {each.name for each in node.sums if each.call == "count"}
        made_columns = []
        every: list[Any] = [*named, *sums]
        for each in every:
            sql = f"coalesce({quoted(each.name)}, 0)" if each.name in counted else quoted(each.name)
            made_columns.append(Named(each.name, "BIGINT" if each.name in counted else each.kind, sql))
        found = self._nodes.add(Sums(first, named, tuple(sums), tuple(made_columns)))
        raw = self._nodes.add(Rows(found, kept(self._nodes.columns(found))))
        return raw, {*counted, *(each.name for each in sums if each.call == "count")}

    def _outer_sum(self, below: Part, one: Sum) -> Sum:
        """The aggregate of partial aggregates."""
        argument = f"{ONE}.{quoted(one.name)}"
        if one.call in ("count", "sum"):
            return Sum(one.name, self.kinds(below, [f"sum({argument})"])[0], "sum", argument)
        return Sum(one.name, one.kind, one.call, argument)

    def _query(
        self, part: Part, source: int, keys: Sequence[Any], calls: Sequence[Any], values: list[tuple[Any, Any]]
    ) -> tuple[int, set[str]]:
        """Aggregates that are no sums: by the keys of the groups."""
        texts = [text(each, part) for each in keys]
        made = [settled_aggregate(each, lambda tree: text(tree, part)) for each in calls]
        shown = [f"{each} AS {quoted(f'g{place}')}" for place, each in enumerate(texts)]
        shown += [f"{each} AS {quoted(f'a{place}')}" for place, each in enumerate(made)]
        grouped = f" GROUP BY {', '.join(str(place + 1) for place in range(len(texts)))}" if texts else ""
        query = f"SELECT {', '.join(shown)} FROM {ONE}{grouped}"
        columns = self._nodes.kinds(query, [self._nodes.columns(part.node)])
        if not keys:
            self._planner.note(f"each change recomputes {name_of(calls[0])} over all rows, because there is no GROUP BY")
        node = self._nodes.add(Groups((part.node,), (tuple(texts),), query, tuple(columns)))
        values += [(call, column_of(source, f"a{place}")) for place, call in enumerate(calls)]
        return node, {f"a{place}" for place, each in enumerate(calls) if isinstance(each, exp.Count)}


def distinct_of(call: Any) -> tuple[type[exp.AggFunc], Any] | None:
    """The aggregate and the argument of one with DISTINCT; a filter becomes part of the argument."""
    condition = None
    if isinstance(call, exp.Filter):
        condition, call = call.expression.this, call.this
    inner = call.this if type(call) in (exp.Count, exp.Sum, exp.Avg) else None
    if not isinstance(inner, exp.Distinct) or len(inner.expressions) != 1:
        return None
    argument = inner.expressions[0]
    if condition is not None:
        argument = exp.Case(ifs=[exp.If(this=condition.copy(), true=argument.copy())])
    return type(call), argument


def _average(total: Any, count: Any) -> Any:
    divided = exp.Div(this=exp.cast(total, "double"), expression=count.copy(), typed=False, safe=False)
    return exp.Case(ifs=[exp.If(this=exp.GT(this=count.copy(), expression=exp.Literal.number(0)), true=divided)])
