"""Another name for a table or a view. Its topic and its job keep theirs; the queries of views that name it are rewritten."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from barnabas.sql.catalog.definitions import PUBLIC, TableDefinition, ViewDefinition, parts_of_name
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.create import exists
from barnabas.sql.statements.foreign_keys import referring, with_renamed_table
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.sequences import owned_by
from barnabas.sql.states import not_supported
from barnabas.sql.views.dependents import users_of
from barnabas.sql.views.names_in_text import with_other_names


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
        if tables[old].stream is not None:
            raise not_supported(f'the stream "{old}" cannot be renamed', hint="CREATE VIEW gives another name")
        made: dict[str, TableDefinition | None] = {
            old: None,
            new: with_renamed_table(
                msgspec.structs.replace(tables[old], name=new, is_renamed=True, key_name=tables[old].key_constraint), old, new
            ),
        }
        made |= {table.name: with_renamed_table(table, old, new) for table, _ in referring(tables, old)}
        for user in users_of(tables, old):
            if user.view is not None:
                made[user.name] = msgspec.structs.replace(user, view=_renamed(user.view, old, new, session.definitions.schemas))
        return made

    session.definitions.change(session.client, session.running, decide)


def _renamed(view: ViewDefinition, old: str, new: str, schemas: Collection[str]) -> ViewDefinition:
    schema, plain = parts_of_name(new, schemas)
    made = (plain,) if schema == PUBLIC else (schema, plain)

    def rename(parts: Sequence[str]) -> Sequence[str] | None:
        named = parts[-1] if len(parts) == 1 or parts[-2].lower() == PUBLIC else ".".join(parts[-2:])
        return made if old in (named, named.lower()) else None

    sources = tuple(new if each == old else each for each in view.sources)
    return msgspec.structs.replace(view, query=with_other_names(view.query, rename), sources=sources)
