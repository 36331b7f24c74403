"""Which tables a query reads: names of common table expressions hide them, as SQL says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from barnabas.sql.interface import SqlError

OF_VIEW = "of_view"  # the mark of a table in the query of a view: common table expressions around it do not hide it


AS_OF = "as_of"  # the mark of a table that a row meets as it is when the row comes


def take_as_of(table: Any) -> None:
    """FOR SYSTEM_TIME AS OF PROCTIME() of a table becomes a mark. Raises SqlError for another time."""
    version = table.args.get("version")
    if version is None:
        return
    value = version.expression
    if not (isinstance(value, exp.Anonymous) and str(value.this).lower() == "proctime"):
        raise SqlError(
            "0A000",
            "a table AS OF another time is not supported",
            position=position_in(table),
            hint="FOR SYSTEM_TIME AS OF PROCTIME()",
        )
    table.set("version", None)
    table.meta[AS_OF] = True


def tables_of(tree: exp.Expression) -> list[exp.Table]:
    """The tables that a query reads, functions and common table expressions left out, in the order of the text."""
    return [node for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier) and not _is_common(node)]


def _is_common(table: exp.Table) -> bool:
    if table.args.get("db") or table.meta.get(OF_VIEW):
        return False
    name = table.name.lower()
    done: Any = None
    inner: Any = table
    node = table.parent
    while node is not None:
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if clause is not None and clause is not done and name in _visible(clause, inner):
            return True
        done = clause if isinstance(node, exp.With) else done
        inner, node = node, node.parent
    return False


def _visible(clause: exp.With, inner: Any) -> Iterator[str]:
    """The names that a part of a query sees: within a common table expression only those before it, and itself if it is recursive."""
    for each in clause.expressions:
        if each is inner:
            if clause.args.get("recursive"):
                yield each.alias.lower()
            return
        yield each.alias.lower()


def table_of(name: str, alias: str | None = None) -> Any:
    """The table with this name as definitions have it, whatever the setting `search_path` says."""
    made = exp.table_(exp.to_identifier(name, quoted=True), db=exp.to_identifier("public", quoted=True))
    return made if alias is None else exp.alias_(made, exp.to_identifier(alias, quoted=True), table=True)


def parts_of(table: exp.Table) -> tuple[str, ...]:
    """The name of a table with its schema and database, from left to right."""
    return tuple(part.name for part in table.parts)


def position_in(node: Any) -> int | None:
    """Where a name is in the statement, from 1 on."""
    for each in (node, *node.find_all(exp.Identifier)):
        start = each.meta.get("start") if each is not None else None
        if start is not None:
            return int(start) + 1
    return None
