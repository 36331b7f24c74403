"""Views whose query is put in place of their names: the temporary views of a session, and those that last.

A temporary view's query is kept with the views that it reads already in place. Its tables are marked, so that a common table expression of
the statement around it cannot take their names. Within a lasting view, names of temporary views mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from barnabas import limits
from barnabas.sql.catalog.postgres.relations import is_of_catalogue
from barnabas.sql.dialect import STREAM
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import AS_OF, OF_VIEW, parts_of, position_in, tables_of, take_as_of
from barnabas.sql.states import LIMIT_EXCEEDED, WRONG_OBJECT

MAX_DEPTH = 32  # of views that read views
Lasting = Callable[[Sequence[str]], tuple[Sequence[str], Any] | None]  # the names of the columns, and the query of a name


class Views:
    """Queries by name. `version` changes with the temporary ones.

    Args:
        lasting: finds a view that lasts; None without one of the name.
    """

    def __init__(self, lasting: Lasting = lambda _: None) -> None:
        self._queries: dict[str, tuple[list[str], Any, int]] = {}
        self._lasting = lasting
        self.version = 0

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._queries

    def put(self, name: str, columns: list[str], query: Any) -> None:
        """Keep a query for the session. Raises SqlError if there are too many, or if the views in it make it too large.

        Args:
            columns: names of its columns; empty for its own.
        """
        if len(self._queries) >= limits.MAX_SQL_TEMPORARY_VIEWS:
            raise SqlError(LIMIT_EXCEEDED, f"a session has at most {limits.MAX_SQL_TEMPORARY_VIEWS} temporary views")
        whole = _marked(self.expanded(query.copy()))
        self._queries[name.lower()] = columns, whole, sum(1 for _ in whole.walk())
        self.version += 1

    def drop(self, name: str) -> None:
        """Forget a query."""
        del self._queries[name.lower()]
        self.version += 1

    def clear(self) -> None:
        """Forget all."""
        self._queries.clear()
        self.version += 1

    def expanded(self, tree: Any) -> Any:
        """The query with the views in place; the tree is changed. Raises SqlError if they make it too large."""
        nodes = 0
        for table in tables_of(tree):
            found = self._queries.get(table.name.lower()) if not table.args.get("db") else None
            if found is None:
                made = self._of_lasting(table, MAX_DEPTH)
                if made is None:
                    continue
                found = *made, sum(1 for _ in made[1].walk())
            _check_no_stream(table)
            columns, query, size = found
            nodes += size
            if nodes > limits.MAX_SQL_VIEW_NODES:
                raise SqlError(LIMIT_EXCEEDED, f"the views of the statement have more than {limits.MAX_SQL_VIEW_NODES} parts")
            _place(table, columns, query.copy())
        return tree

    def _of_lasting(self, table: Any, depth: int) -> tuple[list[str], Any] | None:
        """The columns of a lasting view and its query, with the views that it reads in place."""
        found = self._lasting(parts_of(table))
        if found is None:
            return None
        if not depth:
            raise SqlError("42P17", f"more than {MAX_DEPTH} views read each other", hint="a view may read itself")
        columns, query = found
        _bind(query)
        for inner in tables_of(query):
            made = self._of_lasting(inner, depth - 1)
            if made is not None:
                _check_no_stream(inner)
                _place(inner, *made)
        if sum(1 for _ in query.walk()) > limits.MAX_SQL_VIEW_NODES:
            raise SqlError(LIMIT_EXCEEDED, f"the views of the statement have more than {limits.MAX_SQL_VIEW_NODES} parts")
        names = exp.TableAlias(
            this=exp.to_identifier("_view", quoted=True), columns=[exp.to_identifier(each, quoted=True) for each in columns]
        )
        shown = exp.select(*(exp.column(exp.to_identifier(each, quoted=True)) for each in columns), copy=False)
        return list(columns), _marked(shown.from_(exp.Subquery(this=query, alias=names), copy=False))


def _bind(query: Any) -> None:
    """Give the tables of a lasting view the schema that they had when it was created: without a word, it was `public`."""
    for table in tables_of(query):
        if not table.args.get("db") and isinstance(table.this, exp.Identifier) and not is_of_catalogue(None, table.name):
            table.set("db", exp.to_identifier("public", quoted=True))


def _check_no_stream(table: Any) -> None:
    """Raises SqlError 42809 for STREAM before a name that a view has."""
    if table.meta.get(STREAM):
        hint = "write STREAM before the tables of its query, or CREATE MATERIALIZED VIEW"
        raise SqlError(WRONG_OBJECT, f'the view "{table.name}" is a query, and no stream', position=position_in(table), hint=hint)


def _marked(tree: Any) -> Any:
    for table in tables_of(tree):
        table.meta[OF_VIEW] = True
    return tree


def _place(table: Any, columns: Sequence[str], query: Any) -> None:
    """Put a query where the name of its view was."""
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    alias = alias.copy()
    if columns and not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(each, quoted=True) for each in columns])
    made = exp.Subquery(this=query, alias=alias)
    take_as_of(table)
    if table.meta.get(AS_OF):
        made.meta[AS_OF] = True
    for clause in ("joins", "laterals", "pivots", "sample"):
        if table.args.get(clause):
            made.set(clause, table.args[clause])
    table.replace(made)
