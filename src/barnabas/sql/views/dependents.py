"""Which views read a table, directly or through other views. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.interface import SqlError

DEPENDENT = "2BP01"


def users_of(tables: Mapping[str, TableDefinition], name: str) -> list[TableDefinition]:
    """The views that name a table."""
    return [each for each in tables.values() if each.view is not None and name in each.view.sources]


def dependents(tables: Mapping[str, TableDefinition], name: str) -> list[str]:
    """The views over a table, each before those that it reads."""
    users: dict[str, list[str]] = {}
    for each in tables.values():
        for source in each.view.sources if each.view is not None else ():
            users.setdefault(source, []).append(each.name)
    found: dict[str, None] = {}

    def visit(of: str) -> None:
        for user in users.get(of, ()):
            if user not in found:
                visit(user)
                found.setdefault(user)

    visit(name)
    return list(found)


def sources(tables: Mapping[str, TableDefinition], name: str) -> set[str]:
    """The tables and views that a view reads, directly or through other views."""
    found: set[str] = set()
    pending = [name]
    while pending:
        definition = tables.get(pending.pop())
        for source in definition.view.sources if definition is not None and definition.view is not None else ():
            if source not in found:
                found.add(source)
                pending.append(source)
    return found


def check_unused(tables: Mapping[str, TableDefinition], name: str, *, leaving: tuple[str, ...] = ()) -> None:
    """Raises SqlError 2BP01 if views read a table.

    Args:
        leaving: views that go with it.
    """
    users = [each for each in dependents(tables, name) if each not in leaving]
    if users:
        kind = kind_of(tables.get(name))
        lines = [f"{kind_of(tables[each])} {each} depends on {kind} {name}" for each in reversed(users)]
        raise SqlError(
            DEPENDENT, f"cannot drop {kind} {name} because other objects depend on it: {', '.join(reversed(users))}",
            detail="\n".join(lines), hint="Use DROP … CASCADE to drop the dependent objects too.",
        )  # fmt: skip


def kind_of(definition: TableDefinition | None) -> str:
    """The word for a definition, in a sentence."""
    if definition is not None and definition.stream is not None:
        return "stream"
    if definition is None or definition.view is None:
        return "table"
    return "materialized view" if definition.view.is_materialized else "view"
