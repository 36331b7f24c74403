"""CREATE, ALTER and DROP SEQUENCE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from barnabas.client.blocking import BlockingClient
from barnabas.sql.catalog.definitions import PUBLIC, TableDefinition
from barnabas.sql.catalog.sequence_relation import SequenceRelation
from barnabas.sql.catalog.sequence_store import Sequences, SequenceStore
from barnabas.sql.catalog.sequences import Sequence as Numbered
from barnabas.sql.catalog.sequences import check, parts_of_text
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse_tokens, tokens_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.sequences import name_in
from barnabas.sql.results import Done
from barnabas.sql.running import Running
from barnabas.sql.statements.create import name_to_make
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.sequence_options import SequenceOptions, bounds_of, name_at, new_sequence, options_in
from barnabas.sql.states import (
    DEPENDENT,
    DUPLICATE_TABLE,
    UNDEFINED_COLUMN,
    UNDEFINED_TABLE,
    WRONG_OBJECT,
    not_supported,
    syntax_error,
)


def create_sequence(session: Host, statement: Statement) -> Ready:
    """CREATE [TEMPORARY] SEQUENCE [IF NOT EXISTS] name [options]."""
    at = 1
    is_temporary = statement.word(at) in ("TEMP", "TEMPORARY")
    at += 1 + (is_temporary or statement.word(at) == "UNLOGGED")
    if_not_exists = [statement.word(at + each) for each in range(3)] == ["IF", "NOT", "EXISTS"]
    at += 3 * if_not_exists
    position = statement.position(at)
    parts, at = name_at(statement, at)
    options = options_in(statement, at)
    if options.restart is not None or options.name is not None:
        raise syntax_error("CREATE SEQUENCE takes no RESTART and no SEQUENCE NAME", position)
    is_temporary = is_temporary or parts[-2:-1] == ["pg_temp"]
    name = session.temporary_name(parts[-1]) if is_temporary else name_to_make(session, parts, position)
    made = owned(session, new_sequence(name, options), options)

    def run(_: Sequence[Any]) -> Result:
        session.check_writable(name)
        session.definitions.refresh(session.running, max_age_s=0)
        if name in session.definitions.tables and not if_not_exists:
            raise taken(name)

        def decide(sequences: Sequences) -> Sequences:
            if name in sequences and sequences[name].id != made.id and not if_not_exists:
                raise taken(name)
            return {} if name in sequences or name in session.definitions.tables else {name: made}

        session.sequences.change(session.client, session.running, decide)
        return Done("CREATE SEQUENCE")

    return Ready(statement.text, run)


def taken(name: str) -> SqlError:
    """The error of a name that a table or a sequence has."""
    return SqlError(DUPLICATE_TABLE, f'relation "{name}" already exists')


def owned(session: Host, sequence: Numbered, options: SequenceOptions) -> Numbered:
    """The sequence with its owner, as the options have it. Raises SqlError."""
    if options.owner is None:
        return sequence
    if isinstance(options.owner, str):
        return msgspec.structs.replace(sequence, table=None, column=None)
    relation = session.find(options.owner[:-1], None)
    if not isinstance(relation, TopicRelation) or relation.definition is None:
        raise SqlError(
            WRONG_OBJECT, f'sequence cannot be owned by relation "{relation.name}"', hint="a declared table can own it"
        )
    column = relation.definition.column(options.owner[-1])
    if column is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{options.owner[-1]}" of relation "{relation.name}" does not exist')
    return msgspec.structs.replace(sequence, table=relation.name, column=column.name)


def sequence_named(session: Host, parts: Sequence[str], position: int) -> Numbered:
    """The sequence that a name means. Raises SqlError 42P01, 42809."""
    relation = session.find(parts, position)
    if not isinstance(relation, SequenceRelation):
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is not a sequence', position=position)
    return relation.sequence


def alter_sequence(session: Host, statement: Statement) -> Ready:
    """ALTER SEQUENCE [IF EXISTS] name options."""
    at = 2
    if_exists = (statement.word(at), statement.word(at + 1)) == ("IF", "EXISTS")
    at += 2 * if_exists
    position = statement.position(at)
    parts, at = name_at(statement, at)
    if at >= len(statement.tokens):
        raise syntax_error("syntax error at end of input", statement.position(at))
    options = options_in(statement, at)

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        try:
            found = sequence_named(session, parts, position)
        except SqlError as error:
            if if_exists and error.sqlstate == UNDEFINED_TABLE:
                return Done("ALTER SEQUENCE")
            raise
        if options.owner is not None and found.identity:
            raise not_supported("the owner of the sequence of an identity column cannot be changed", position)
        change_one(session, found.name, lambda sequence: altered(owned(session, sequence, options), options))
        return Done("ALTER SEQUENCE")

    return Ready(statement.text, run)


def change_one(session: Host, name: str, change: Any) -> None:
    """Write a changed sequence. Raises SqlError."""

    def decide(sequences: Sequences) -> Sequences:
        if name not in sequences:
            raise SqlError(UNDEFINED_TABLE, f'relation "{name}" does not exist')
        return {name: change(sequences[name])}

    session.sequences.change(session.client, session.running, decide)


def altered(sequence: Numbered, options: SequenceOptions) -> Numbered:
    """The sequence with these options. Raises SqlError 22023."""
    kind = options.kind or sequence.kind
    increment = sequence.increment if options.increment is None else options.increment
    kept = new_sequence(sequence.name, SequenceOptions(increment=sequence.increment), sequence.kind)
    minimum, maximum = options.minimum, options.maximum
    if minimum is None and sequence.minimum != kept.minimum:  # the type's own bounds change with the type
        minimum = sequence.minimum
    if maximum is None and sequence.maximum != kept.maximum:
        maximum = sequence.maximum
    least, most = bounds_of(kind, increment, minimum, maximum)
    made = msgspec.structs.replace(
        sequence, kind=kind, increment=increment, minimum=least, maximum=most,
        start=sequence.start if options.start is None else options.start,
        cache=sequence.cache if options.cache is None else options.cache,
        cycle=sequence.cycle if options.cycle is None else options.cycle, version=sequence.version + 1,
    )  # fmt: skip
    if options.restart is not None:
        return made.restarted(options.restart if isinstance(options.restart, int) else None)
    check(made)
    return made


def drop_sequence(session: Host, statement: Statement) -> Ready:
    """DROP SEQUENCE [IF EXISTS] name, … [CASCADE | RESTRICT]."""
    at = 2
    if_exists = (statement.word(at), statement.word(at + 1)) == ("IF", "EXISTS")
    at += 2 * if_exists
    names: list[tuple[list[str], int]] = []
    while True:
        position = statement.position(at)
        parts, at = name_at(statement, at)
        names.append((parts, position))
        if statement.word(at) != ",":
            break
        at += 1
    is_cascade = statement.word(at) == "CASCADE"
    if at + (statement.word(at) in ("CASCADE", "RESTRICT")) < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[at].text}"', statement.position(at))

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        for parts, position in names:
            try:
                found = sequence_named(session, parts, position)
            except SqlError as error:
                if not (if_exists and error.sqlstate == UNDEFINED_TABLE):
                    raise
                continue
            drop_one(session, found, is_cascade=is_cascade)
        return Done("DROP SEQUENCE")

    return Ready(statement.text, run)


def drop_one(session: Host, sequence: Numbered, *, is_cascade: bool) -> None:
    """Drop a sequence, with the defaults that take its numbers if `is_cascade`. Raises SqlError 2BP01."""
    name = sequence.name
    if sequence.identity:
        raise SqlError(
            DEPENDENT,
            f"cannot drop sequence {name} because column {sequence.column} of table {sequence.table} requires it",
            hint=f"You can drop column {sequence.column} of table {sequence.table} instead.",
        )
    users = {
        each.name: [column.name for column in each.columns if uses(column.default, name)]
        for each in session.definitions.tables.values()
    }
    used = [f"default value for column {column} of table {table}" for table, columns in users.items() for column in columns]
    if used and not is_cascade:
        raise SqlError(
            DEPENDENT, f"cannot drop sequence {name} because other objects depend on it",
            detail="\n".join(f"{each} depends on sequence {name}" for each in used),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )  # fmt: skip
    if used:
        session.definitions.change(session.client, session.running, lambda tables: _without_defaults(tables, name))
    drop_ids(session.sequences, session.client, session.running, {sequence.id})


def _without_defaults(tables: Mapping[str, TableDefinition], name: str) -> Mapping[str, TableDefinition | None]:
    made: dict[str, TableDefinition | None] = {}
    for each in tables.values():
        columns = tuple(
            msgspec.structs.replace(column, default=None) if uses(column.default, name) else column for column in each.columns
        )
        if columns != each.columns:
            made[each.name] = msgspec.structs.replace(each, columns=columns)
    return made


def uses(default: str | None, name: str) -> bool:
    """Whether a default takes numbers of a sequence."""
    if default is None or "nextval" not in default.lower():
        return False
    text = f"SELECT {default}"
    for node in parse_tokens(text, tokens_of(text)).walk():
        found = name_in(node)
        parts = parts_of_text(found) if found is not None else []
        if name == (".".join(parts[-2:]) if len(parts) > 1 and parts[-2] != PUBLIC else "".join(parts[-1:])):
            return True
    return False


def owned_by(store: SequenceStore, table: str) -> set[str]:
    """The ids of the sequences of a table."""
    return {each.id for each in store.sequences.values() if each.table == table}


def drop_sequences(store: SequenceStore, client: BlockingClient, running: Running, names: set[str]) -> None:
    """Drop sequences by name. Raises SqlError, KafkaError, ClientError."""
    drop_ids(store, client, running, {store.sequences[name].id for name in names if name in store.sequences})


def drop_ids(store: SequenceStore, client: BlockingClient, running: Running, ids: set[str]) -> None:
    """Drop sequences. One of the same name that was made meanwhile stays. Raises SqlError, KafkaError, ClientError."""
    if ids:
        store.change(client, running, lambda known: {name: None for name, each in known.items() if each.id in ids})


def restart_owned(session: Host, tables: set[str]) -> None:
    """Let the sequences of tables begin again. Raises SqlError, KafkaError, ClientError."""

    def decide(known: Sequences) -> Sequences:
        return {name: each.restarted() for name, each in known.items() if each.table in tables}

    session.sequences.refresh(session.running, max_age_s=0)
    if any(each.table in tables for each in session.sequences.sequences.values()):
        session.sequences.change(session.client, session.running, decide)
