"""ALTER TABLE, TRUNCATE and COMMENT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlglot import exp

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.sequence_relation import SequenceRelation
from barnabas.sql.catalog.sequence_store import SequenceStore
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.dialect import Statement, parse, parse_tokens, statement_of, tokens_of, words_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.user_types import resolve_types
from barnabas.sql.results import Done
from barnabas.sql.running import Running
from barnabas.sql.statements.added_columns import check_added, refuse_numbers, values_of_rows, with_column, with_values
from barnabas.sql.statements.alter_columns import (
    check_columns_unused,
    with_nulls,
    with_renamed_column,
    with_type,
    without_column,
)
from barnabas.sql.statements.alter_constraints import check_rows_there, has_foreign_key, readable, with_added
from barnabas.sql.statements.columns import default_of_type, folded
from barnabas.sql.statements.constraints import with_other_name, without_constraint
from barnabas.sql.statements.create import check, check_defaults
from barnabas.sql.statements.enum_users import check_labels
from barnabas.sql.statements.foreign_keys import NOT_ENFORCED, check_still_unique, with_renamed, without_references
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.modify import delete_all
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.statements.registered import with_evolved_schema
from barnabas.sql.statements.renaming import rename
from barnabas.sql.statements.sequences import drop_ids, owned_by, restart_owned
from barnabas.sql.statements.target import check_no_view
from barnabas.sql.statements.watermarks import FORM, take_watermark, watermark_of
from barnabas.sql.states import (
    UNDEFINED_COLUMN,
    UNDEFINED_TABLE,
    WRONG_OBJECT,
    not_supported,
    syntax_error,
)
from barnabas.sql.zones import Zone

Change = Callable[[TableDefinition], TableDefinition]


def definition_named(session: Host, table: Any) -> TableDefinition:
    """The definition of a table. Raises SqlError for an unknown or undeclared one."""
    parts = [part.name for part in table.parts]
    relation = session.find(parts, position_in(table))
    if isinstance(relation, SequenceRelation):
        raise SqlError(
            WRONG_OBJECT,
            f'"{relation.name}" is not a table',
            position=position_in(table),
            hint="there are ALTER and DROP SEQUENCE",
        )
    found: TableDefinition | None = getattr(relation, "definition", None)
    if found is None:
        raise SqlError(
            WRONG_OBJECT,
            f'"{relation.name}" is a topic without a definition',
            position=position_in(table),
            hint=f'declare it: CREATE TABLE "{relation.name}" (…)',
        )
    return found


def table_named(session: Host, table: Any) -> TableDefinition:
    """The definition of a table that statements write to. Raises SqlError, also for a view."""
    found = definition_named(session, table)
    check_no_view(found, position_in(table))
    return found


def drop_table(
    definitions: DefinitionStore, sequences: SequenceStore, client: BlockingClient, running: Running, name: str
) -> None:
    """Drop a table by the name of its definition, with its sequences; nothing if there is none.

    Raises:
        SqlError, KafkaError, ClientError: it is not certain that it is gone.
    """
    definition = definitions.tables.get(name)
    ids = owned_by(sequences, name)
    definitions.change(client, running, lambda tables: {name: None, **without_references(tables, name)} if name in tables else {})
    if definition is not None and definition.owns_topic:
        delete_topic(client, definition.topic)
    drop_ids(sequences, client, running, ids)


def delete_topic(client: BlockingClient, topic: str) -> None:
    """Delete a topic; nothing if there is none. Raises KafkaError, ClientError."""
    try:
        client.delete_topics([topic])
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise


def changed(session: Host, name: str, change: Change) -> None:
    """Write a changed definition. Raises SqlError."""

    session.check_writable()

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        if name not in tables:
            raise SqlError("42P01", f'relation "{name}" does not exist')
        made = change(tables[name])
        check(made)
        return {} if made == tables[name] else {name: made, **_with_names(tables, tables[name], made)}

    session.check_writable()
    session.definitions.change(session.client, session.running, decide)


def _with_names(
    tables: Mapping[str, TableDefinition], before: TableDefinition, after: TableDefinition
) -> dict[str, TableDefinition | None]:
    """The tables that refer to one whose column gets another name. Raises SqlError 2BP01 if a key goes that others refer to."""
    pairs = zip(before.columns, after.columns, strict=False)
    other = (
        [(old.name, new.name) for old, new in pairs if old.name != new.name] if len(before.columns) == len(after.columns) else []
    )
    if len(other) != 1:
        check_still_unique(tables, after)
        return {}
    found = [
        each for each in tables.values() if each.name != after.name and any(key.table == after.name for key in each.foreign_keys)
    ]
    return {each.name: with_renamed(each, after.name, *other[0]) for each in found}


def _check_kind(statement: Statement) -> None:
    """Raises SqlError if the statement does not say ALTER TABLE."""
    if len(statement.tokens) == 1:
        raise syntax_error("ALTER needs the kind of what it alters, such as TABLE", statement.position(1))
    if statement.word(1) != "TABLE":
        raise not_supported(
            f"ALTER {statement.word(1)} is not supported", statement.position(1), "there is ALTER TABLE … ADD COLUMN"
        )


def alter(session: Host, statement: Statement, _: Any) -> Ready:
    """ALTER TABLE name ADD [COLUMN] [IF NOT EXISTS] …, ALTER COLUMN … SET | DROP DEFAULT."""
    _check_kind(statement)
    read = _by_words(session, statement)
    if read is not None:
        return read
    tree = parse(readable(statement))
    resolve_types(tree, session.access.types())
    if not isinstance(tree, exp.Alter):
        raise not_supported(
            "this form of ALTER TABLE is not supported", statement.position(0), "there is ALTER TABLE … ADD COLUMN"
        )
    try:
        definition = table_named(session, tree.this)
    except SqlError as error:
        if tree.args.get("exists") and error.sqlstate == UNDEFINED_TABLE:
            return done(statement.text, "ALTER TABLE")
        raise
    actions = _actions(tree)
    if len(actions) == 1 and isinstance(actions[0], exp.AlterRename):
        return done(statement.text, "ALTER TABLE", lambda: rename(session, definition.name, folded(actions[0].this.this)))
    changes = [_change(session, action, is_valid=not tree.args.get("not_valid")) for action in actions]

    def apply(made: TableDefinition) -> TableDefinition:
        for change in changes:
            made = change(made)
        return made

    made = apply(definition)
    check_defaults(session, made, statement.text)
    check_added(session, definition, made)

    def run(_: Sequence[Any]) -> Result:
        values = _checked_values(session, definition.name, apply, statement.text)

        def whole(found: TableDefinition) -> TableDefinition:
            return with_values(apply(found), values)

        if definition.is_registered and len(apply(definition).columns) > len(definition.columns):
            changed(session, definition.name, partial(with_evolved_schema, session, whole))
        else:
            changed(session, definition.name, whole)
        if any(map(has_foreign_key, actions)):
            session.notify(NOT_ENFORCED)
        return Done("ALTER TABLE")

    return Ready(statement.text, run)


def _by_words(session: Host, statement: Statement) -> Ready | None:
    """The forms that sqlglot does not read; None for others. Raises SqlError."""
    if "WATERMARK" in (statement.word(at) for at in range(3, 8)):
        return _watermark(session, statement)
    at = next((at for at in range(3, 10) if (statement.word(at), statement.word(at + 1)) == ("RENAME", "CONSTRAINT")), None)
    return None if at is None else _rename_constraint(session, statement, at)


def _rename_constraint(session: Host, statement: Statement, at: int) -> Ready:
    """ALTER TABLE name RENAME CONSTRAINT name TO name. Raises SqlError."""
    table = parse_tokens(statement.text, [*tokens_of("TABLE"), *statement.tokens[2:at]]).args["from_"].this
    definition = table_named(session, table)
    old, end = name_at(statement, at + 2)
    if statement.word(end) != "TO":
        raise syntax_error("ALTER TABLE name RENAME CONSTRAINT name TO name", statement.position(end))
    new, end = name_at(statement, end + 1)
    if end < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[end].text}"', statement.position(end))
    with_other_name(definition, old[-1], new[-1])
    return changing(session, statement, definition.name, lambda made: with_other_name(made, old[-1], new[-1]), "ALTER TABLE")


def _checked_values(session: Host, name: str, apply: Change, text: str) -> Mapping[str, str]:
    """The values of added columns in the rows of a table. Raises SqlError if its rows or its users do not fit the change."""
    before = session.definitions.tables.get(name)
    if before is None:
        return {}
    after = apply(before)
    check_columns_unused(session.definitions.tables, session.view_jobs.jobs(), before, after)
    check_labels(session, before, after, text)
    values = values_of_rows(session, before, after, text)
    check_rows_there(session, before, with_values(after, values), text)
    return values


def _watermark(session: Host, statement: Statement) -> Ready:
    """ALTER TABLE name ADD WATERMARK FOR column AS expression | DROP WATERMARK: for views that are created from then on."""
    at = next(at for at in range(3, 8) if statement.word(at) == "WATERMARK")
    action, is_last = statement.word(at - 1), at == len(statement.tokens) - 1
    if action not in ("ADD", "DROP") or is_last != (action == "DROP"):
        raise syntax_error(f"the statement is ALTER TABLE name ADD {FORM}, or DROP WATERMARK", statement.position(at))
    definition = table_named(
        session, parse_tokens(statement.text, [*tokens_of("TABLE"), *statement.tokens[2 : at - 1]]).args["from_"].this
    )
    tree = None
    if action == "ADD":
        tree = take_watermark(parse(statement_of(f"CREATE TABLE t (x int, {statement.raw(at)})")).this)

    def apply(made: TableDefinition) -> TableDefinition:
        mark = None if tree is None else watermark_of(tree, made.columns, can_change=made.is_keyed)
        return msgspec.structs.replace(made, watermark=mark)

    apply(definition)
    return changing(session, statement, definition.name, apply, "ALTER TABLE")


def _actions(tree: Any) -> list[Any]:
    """The changes one by one; Spark's ADD COLUMNS (…) has several columns in brackets."""
    found: list[Any] = []
    for action in tree.args["actions"]:
        found += action.expressions if isinstance(action, exp.Schema) else [action]
    return found


