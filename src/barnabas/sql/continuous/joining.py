"""Joins of parts, of what the plan's nodes can do.

With J the inner join of L and R, and M the rows of L that have a partner (each as often as in L):
left join = J and the rows of L without M; semi join = M; anti join = L without M. M is the join of L with the distinct keys of R, or, where
a row of L has at most one partner, J itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Join, Less, Named, Rows, Sum, Sums, Union, quoted
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.parts import NotSplit, Of, Part, free_name, minimal, narrowed, sources_in, text, used_by

ONE = "input_0"
FLOATING = ("DOUBLE", "FLOAT")


class Joining:
    """Makes nodes of joins.

    Args:
        needed: the columns that the rest of the block needs; None: all.
    """

    def __init__(self, nodes: Nodes, needed: set[Of] | None = None) -> None:
        self._nodes, self._needed = nodes, needed

    def filtered(self, part: Part, conditions: Sequence[Any]) -> Part:
        """The rows for which all conditions are true."""
        if not conditions:
            return part
        columns = self._nodes.columns(part.node)
        where = " AND ".join(bracketed(each, part) for each in conditions)
        not_null = part.not_null | {part.columns[each] for each in compared(conditions) if each in part.columns}
        node = self._nodes.add(Rows(part.node, kept(columns), where))
        return part.renamed(node=node, not_null=not_null, plain={each.name: (ONE, each.name) for each in columns})

    def inner(self, left: Part, right: Part, conditions: Sequence[Any]) -> Part:
        """The inner join; without conditions all pairs."""
        both, columns, plain = self._both(left, right)
        on = " AND ".join(bracketed(each, left, right) for each in conditions) or None
        node = self._nodes.add(Join(left.node, right.node, on, columns))
        names = [_after(left, both), _after(right, both)]
        unique = [narrowed(left.unique, names[0]), narrowed(right.unique, names[1])]
        pairs = [one | other for one in unique[0] for other in unique[1]]
        if self.is_single(left, right, conditions):
            pairs += unique[0]
        if self.is_single(right, left, conditions):
            pairs += unique[1]
        never = {both[each] for each in compared(conditions) if each in both}
        never |= {both[of] for part in (left, right) for of, name in part.columns.items() if name in part.not_null and of in both}
        return Part(node, both, minimal(pairs), frozenset(never), plain)

    def _both(self, left: Part, right: Part) -> tuple[dict[Of, str], tuple[Named, ...], dict[str, tuple[str | None, str]]]:
        """The columns of two parts that are needed, by names that differ."""
        both: dict[Of, str] = {}
        plain: dict[str, tuple[str | None, str]] = {}
        columns: list[Named] = []
        for place, part in enumerate((left, right)):
            kinds = {each.name: each.kind for each in self._nodes.columns(part.node)}
            keys = {name for columns_of in part.unique[:1] for name in columns_of}
            for of, name in part.columns.items():
                if self._needed is not None and of not in self._needed and name not in keys:
                    continue
                both[of] = own = free_name(name, plain)
                plain[own] = (f"input_{place}", name)
                columns.append(Named(own, kinds[name], f"input_{place}.{quoted(name)}"))
        if not columns:
            of, name = next(iter(left.columns.items()))
            kind = next(each.kind for each in self._nodes.columns(left.node) if each.name == name)
            return {of: name}, (Named(name, kind, f"{ONE}.{quoted(name)}"),), {name: (ONE, name)}
        return both, tuple(columns), plain

    def partnered(self, left: Part, right: Part, conditions: Sequence[Any]) -> Part:
        """The rows of the left part that have a partner on the right, each as often as there."""
        right, conditions = self._reduced(right, conditions)
        keys, own, mixed = parted(left, right, conditions)
        columns = self._nodes.columns(left.node)
        passed = tuple(Named(each.name, each.kind, f"{ONE}.{quoted(each.name)}") for each in columns)
        on = [bracketed(each, left) for each in own]
        if mixed and left.unique:
            joined = Joining(self._nodes).inner(left, right, conditions)
            unique = sorted(left.unique[0])
            of = {name: of for of, name in left.columns.items()}
            if any(name not in of for name in unique):
                raise NotSplit("a join whose rows cannot be told apart")
            kinds = {each.name: each.kind for each in columns}
            pairs = [(joined.columns[of[name]], kinds[name], f"{ONE}.{quoted(name)}") for name in unique]
            found = self._distinct(joined.node, [(f"{ONE}.{quoted(name)}", kind) for name, kind, _ in pairs])
            on = [f"{mine} IS NOT DISTINCT FROM input_1.k{place}" for place, (_, _, mine) in enumerate(pairs)]
            node = self._nodes.add(Join(left.node, found, " AND ".join(on), passed))
        elif mixed and keys:
            test = " AND ".join(bracketed(each, left, right) for each in conditions)
            query = f"SELECT * FROM {ONE} WHERE EXISTS (SELECT 1 FROM input_1 WHERE {test})"
            sides = (
                tuple(text(one, left) for one, _ in keys),
                tuple(text(other, right.renamed()).replace("input_0.", "input_1.") for _, other in keys),
            )
            node = self._nodes.add(Groups((left.node, right.node), sides, query, tuple(columns), is_filter=True))
        elif mixed:
            raise NotSplit("a condition between two tables without an equality")
        elif keys:
            texts = [text(other, right) for _, other in keys]
            texts = [
                f"({each})::DOUBLE" if self._rounds(left, right, sides) else each for each, sides in zip(texts, keys, strict=True)
            ]
            kinds_of = self._nodes.kinds(f"SELECT {', '.join(texts)} FROM {ONE}", [self._nodes.columns(right.node)])
            found = self._distinct(right.node, [(each, kind.kind) for each, kind in zip(texts, kinds_of, strict=True)])
            on += [
                f"{_operand(one, left)} {word} input_1.k{place}"
                for place, ((one, _), word) in enumerate(zip(keys, _words(conditions, left, right), strict=True))
            ]
            node = self._nodes.add(Join(left.node, found, " AND ".join(on), passed))
        else:
            node = self._nodes.add(Join(left.node, self.has_rows(right), " AND ".join(on) or None, passed))
        return left.renamed(node=node, plain={each.name: (ONE, each.name) for each in columns})

    def _reduced(self, right: Part, conditions: Sequence[Any]) -> tuple[Part, list[Any]]:
        """The right part with the conditions on it alone."""
        own = [each for each in conditions if sources_in(each) and sources_in(each) <= right.sources]
        return self.filtered(right, own), [each for each in conditions if each not in own]

    def _distinct(self, node: int, keys: Sequence[tuple[str, str]]) -> int:
        """The distinct values of expressions, as `k0`, … ."""
        named = tuple(Named(f"k{place}", kind, sql) for place, (sql, kind) in enumerate(keys))
        return self._nodes.add(Sums(node, named, (), kept([Column(each.name, each.kind) for each in named])))

    def is_single(self, left: Part, right: Part, conditions: Sequence[Any]) -> bool:
        """Whether a row of the left part has at most one partner: the conditions fix a unique set of the right part."""
        fixed = set()
        for each in conditions:
            sides = equal_sides(each, left, right)
            if sides is not None and isinstance(sides[1], exp.Column) and not self._rounds(left, right, sides):
                fixed.add(right.columns[next(iter(used_by(sides[1])))])
        return any(columns <= fixed for columns in right.unique)

    def _rounds(self, left: Part, right: Part, sides: tuple[Any, Any]) -> bool:
        """Whether an equality compares as floating-point numbers what is none on the right: several values there can equal one."""
        kinds = [self._kind(part, side) for part, side in zip((left, right), sides, strict=True)]
        return kinds[0] in FLOATING and kinds[1] not in FLOATING

    def _kind(self, part: Part, tree: Any) -> str:
        return self._nodes.kinds(f"SELECT {text(tree, part)} FROM {ONE}", [self._nodes.columns(part.node)])[0].kind

    def has_rows(self, part: Part) -> int:
        """A node with one row if a part has rows, and none otherwise."""
        counted = self._nodes.add(Sums(part.node, (), (Sum("n", "BIGINT", "count"),), kept([Column("n", "BIGINT")])))
        return self._nodes.add(Rows(counted, (Named("k0", "BOOLEAN", "true"),), "n > 0"))

    def without(self, left: Part, partnered: Part) -> Part:
        """The rows of a part that are not among those of another one, which it has."""
        return left.renamed(node=self._nodes.add(Less(left.node, partnered.node)), plain=None)

    def semi(self, left: Part, right: Part, conditions: Sequence[Any], *, is_anti: bool = False) -> Part:
        """The rows of the left part with a partner, or without one."""
        found = self.partnered(left, right, conditions)
        return self.without(left, found) if is_anti else found

    def outer(
        self, left: Part, right: Part, conditions: Sequence[Any], *, left_stays: bool = True, right_stays: bool = False
    ) -> Part:
        """The left join, or another outer one."""
        joined = self.inner(left, right, conditions)
        several = [joined.node]
        if left_stays:
            several.append(self._alone(left, right, conditions, joined))
        if right_stays:
            several.append(self._alone(right, left, conditions, joined))
        node = self._nodes.add(Union(tuple(several)))
        sides = [left] * left_stays + [right] * right_stays
        never = joined.not_null
        if not (left_stays and right_stays):
            stays = sides[0]
            never &= {name for of, name in joined.columns.items() if of in stays.columns and stays.columns[of] in stays.not_null}
        else:
            never = frozenset()
        unique = joined.unique
        if left_stays and right_stays:
            unique = minimal(one | other for one in narrowed(left.unique, _after(left, joined.columns))
                             for other in narrowed(right.unique, _after(right, joined.columns)))  # fmt: skip
        else:
            stays, other_part = (left, right) if left_stays else (right, left)
            single = (
                narrowed(stays.unique, _after(stays, joined.columns)) if self.is_single(stays, other_part, conditions) else ()
            )
            both = [one | other for one in narrowed(left.unique, _after(left, joined.columns))
                    for other in narrowed(right.unique, _after(right, joined.columns))]  # fmt: skip
            unique = minimal([*single, *both])
        return Part(node, joined.columns, unique, frozenset(never))

    def _alone(self, stays: Part, other: Part, conditions: Sequence[Any], joined: Part) -> int:
        """The rows of one side without a partner, with nulls for the other side's columns."""
        if (
            self.is_single(stays, other, conditions)
            and all(of in joined.columns for of in stays.columns)
            and len(set(stays.columns.values())) == len(self._nodes.columns(stays.node))
        ):
            of = {name: of for of, name in stays.columns.items()}
            passed = tuple(
                Named(each.name, each.kind, quoted(joined.columns[of[each.name]])) for each in self._nodes.columns(stays.node)
            )
            found = stays.renamed(node=self._nodes.add(Rows(joined.node, passed)))
        else:
            found = self.partnered(stays, other, conditions)
        alone = self.without(stays, found)
        back = {name: of for of, name in joined.columns.items()}
        columns = []
        for each in self._nodes.columns(joined.node):
            own = stays.columns.get(back[each.name])
            columns.append(Named(each.name, each.kind, "NULL" if own is None else f"{ONE}.{quoted(own)}"))
        return self._nodes.add(Rows(alone.node, tuple(columns)))


