"""The temporary views of a session: names for queries, which are put in place of the names.

A view's query is kept with the views that it reads already in place. Its tables are marked, so that a common table expression of the
statement around it cannot take their names.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import OF_VIEW, tables_of
from barnabas.sql.states import LIMIT_EXCEEDED


class Views:
    """Queries by name. `version` changes with them."""

    def __init__(self) -> None:
        self._queries: dict[str, tuple[list[str], Any, int]] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._queries

    def put(self, name: str, columns: list[str], query: Any) -> None:
        """Keep a query. Raises SqlError if there are too many, or if the views in it make it too large.

        Args:
            columns: names of its columns; empty for its own.
        """
        if len(self._queries) >= limits.MAX_SQL_TEMPORARY_VIEWS:
            raise SqlError(LIMIT_EXCEEDED, f"a session has at most {limits.MAX_SQL_TEMPORARY_VIEWS} temporary views")
        whole = self.expanded(query.copy())
        for table in tables_of(whole):
            table.meta[OF_VIEW] = True
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
        for table in tables_of(tree) if self._queries else ():
            found = self._queries.get(table.name.lower())
            if found is None or table.args.get("db"):
                continue
            columns, query, size = found
            nodes += size
            if nodes > limits.MAX_SQL_VIEW_NODES:
                raise SqlError(LIMIT_EXCEEDED, f"the views of the statement have more than {limits.MAX_SQL_VIEW_NODES} parts")
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            alias = alias.copy()
            if columns and not alias.args.get("columns"):
                alias.set("columns", [exp.to_identifier(each, quoted=True) for each in columns])
            made = exp.Subquery(this=query.copy(), alias=alias)
            for clause in ("joins", "laterals", "pivots", "sample"):
                if table.args.get(clause):
                    made.set(clause, table.args[clause])
            table.replace(made)
        return tree
