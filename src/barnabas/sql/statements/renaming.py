"""Another name for a table or a view. Its topic and its job keep theirs; the queries of views that name it are rewritten."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from sqlglot import exp

from barnabas.sql.catalog.definitions import PUBLIC, TableDefinition, ViewDefinition, parts_of_name
from barnabas.sql.dialect import parse_tokens, tokens_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import tables_of
from barnabas.sql.statements.create import exists
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.sequences import owned_by
from barnabas.sql.states import not_supported
from barnabas.sql.views.dependents import users_of


def rename(session: Host, old: str, new: str) -> None:
    """Give a table or a view another name. Raises SqlError."""
    session.check_writable()
    schema, _ = parts_of_name(old, session.definitions.schemas)
    new = new if schema == PUBLIC else f"{schema}.{new}"
    session.sequences.refresh(session.running, max_age_s=0)
    if owned_by(session.sequences, old):
        raise not_supported(
            f'the table "{old}" with a sequence of its own cannot be renamed', hint="CREATE VIEW gives another name"
        )

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        if new in tables:
            raise exists(new)
        if old not in tables:
            raise SqlError("42P01", f'relation "{old}" does not exist')
        made: dict[str, TableDefinition | None] = {
            old: None,
            new: msgspec.structs.replace(tables[old], name=new, is_renamed=True),
        }
        for user in users_of(tables, old):
            if user.view is not None:
                made[user.name] = msgspec.structs.replace(user, view=_renamed(user.view, old, new))
        return made

    session.definitions.change(session.client, session.running, decide)


def _renamed(view: ViewDefinition, old: str, new: str) -> ViewDefinition:
    sources = tuple(new if each == old else each for each in view.sources)
    return msgspec.structs.replace(view, query=renamed_query(view.query, old, new), sources=sources)


def renamed_query(text: str, old: str, new: str) -> str:
    """The text of a query that reads a table under another name; the old one stays as its alias."""
    tree = parse_tokens(text, tokens_of(text))
    name = '"' + new.replace('"', '""') + '"'
    cuts = []
    for table in tables_of(tree):
        identifier = table.this
        if not isinstance(identifier, exp.Identifier) or old not in (table.name, table.name.lower()):
            continue
        start, end = identifier.meta.get("start"), identifier.meta.get("end")
        if start is None or end is None:
            raise not_supported(f'"{old}" cannot be renamed, since a view names it in another way', hint="DROP that view first")
        alias = "" if table.args.get("alias") is not None else f" AS {text[start : end + 1]}"
        cuts.append((start, end + 1, name + alias))
    for start, end, written in sorted(cuts, reverse=True):
        text = text[:start] + written + text[end:]
    return text