def parted(left: Part, right: Part, conditions: Sequence[Any]) -> tuple[list[tuple[Any, Any]], list[Any], list[Any]]:
    """Conditions as equalities of a side each, those on the left alone, and others."""
    keys, own, mixed = [], [], []
    for each in conditions:
        sides = equal_sides(each, left, right)
        if sides is not None:
            keys.append(sides)
        elif sources_in(each) <= left.sources:
            own.append(each)
        else:
            mixed.append(each)
    return keys, own, mixed


def equal_sides(condition: Any, left: Part, right: Part) -> tuple[Any, Any] | None:
    """The expressions of both sides of an equality between two parts."""
    if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)) or isinstance(condition.expression, (exp.Any, exp.All)):
        return None
    one, other = condition.this, condition.expression
    for first, second in ((one, other), (other, one)):
        first_of, second_of = sources_in(first), sources_in(second)
        if first_of and second_of and first_of <= left.sources and second_of <= right.sources:
            return first, second
    return None


def _words(conditions: Sequence[Any], left: Part, right: Part) -> list[str]:
    return [
        "IS NOT DISTINCT FROM" if isinstance(each, exp.NullSafeEQ) else "="
        for each in conditions
        if equal_sides(each, left, right)
    ]


def compared(conditions: Sequence[Any]) -> set[Of]:
    """Columns that are not null where all conditions are true."""
    found = set[Of]()
    for each in conditions:
        match each:
            case exp.EQ() | exp.LT() | exp.GT() | exp.LTE() | exp.GTE() | exp.NEQ() | exp.Like():
                sides = [each.this, each.expression]
            case exp.Between() | exp.In():
                sides = [each.this]
            case exp.Not(this=exp.Is(this=inner, expression=exp.Null())) if not each.this.args.get("negate"):
                sides = [inner]
            case exp.Is(expression=exp.Null()) if each.args.get("negate"):
                sides = [each.this]
            case _:
                sides = []
        for side in sides:
            if isinstance(side, exp.Column):
                found |= used_by(side)
    return found


def kept(columns: Sequence[Column]) -> tuple[Named, ...]:
    """Columns as they are."""
    return tuple(Named(each.name, each.kind, quoted(each.name)) for each in columns)


def bracketed(condition: Any, *parts: Part) -> str:
    """A condition that can stand between ANDs."""
    found = text(condition, *parts)
    return f"({found})" if isinstance(condition, (exp.Or, exp.Xor)) else found


def _operand(tree: Any, part: Part) -> str:
    found = text(tree, part)
    return found if isinstance(tree, (exp.Column, exp.Literal)) else f"({found})"


def _after(part: Part, both: Any) -> dict[str, str]:
    """The names of a part's columns after a join."""
    return {name: both[of] for of, name in part.columns.items() if of in both}