def _change(session: Host, action: Any, *, is_valid: bool) -> Change:
    match action:
        case exp.ColumnDef():
            return lambda made: with_column(session, made, action.copy())
        case exp.AddConstraint():
            return lambda made: with_added(session, made, action, is_valid=is_valid)
        case exp.RenameColumn():
            return lambda made: with_renamed_column(made, action)
        case exp.AlterColumn() if action.args.get("allow_null") is not None:
            return lambda made: with_nulls(made, action)
        case exp.AlterColumn() if action.args.get("dtype") is not None:
            return lambda made: with_type(made, action)
        case exp.AlterColumn() if action.args.get("default") is not None or action.args.get("drop"):
            return lambda made: _with_default(made, action, session.zone)
    if isinstance(action, exp.Drop) and action.args["kind"] == "COLUMN":
        return lambda made: without_column(made, action)
    if isinstance(action, exp.Drop) and action.args["kind"] == "CONSTRAINT":
        name = folded(action.args["tables"][0].this)
        return lambda made: without_constraint(made, name, if_exists=bool(action.args.get("exists")))
    hint = "there are RENAME, ADD COLUMN, DROP COLUMN, ALTER COLUMN … TYPE, DEFAULT and NOT NULL, ADD and DROP CONSTRAINT"
    raise not_supported(f"this form of ALTER TABLE … {words_of(action)} is not supported", hint=hint)


