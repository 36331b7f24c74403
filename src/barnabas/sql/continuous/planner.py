"""From a query to nodes: each block by its kind, and a block of no kind as one query that is computed again at each change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import duckdb
from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Sessions, quoted
from barnabas.sql.continuous.blocks import Select
from barnabas.sql.continuous.context import Common
from barnabas.sql.continuous.functions import Functions
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.parts import Made, NotSplit, free_name
from barnabas.sql.continuous.sets import Combining
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.planning.names import tables_of
from barnabas.sql.planning.session_windows import END, KEY, START, TIME, parts_of_session


class Planner:
    """Plans the blocks of one query.

    Args:
        inputs: the relations by the names that they have in the tree.
    """

    def __init__(self, nodes: Nodes, inputs: Mapping[str, Made]) -> None:
        self.nodes, self._inputs = nodes, inputs
        self.functions = Functions(nodes.cursor)
        self._sources = 0
        self.notices: list[str] = []

    def source_number(self) -> int:
        """The number of a further source."""
        self._sources += 1
        return self._sources

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notices:
            self.notices.append(text)

    def table(self, table: Any, common: Common) -> Made:
        """The relation of a name. Raises NotSplit."""
        if not table.args.get("db"):
            if table.name.lower() in common:
                return common[table.name.lower()]()
            if table.name in self._inputs:
                return self._inputs[table.name]
        raise NotSplit(f"the table {table.name}")

    def query(self, tree: Any, common: Common) -> Made:
        """A query that reads nothing of what is around it. Raises NotSplit if it does, and duckdb.Error."""
        before = list(self.notices)
        try:
            return self._split(tree, common)
        except (NotSplit, RecursionError) as error:
            self.notices = before
            reason = str(error)
        return self._whole(tree, common, reason)

    def _split(self, tree: Any, common: Common) -> Made:
        common = self._with_common(tree, common)
        match tree:
            case exp.Subquery():
                if any(tree.args.get(each) for each in ("order", "limit", "offset", "joins", "pivots")):
                    raise NotSplit("a query in brackets with clauses")
                return self.query(tree.this, common)
            case exp.Select():
                return self._sessions(tree, common) or Select(self, tree, common).made()
            case exp.SetOperation():
                return Combining(self, tree, common).made()
        raise NotSplit(f"{tree.key} as a query")

    def _sessions(self, tree: Any, common: Common) -> Made | None:
        """The rows of a query of sessions, which have a node of their own; None for another query."""
        found = parts_of_session(tree)
        if found is None:
            return None
        rows, gap, keys = found
        made = self.query(rows, common)
        names = dict(made.names)
        columns = self.nodes.columns(made.node)
        time = names[TIME]
        kind = next(each.kind for each in columns if each.name == time)
        taken = [each.name for each in columns]
        first = free_name(START, taken)
        last = free_name(END, [*taken, first])
        by = tuple(f"input_0.{quoted(names[f'{KEY}{place}'])}" for place in range(keys))
        bounds = (Column(first, kind), Column(last, kind))
        node = self.nodes.add(Sessions(made.node, by, f"input_0.{quoted(time)}", to_duckdb(gap), (*columns, *bounds)))
        shown = [(name, column) for name, column in made.names if name != TIME and not name.startswith(KEY)]
        return Made(node, (*shown, (START, first), (END, last)), made.unique, made.not_null)

    def _with_common(self, tree: Any, common: Common) -> Common:
        clause = tree.args.get("with_")
        if clause is None:
            return common
        found = dict(common)
        for each in clause.expressions:
            found[each.alias.lower()] = self._later(each, dict(found))
        return found

    def _later(self, common: Any, before: Common) -> Callable[[], Made]:
        made: list[Made] = []

        def plan() -> Made:
            if not made:
                relation = self.query(common.this, before)
                alias = common.args.get("alias")
                columns = [each.name for each in alias.args.get("columns") or []]
                names = [*columns, *(name for name, _ in relation.names[len(columns) :])]
                pairs = tuple((name, column) for name, (_, column) in zip(names, relation.names, strict=True))
                made.append(Made(relation.node, pairs, relation.unique, relation.not_null))
            return made[0]

        return plan

    def _whole(self, tree: Any, common: Common, reason: str) -> Made:
        """The query as one node over its tables. Subqueries in its FROM are planned by themselves."""
        tree = tree.copy()
        inputs: list[int] = []
        self._place_subqueries(tree, common, inputs)
        for table in tables_of(tree):
            if not table.name.startswith("input_"):
                self._place(table, self.table(table, common), inputs)
        query = to_duckdb(tree)
        try:
            found = self.nodes.kinds(query, [self.nodes.columns(each) for each in inputs])
        except duckdb.Error as error:
            if reason.startswith("the name "):
                raise NotSplit(reason) from error
            raise
        names: list[str] = []
        for each in found:
            names.append(free_name(each.name, names))
        columns = tuple(Column(name, each.kind) for name, each in zip(names, found, strict=True))
        node = self.nodes.add(Groups(tuple(inputs), ((),) * len(inputs), query, columns))
        if inputs:
            self.note(f"each change recomputes a whole query, because it has {reason}")
        return Made(node, tuple((each.name, name) for name, each in zip(names, found, strict=True)))

    def _place_subqueries(self, tree: Any, common: Common, inputs: list[int]) -> None:
        if not isinstance(tree, exp.Select):
            return
        common = self._with_common(tree, common)
        origin = tree.args.get("from_")
        for holder in [*([origin] if origin is not None else []), *(tree.args.get("joins") or [])]:
            item = holder.this
            if (
                not isinstance(item, exp.Subquery)
                or not isinstance(item.this, exp.Query)
                or any(item.args.get(each) for each in ("joins", "laterals", "pivots", "sample"))
            ):
                continue
            before = list(self.notices)
            try:
                self._place(item, self.query(item.this, common), inputs)
            except (NotSplit, duckdb.Error):
                self.notices = before

    def _place(self, item: Any, made: Made, inputs: list[int]) -> None:
        """Put a relation where a name or a subquery was."""
        if made.node not in inputs:
            inputs.append(made.node)
        columns = [
            exp.alias_(exp.column(exp.to_identifier(column, quoted=True)), name, quoted=True) for name, column in made.names
        ]
        source = exp.select(*columns, copy=False).from_(f"input_{inputs.index(made.node)}", copy=False)
        alias = item.args.get("alias") or exp.TableAlias(this=exp.to_identifier(item.name or "_source", quoted=True))
        found: Any = exp.Subquery(this=source, alias=alias)
        for clause in ("joins", "laterals", "pivots", "sample"):
            if item.args.get(clause):
                found.set(clause, item.args[clause])
        item.replace(found)
