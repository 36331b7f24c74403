"""One SELECT: FROM and WHERE, groups, windows, columns, DISTINCT, order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Join, Named, Rows, Sums, quoted
from barnabas.sql.continuous.aggregates import Aggregating
from barnabas.sql.continuous.functions import Functions, multiplies
from barnabas.sql.continuous.joining import ONE, bracketed, compared, kept
from barnabas.sql.continuous.limits import Ordering, key_text
from barnabas.sql.continuous.nulls import is_never_null
from barnabas.sql.continuous.parts import (
    Made,
    NotSplit,
    Part,
    column_of,
    conjuncts,
    free_name,
    has_query,
    narrowed,
    outer_nodes,
    placed,
    replaced,
    text,
    used_by,
)
from barnabas.sql.continuous.sources import Sources
from barnabas.sql.continuous.subqueries import Subqueries
from barnabas.sql.continuous.ties import settled_window
from barnabas.sql.dialect import to_duckdb

if TYPE_CHECKING:
    from barnabas.sql.continuous.planner import Common, Planner

CLAUSES = ("into", "sample", "windows", "cluster", "distribute", "sort", "qualify_", "locks", "operation_modifiers")
Item = tuple[str, Any]  # the name of a column of the result, and its expression


class Select:
    """A SELECT that reads nothing of what is around it."""

    def __init__(self, planner: Planner, tree: Any, common: Common) -> None:
        self._planner, self._tree, self._common = planner, tree, common
        self._nodes = planner.nodes
        self._functions: Functions = planner.functions
        if any(tree.args.get(name) for name in CLAUSES) or tree.args.get("kind"):
            raise NotSplit("a clause of SELECT")
        self._ordering = Ordering(planner, tree)

    def made(self) -> Made:
        self._ordering.check()
        sources = Sources(self._planner, self._tree, self._common)
        self._scope = sources.scope
        self._subqueries = Subqueries(self._planner, self._scope, self._common)
        items = self._items()
        self._aliases = {name.lower(): each for name, each in items}
        sources.aliases = self._aliases
        having = self._clause("having")
        qualify = self._clause("qualify")
        order = self._order_keys(items) if self._ordering.is_limited or self._is_distinct_on else []
        distinct = self._distinct_on()
        nested, outer = sources.conditions()
        if outer:
            raise NotSplit("the name of a table around it")
        groups = Aggregating(self._planner, self._scope, self._tree, items)
        trees = [*(each for _, each in items), *having, *qualify, *(each for _, each in order), *distinct, *groups.keys]
        is_simple = not nested and not any(map(has_query, trees))
        part, conditions = sources.joined(used_by(*trees) if is_simple else None)
        if nested:
            part, conditions = self._subqueries.applied(sources.joining.filtered(part, conditions), nested, self._aliases)
        if groups.is_aggregated([each for _, each in items] + having + qualify + [each for _, each in order]):
            several = [*(each for _, each in items), *having, *qualify, *(each for _, each in order)]
            part, several = groups.made(sources.joining.filtered(part, conditions), several)
            if not used_by(*several) <= set(part.columns):
                raise NotSplit("a column that is no group")
            counts = (len(items), len(having), len(qualify))
            items = [(name, each) for (name, _), each in zip(items, several, strict=False)]
            conditions = several[counts[0] : counts[0] + counts[1]]
            qualify = several[counts[0] + counts[1] : sum(counts)]
            order = [(one, each) for (one, _), each in zip(order, several[sum(counts) :], strict=True)]
        elif having:
            raise NotSplit("HAVING without groups")
        return self._shown(part, conditions, items, qualify, order, distinct)

    def _shown(
        self, part: Part, conditions: Sequence[Any], items: Sequence[Item], qualify: Sequence[Any], order: Any, distinct: Any
    ) -> Made:
        part, conditions, items, order = self._without_scalars(part, conditions, items, order)
        has_windows = any(
            self._functions.has_window(each) for each in [*(each for _, each in items), *qualify, *(each for _, each in order)]
        )
        if has_windows:
            part, items, order = self._windows(self._filtered(part, conditions), items, qualify, order)
            conditions = []
        elif qualify:
            raise NotSplit("QUALIFY without windows")
        if distinct:
            return self._first_of_each(self._filtered(part, conditions), items, order, distinct)
        is_distinct = self._tree.args.get("distinct") is not None
        if is_distinct:
            made = self._distinct(self._filtered(part, conditions), items)
            return self._limited(made, items, order) if self._ordering.is_limited else made
        if not self._ordering.is_limited:
            return self._projected(part, conditions, items)
        extra = [
            (f"_order_{place}", each) for place, (_, each) in enumerate(order) if not any(each == other for _, other in items)
        ]
        made = self._projected(part, conditions, [*items, *extra])
        shown = Made(made.node, made.names[: len(items)], made.unique, made.not_null)
        columns = {to_duckdb(each): column for (_, each), (_, column) in zip([*items, *extra], made.names, strict=True)}
        return self._ordering.limited(shown, [key_text(one, quoted(columns[to_duckdb(each)])) for one, each in order])

    def _filtered(self, part: Part, conditions: Sequence[Any]) -> Part:
        return self._subqueries.joining.filtered(part, conditions)

    # what the statement says

    def _items(self) -> list[Item]:
        items: list[Item] = []
        aliases: dict[str, Any] = {}
        for each in self._tree.expressions:
            if each.is_star and isinstance(each, (exp.Star, exp.Column)):
                items += self._scope.star(each)
                continue
            if isinstance(each, exp.Aliases):
                raise NotSplit("a column with several names")
            made = self._scope.resolved(each.unalias(), aliases)
            name = each.alias_or_name or to_duckdb(each)
            items.append((name, made))
            aliases.setdefault(name.lower(), made)
        return items

    def _clause(self, name: str) -> list[Any]:
        clause = self._tree.args.get(name)
        return [self._scope.resolved(each, self._aliases) for each in conjuncts(clause.this if clause is not None else None)]

    def _order_keys(self, items: Sequence[Item]) -> list[tuple[Any, Any]]:
        """Sort keys, each with its expression."""
        found = []
        for each in self._ordering.order:
            tree = each.this
            if isinstance(tree, exp.Var) or (isinstance(tree, exp.Column) and tree.name.upper() == "ALL" and not tree.table):
                raise NotSplit("ORDER BY ALL")
            named = self._aliases.get(tree.name.lower()) if isinstance(tree, exp.Column) and not tree.table else None
            if isinstance(tree, exp.Literal) and not tree.is_string:
                if not 0 < int(tree.name) <= len(items):
                    raise NotSplit("a place of ORDER BY")
                named = items[int(tree.name) - 1][1]
            found.append((each, named.copy() if named is not None else self._scope.resolved(tree, self._aliases)))
        return found

    @property
    def _is_distinct_on(self) -> bool:
        distinct = self._tree.args.get("distinct")
        return distinct is not None and distinct.args.get("on") is not None

    def _distinct_on(self) -> list[Any]:
        if not self._is_distinct_on:
            return []
        on = self._tree.args["distinct"].args["on"]
        return [self._scope.resolved(each, self._aliases) for each in (on.expressions if isinstance(on, exp.Tuple) else [on])]

    # nodes

    def _without_scalars(self, part: Part, conditions: Sequence[Any], items: Sequence[Item], order: Any) -> Any:
        """The same without subqueries in expressions."""
        every = [*conditions, *(each for _, each in items), *(each for _, each in order)]
        if not any(map(has_query, every)):
            return part, conditions, items, order
        part, made = self._subqueries.scalars(part, every)
        count = len(conditions)
        named = [(name, each) for (name, _), each in zip(items, made[count:], strict=False)]
        return part, made[:count], named, [(one, each) for (one, _), each in zip(order, made[count + len(items) :], strict=True)]

    def _projected(self, part: Part, conditions: Sequence[Any], items: Sequence[Item]) -> Made:
        """The columns of the result, in the node below where that one only passes columns on."""
        is_single = not any(multiplies(each) for _, each in items)
        extra = self._identifying(part, items) if is_single else []
        whole = [*items, *extra]
        if not whole:
            raise NotSplit("a result without columns")
        names: list[str] = []
        for name, _ in whole:
            names.append(free_name(name, names))
        columns = self._typed(part, names, [each for _, each in whole])
        node = self._folded(part, conditions, names, columns, whole) if is_single else None
        if node is None:
            where = " AND ".join(bracketed(each, part) for each in conditions) or None
            node = self._nodes.add(Rows(part.node, columns, where))
        shown = tuple((name, column) for (name, _), column in zip(items, names, strict=False))
        never = part.not_null | {part.columns[each] for each in compared(conditions) if each in part.columns}
        passed: dict[str, str] = {}
        for column, (_, each) in zip(names, whole, strict=True):
            if isinstance(each, exp.Column):
                passed.setdefault(part.columns[next(iter(used_by(each)))], column)
        not_null = frozenset(column for column, (_, each) in zip(names, whole, strict=True) if is_never_null(each, part, never))
        return Made(node, shown, narrowed(part.unique, passed) if is_single else (), not_null)

    def _identifying(self, part: Part, items: Sequence[Item]) -> list[Item]:
        """Columns that identify a row, if the shown ones do not."""
        shown = {part.columns[next(iter(used_by(each)))] for _, each in items if isinstance(each, exp.Column)}
        if not part.unique or any(columns <= shown for columns in part.unique):
            return []
        of = {name: of for of, name in part.columns.items()}
        wanted = min(part.unique, key=lambda columns: (len(columns - shown), sorted(columns)))
        missing = sorted(wanted - shown)
        if not all(name in of for name in missing):
            return []
        return [(name, column_of(*of[name])) for name in missing]

    def _typed(self, part: Part, names: Sequence[str], trees: Sequence[Any]) -> tuple[Named, ...]:
        texts = [text(each, part) for each in trees]
        query = ", ".join(f"({each}) AS {quoted(name)}" for name, each in zip(names, texts, strict=True))
        kinds = self._nodes.kinds(f"SELECT {query} FROM {ONE}", [self._nodes.columns(part.node)])
        return tuple(Named(name, kind.kind, each) for name, kind, each in zip(names, kinds, texts, strict=True))

    def _folded(
        self, part: Part, conditions: Sequence[Any], names: Sequence[str], columns: Sequence[Named], items: Sequence[Item]
    ) -> int | None:
        """The projection within the node that makes the part; None if it cannot be there."""
        below, plain = self._nodes.node(part.node), part.plain
        if plain is None:
            return None

        def sql(tree: Any) -> str:
            return to_duckdb(placed(tree, lambda of: plain[part.columns[of]]))

        made = tuple(Named(name, each.kind, sql(tree)) for name, each, (_, tree) in zip(names, columns, items, strict=True))
        more = " AND ".join(f"({sql(each)})" if isinstance(each, exp.Or) else sql(each) for each in conditions)
        match below:
            case Join():
                return self._nodes.add(Join(below.left, below.right, _both(below.on, more), made))
            case Rows(source="input_0"):
                return self._nodes.add(Rows(below.input, made, _both(below.where, more)))
            case Sums() if not conditions:
                return self._nodes.add(Sums(below.input, below.keys, below.sums, made))
        return None

    def _distinct(self, part: Part, items: Sequence[Item]) -> Made:
        if any(multiplies(each) for _, each in items):
            made = self._projected(part, [], items)
            columns = self._nodes.columns(made.node)
            keys = tuple(Named(each.name, each.kind, quoted(each.name)) for each in columns)
            node = self._nodes.add(Sums(made.node, keys, (), kept(columns)))
            return Made(node, made.names, (frozenset(each.name for each in columns),), made.not_null)
        names: list[str] = []
        for name, _ in items:
            names.append(free_name(name, names))
        keys = self._typed(part, names, [each for _, each in items])
        shown = tuple((name, column) for (name, _), column in zip(items, names, strict=True))
        not_null = frozenset(
            column for column, (_, each) in zip(names, items, strict=True) if is_never_null(each, part, part.not_null)
        )
        passed = tuple(Named(each.name, each.kind, quoted(each.name)) for each in keys)
        return Made(self._nodes.add(Sums(part.node, keys, (), passed)), shown, (frozenset(names),), not_null)

    def _limited(self, made: Made, items: Sequence[Item], order: Any) -> Made:
        """The first rows of a relation whose columns are sorted by."""
        columns = {to_duckdb(each): column for (_, each), (_, column) in zip(items, made.names, strict=True)}
        try:
            keys = [key_text(one, quoted(columns[to_duckdb(each)])) for one, each in order]
        except KeyError:
            raise NotSplit("an order by what is not shown") from None
        return self._ordering.limited(made, keys)

    def _first_of_each(self, part: Part, items: Sequence[Item], order: Any, distinct: Sequence[Any]) -> Made:
        """DISTINCT ON: by its expressions."""
        names: list[str] = []
        for name, _ in items:
            names.append(free_name(name, names))
        columns = self._typed(part, names, [each for _, each in items])
        keys = tuple(text(each, part) for each in distinct)
        sort = [key_text(one, f"({text(each, part)})") for one, each in order]
        sort += [f"({each.sql})" for each in columns] + [f"{ONE}.{quoted(each.name)}" for each in self._nodes.columns(part.node)]
        shown = ", ".join(f"({each.sql}) AS {quoted(each.name)}" for each in columns)
        query = f"SELECT DISTINCT ON ({', '.join(keys)}) {shown} FROM {ONE} ORDER BY {', '.join(sort)}"
        node = self._nodes.add(Groups((part.node,), (keys,), query, tuple(Column(each.name, each.kind) for each in columns)))
        passed = {
            part.columns[next(iter(used_by(each)))]: column
            for column, (_, each) in zip(names, items, strict=True)
            if isinstance(each, exp.Column)
        }
        unique = list(narrowed(part.unique, passed))
        own = [next((name for name, (_, item) in zip(names, items, strict=True) if item == each), None) for each in distinct]
        if all(own):
            unique.append(frozenset(name for name in own if name))
        not_null = frozenset(
            column for column, (_, each) in zip(names, items, strict=True) if is_never_null(each, part, part.not_null)
        )
        made = Made(node, tuple((name, column) for (name, _), column in zip(items, names, strict=True)), tuple(unique), not_null)
        if self._ordering.is_limited:
            return self._limited(made, items, order)
        return made

    def _windows(self, part: Part, items: Sequence[Item], qualify: Sequence[Any], order: Any) -> tuple[Part, list[Item], Any]:
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
        columns = self._nodes.columns(part.node)
        row = [f"{ONE}.{quoted(each.name)}" for each in columns]
        names = [f"w{place}" for place in range(len(windows))]
        taken = [each.name for each in columns]
        names = [free_name(each, taken) for each in names]
        texts = [text(settled_window(each, [column_of(*of) for of in part.columns]), part) for each in windows]
        query = f"SELECT {', '.join([*row, *(f'({each}) AS {quoted(name)}' for each, name in zip(texts, names, strict=True))])} FROM {ONE}"
        source = self._planner.source_number()
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
        found = self._nodes.kinds(query, [columns])
        keys = tuple(text(each, part) for each in common)
        if not keys:
            self._planner.note("each change recomputes the windows of all rows (OVER without PARTITION BY)")
        node = self._nodes.add(Groups((part.node,), (keys,), query, tuple(found)))
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


def _both(one: str | None, more: str) -> str | None:
    if not more:
        return one
    return more if not one else f"{one} AND {more}"
