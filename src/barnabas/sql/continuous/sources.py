"""FROM and WHERE: the tables of a block become parts, and the parts are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Column, Groups
from barnabas.sql.continuous.context import Common, Context
from barnabas.sql.continuous.joining import Joining, equal_sides
from barnabas.sql.continuous.parts import (
    Made,
    NotSplit,
    Of,
    Part,
    column_of,
    conjuncts,
    free_name,
    has_query,
    sources_in,
)
from barnabas.sql.continuous.scope import Scope, Source
from barnabas.sql.continuous.steps import Step, lateral, with_lateral
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.planning.names import AS_OF, tables_of
from barnabas.sql.states import not_supported

CLAUSES = ("pivots", "sample", "match", "connect", "prewhere")


class Sources:
    """The FROM of a block.

    Args:
        outer: the names around the block, if it may use them.
    """

    def __init__(self, planner: Context, select: Any, common: Common, outer: Scope | None = None) -> None:
        self._planner, self._select, self._common = planner, select, common
        self.nodes = planner.nodes
        self.scope = Scope(outer)
        self.steps: list[Step] = []
        self._conditions: list[tuple[int, Any]] = []  # each with the number of the step that it stands behind
        self.joining = Joining(self.nodes)
        self._read()

    def _read(self) -> None:
        if any(self._select.args.get(name) for name in CLAUSES):
            raise NotSplit("a clause such as PIVOT")
        origin = self._select.args.get("from_")
        if origin is None:
            raise NotSplit("a query without FROM")
        self._add(origin.this, exp.Join())
        for join in self._select.args.get("joins") or []:
            self._add(join.this, join)
        for each in self._select.args.get("laterals") or []:
            self._add(each, exp.Join())

    def _add(self, item: Any, join: Any) -> None:
        if str(join.args.get("method") or "").upper() not in ("", "NATURAL") or any(
            item.args.get(name) for name in (*CLAUSES, "joins", "laterals")
        ):
            raise NotSplit("a join of another kind")
        side = str(join.args.get("side") or "").upper()
        kind = str(join.args.get("kind") or "").upper()
        if kind in ("SEMI", "ANTI"):
            side = kind
        elif kind not in ("", "INNER", "CROSS", "OUTER"):
            raise NotSplit(f"a {kind} join")
        before = list(self.scope.sources)
        made = self._relation(item)
        if made is None:
            self.steps.append(lateral(self.nodes, self.scope, self.steps, self._planner.source_number(), item, join, side))
            return
        source = Source(self._planner.source_number(), self._alias(item), self._renamed(item, made))
        self.scope.add(source)
        step = Step(part_of(made, source), side, is_lookup=bool(item.meta.get(AS_OF)))
        if step.is_lookup and (side not in ("", "LEFT") or not before):
            raise not_supported("FOR SYSTEM_TIME AS OF PROCTIME() belongs to the right table of a JOIN or LEFT JOIN")
        self.steps.append(step)
        conditions = self._on(join, before, source, side)
        if side or step.is_lookup:
            step.conditions = conditions
        else:
            self._conditions += [(len(self.steps) - 1, each) for each in conditions]
        if side in ("SEMI", "ANTI"):
            self.scope.sources.pop()

    def _on(self, join: Any, before: Sequence[Source], source: Source, side: str) -> list[Any]:
        names = [each.name for each in join.args.get("using") or []]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            names = [name for each in before for name, _ in each.names if source.column(name) is not None]
        if not names:
            found = [self.scope.resolved(each) for each in conjuncts(join.args.get("on"))]
            if any(map(has_query, found)):
                raise NotSplit("a subquery in the condition of a join")
            return found
        conditions = []
        for name in names:
            own = column_of(source.number, source.column(name) or _missing(name))
            holders = [column_of(each.number, column) for each in before if (column := each.column(name)) is not None]
            holders = [each for each in holders if (int(each.table[1:]), each.name) not in self.scope.hidden]
            left = self.scope.merged.get(name.lower()) or (holders[0] if len(holders) == 1 else _missing(name))
            conditions.append(exp.EQ(this=left.copy(), expression=own.copy()))
            self.scope.hidden.add((source.number, own.name))
            value = {"RIGHT": own, "FULL": exp.Coalesce(this=left.copy(), expressions=[own])}.get(side, left)
            self.scope.merged[name.lower()] = value.copy()
        return conditions

    def _alias(self, item: Any) -> str:
        if item.alias:
            return str(item.alias)
        return (
            str(item.name)
            if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)
            else f"_source_{len(self.steps)}"
        )

    @staticmethod
    def _renamed(item: Any, made: Made) -> tuple[tuple[str, str], ...]:
        alias = item.args.get("alias")
        columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        if len(columns) > len(made.names):
            raise NotSplit("more names than columns")
        return tuple(
            (name, column)
            for name, (_, column) in zip([*columns, *(n for n, _ in made.names[len(columns) :])], made.names, strict=True)
        )

    def _relation(self, item: Any) -> Made | None:
        """The relation of an item; None if it depends on the rows beside it."""
        match item:
            case exp.Table() if isinstance(item.this, exp.Identifier):
                return self._planner.table(item, self._common)
            case exp.Subquery() if isinstance(item.this, exp.Query):
                return self._planner.query(item.this, self._common)
            case exp.Lateral(this=exp.Subquery(this=inner)) if tables_of(inner):
                raise NotSplit("a lateral query")
            case exp.Values() | exp.Table() | exp.Unnest() if next(item.find_all(exp.Column), None) is None:
                return self._constant(item)
            case exp.Unnest() | exp.Lateral() | exp.Table():
                return None
        raise NotSplit(f"{item.key} in FROM")

    def _constant(self, item: Any) -> Made:
        query = f"SELECT * FROM {to_duckdb(item)}"
        columns = self.nodes.kinds(query, [])
        names: list[str] = []
        for each in columns:
            names.append(free_name(each.name, names))
        node = self.nodes.add(
            Groups((), (), query, tuple(Column(name, each.kind) for name, each in zip(names, columns, strict=True)))
        )
        return Made(node, tuple((each.name, name) for name, each in zip(names, columns, strict=True)))

    def conditions(self) -> tuple[list[Any], list[Any]]:
        """Take in WHERE; gives the conditions that have subqueries, and those about names around the block."""
        nested, outer = [], []
        where = self._select.args.get("where")
        own = self._own()
        for each in conjuncts(where.this if where is not None else None):
            if has_query(each):
                nested.append(each)
                continue
            found = self.scope.resolved(each, self.aliases)
            if has_query(found):
                nested.append(each)
            elif sources_in(found) <= own:
                self._conditions.append((len(self.steps), found))
            else:
                outer.append(found)
        return nested, outer

    aliases: dict[str, Any] = {}  # noqa: RUF012 - set for each instance that has some

    def _own(self) -> frozenset[int]:
        return frozenset(each.number for each in self.scope.sources)

    def joined(self, needed: set[Of] | None) -> tuple[Part, list[Any]]:
        """All sources as one part, and conditions that are still to be applied."""
        if needed is not None:
            needed = set(needed)
            for _, condition in self._conditions:
                needed |= {(int(each.table[1:]), each.name) for each in condition.find_all(exp.Column)}
            for step in self.steps:
                trees = [*step.conditions, *([step.lateral] if step.lateral is not None else [])]
                needed |= {
                    (int(each.table[1:]), each.name)
                    for tree in trees
                    for each in tree.find_all(exp.Column)
                    if each.table.startswith("#")
                }
        self.joining = Joining(self.nodes, needed)
        pool: list[Part] = []
        for place, step in enumerate(self.steps):
            if step.part is not None and not step.side and not step.is_lookup:
                pool.append(step.part)
                continue
            part = self._all(pool, self._taken(pool, place))
            pool = [with_lateral(self.nodes, part, step) if step.part is None else self._outer(part, step)]
        conditions = [each for _, each in self._conditions]
        self._conditions = []
        if len(pool) == 1:
            return pool[0], conditions
        return self._all(pool, conditions), []

    def _taken(self, pool: Sequence[Part], place: int) -> list[Any]:
        """The conditions that can be applied before a step."""
        have = frozenset().union(*(each.sources for each in pool))
        sides = [each.side for each in self.steps]
        taken: list[tuple[int, Any]] = []
        left: list[tuple[int, Any]] = []
        for behind, each in self._conditions:
            is_ready = sources_in(each) <= have and not {"RIGHT", "FULL"} & set(sides[place:behind])
            (taken if is_ready else left).append((behind, each))
        self._conditions = left
        return [each for _, each in taken]

    def _outer(self, left: Part, step: Step) -> Part:
        assert step.part is not None
        right, conditions = step.part, list(step.conditions)
        if step.is_lookup:
            return self.joining.lookup(left, right, conditions, is_left=step.side == "LEFT")
        if step.side in ("SEMI", "ANTI"):
            return self.joining.semi(left, right, conditions, is_anti=step.side == "ANTI")
        if step.side == "RIGHT":
            own = [each for each in conditions if sources_in(each) and sources_in(each) <= left.sources]
            left, conditions = self.joining.filtered(left, own), [each for each in conditions if each not in own]
            return self.joining.outer(left, right, conditions, left_stays=False, right_stays=True)
        if step.side == "FULL":
            return self.joining.outer(left, right, conditions, right_stays=True)
        own = [each for each in conditions if sources_in(each) and sources_in(each) <= right.sources]
        right, conditions = self.joining.filtered(right, own), [each for each in conditions if each not in own]
        return self.joining.outer(left, right, conditions)

    def _all(self, pool: Sequence[Part], conditions: Sequence[Any]) -> Part:
        """Inner joins of some parts, each with one that it has a condition with, if there is one."""
        left_over = list(conditions)
        parts = []
        for place, part in enumerate(pool):
            own = [each for each in left_over if sources_in(each) <= part.sources and (sources_in(each) or place == 0)]
            left_over = [each for each in left_over if not any(each is other for other in own)]
            parts.append(self.joining.filtered(part, own))
        found, *rest = parts
        while rest:
            chosen = next((each for each in rest if any(equal_sides(one, found, each) for one in left_over)), rest[0])
            rest = [each for each in rest if each is not chosen]
            have = found.sources | chosen.sources
            own = [each for each in left_over if sources_in(each) <= have]
            left_over = [each for each in left_over if not any(each is other for other in own)]
            found = self.joining.inner(found, chosen, own)
        if left_over:
            raise NotSplit("a condition of a join")
        return found


def part_of(made: Made, source: Source) -> Part:
    """A relation as a part; its columns that no name shows are there too."""
    columns = {
        (source.number, column): column
        for column in [*(each for _, each in made.names), *sorted(frozenset().union(*made.unique))]
    }
    return Part(made.node, columns, made.unique, made.not_null)


def _missing(name: str) -> Any:
    raise NotSplit(f"the name {name}")