def _with_default(made: TableDefinition, item: Any, zone: Zone) -> TableDefinition:
    name = folded(item.this)
    column = made.column(name)
    if column is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{name}" of relation "{made.name}" does not exist', position=position_in(item))
    value = item.args.get("default")
    text = None if value is None else default_of_type(value, column.field, zone)
    for each in made.columns:
        if each.name.lower() == name.lower():
            if each.identity:
                raise syntax_error(f'column "{each.name}" of relation "{made.name}" is an identity column', position_in(item))
            if each.added and not each.nullable and each.missing is None:
                refuse_numbers(msgspec.structs.replace(each, default=text), item, False)
    columns = tuple(
        msgspec.structs.replace(each, default=text) if each.name.lower() == name.lower() else each for each in made.columns
    )
    return msgspec.structs.replace(made, columns=columns)


def changing(session: Host, statement: Statement, name: str, apply: Change, tag: str) -> Ready:
    """The statement that writes a changed definition."""

    def run(_: Sequence[Any]) -> Result:
        changed(session, name, apply)
        return Done(tag)

    return Ready(statement.text, run)


def truncate(session: Host, statement: Statement, _: Any) -> Ready:
    """TRUNCATE [TABLE] name, … [RESTART IDENTITY | CONTINUE IDENTITY]: the records are deleted."""
    tree = parse(statement)
    if not isinstance(tree, exp.TruncateTable):
        raise not_supported("this form of TRUNCATE is not supported", hint="TRUNCATE name")
    definitions = [table_named(session, table) for table in tree.expressions]
    restarts = tree.args.get("identity") == "RESTART"

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        for definition in definitions:
            _truncate(session, definition)
        if restarts:
            restart_owned(session, {each.name for each in definitions})
        return Done("TRUNCATE TABLE")

    return Ready(statement.text, run)


def _truncate(session: Host, definition: TableDefinition) -> None:
    session.check_writable(definition.name)
    topic = session.client.topics_by_name([definition.topic])[definition.topic]
    places = [(definition.topic, partition) for partition in topic.partitions]
    ends = session.client.list_offsets(dict.fromkeys(places, LATEST), read_committed=True)
    try:
        session.client.delete_records({place: found.offset for place, found in ends.items()})
    except KafkaError as error:
        if error.code != ErrorCode.POLICY_VIOLATION or not definition.is_keyed:
            raise
        delete_all(session, definition)
