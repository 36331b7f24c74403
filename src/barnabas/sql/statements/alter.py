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
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.catalog.sequence_relation import SequenceRelation
from barnabas.sql.catalog.sequence_store import SequenceStore
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.dialect import Statement, parse, parse_tokens, statement_of, tokens_of, words_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.results import Done
from barnabas.sql.running import Running
from barnabas.sql.statements.alter_columns import (
    check_columns_unused,
    free_field,
    with_nulls,
    with_renamed_column,
    with_type,
    without_column,
)
from barnabas.sql.statements.alter_constraints import check_rows_there, has_foreign_key, readable, with_added
from barnabas.sql.statements.columns import column_of, default_text, folded
from barnabas.sql.statements.constraints import take_constraints, with_constraints, without_constraint
from barnabas.sql.statements.create import FOREIGN_KEYS, check, check_defaults
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.modify import delete_all
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.statements.registered import with_evolved_schema
from barnabas.sql.statements.renaming import rename
from barnabas.sql.statements.sequences import drop_ids, owned_by, restart_owned
from barnabas.sql.statements.target import check_no_view
from barnabas.sql.statements.watermarks import FORM, take_watermark, watermark_of
from barnabas.sql.states import (
    DUPLICATE_COLUMN,
    NOT_NULL,
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
    definitions.change(client, running, lambda tables: {name: None} if name in tables else {})
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
        return {} if made == tables[name] else {name: made}

    session.check_writable()
    session.definitions.change(session.client, session.running, decide)


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
    if "WATERMARK" in (statement.word(at) for at in range(3, 8)):
        return _watermark(session, statement)
    tree = parse(readable(statement))
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
    changes = [_change(action, session.zone, is_valid=not tree.args.get("not_valid")) for action in actions]

    def apply(made: TableDefinition) -> TableDefinition:
        for change in changes:
            made = change(made)
        return made

    made = apply(definition)
    check_defaults(session, made, statement.text)
    _refuse_functions(session, made)

    def run(_: Sequence[Any]) -> Result:
        before = session.definitions.tables.get(definition.name)
        if before is not None:
            after = apply(before)
            check_columns_unused(session.definitions.tables, session.view_jobs.jobs(), before, after)
            check_rows_there(session, before, after, statement.text)
        if definition.is_registered and len(apply(definition).columns) > len(definition.columns):
            changed(session, definition.name, partial(with_evolved_schema, session, apply))
        else:
            changed(session, definition.name, apply)
        if any(map(has_foreign_key, actions)):
            session.notify(FOREIGN_KEYS)
        return Done("ALTER TABLE")

    return Ready(statement.text, run)


def _refuse_functions(session: Host, made: TableDefinition) -> None:
    """Raises SqlError if older rows would show a default that calls a function of users: the function may be dropped."""
    for each in made.columns:
        if each.added and not each.nullable and each.default is not None:
            _, functions = session.routines.expanded(parse(statement_of(f"SELECT {each.default}")))
            if functions:
                raise not_supported(
                    f'the default of the added column "{each.name}" cannot call the function {functions[0].name}',
                    hint="add the column without NOT NULL, and UPDATE the rows",
                )


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
    return _changing(session, statement, definition.name, apply, "ALTER TABLE")


def _actions(tree: Any) -> list[Any]:
    """The changes one by one; Spark's ADD COLUMNS (…) has several columns in brackets."""
    found: list[Any] = []
    for action in tree.args["actions"]:
        found += action.expressions if isinstance(action, exp.Schema) else [action]
    return found


def _change(action: Any, zone: Zone, *, is_valid: bool) -> Change:
    match action:
        case exp.ColumnDef():
            return lambda made: _with_column(made, action.copy(), zone)
        case exp.AddConstraint():
            return lambda made: with_added(made, action, is_valid=is_valid)
        case exp.RenameColumn():
            return lambda made: with_renamed_column(made, action)
        case exp.AlterColumn() if action.args.get("allow_null") is not None:
            return lambda made: with_nulls(made, action)
        case exp.AlterColumn() if action.args.get("dtype") is not None:
            return lambda made: with_type(made, action)
        case exp.AlterColumn() if action.args.get("default") is not None or action.args.get("drop"):
            return lambda made: _with_default(made, action, zone)
    if isinstance(action, exp.Drop) and action.args["kind"] == "COLUMN":
        return lambda made: without_column(made, action)
    if isinstance(action, exp.Drop) and action.args["kind"] == "CONSTRAINT":
        name = folded(action.args["tables"][0].this)
        return lambda made: without_constraint(made, name, if_exists=bool(action.args.get("exists")))
    hint = "there are RENAME, ADD COLUMN, DROP COLUMN, ALTER COLUMN … TYPE, DEFAULT and NOT NULL, ADD and DROP CONSTRAINT"
    raise not_supported(f"this form of ALTER TABLE … {words_of(action)} is not supported", hint=hint)


def _with_column(made: TableDefinition, item: Any, zone: Zone) -> TableDefinition:
    constraints = take_constraints(exp.Schema(expressions=[item]))
    column, is_primary, numbering = column_of(item, zone)
    if made.column(column.name) is not None:
        if item.args.get("exists"):
            return made
        raise SqlError(
            DUPLICATE_COLUMN, f'column "{column.name}" of relation "{made.name}" already exists', position=position_in(item)
        )
    _refuse_numbers(column, item, numbering is not None)
    if is_primary:
        raise not_supported("a primary key cannot be added", position_in(item), "CREATE TABLE … PRIMARY KEY over the same topic")
    if not column.nullable and column.default is None:
        raise SqlError(
            NOT_NULL, f'column "{column.name}" of relation "{made.name}" contains null values', hint="give it a DEFAULT"
        )
    if made.format in ("text", "raw"):
        raise not_supported(f"a table of the format {made.format} has one column", position_in(item))
    if constraints and not column.nullable:
        hint = "ALTER TABLE … ADD CONSTRAINT in another statement looks at the rows that are there"
        raise not_supported("an added column that is not null cannot have a constraint", position_in(item), hint)
    column = msgspec.structs.replace(column, added=True, stored=free_field(made, column.name))
    return with_constraints(msgspec.structs.replace(made, columns=(*made.columns, column)), constraints)


def _refuse_numbers(column: ColumnDefinition, item: Any, is_numbered: bool) -> None:
    """Older rows show the default of an added column that is not null: they would have another number at each look."""
    if is_numbered or (not column.nullable and column.default is not None and "nextval" in column.default.lower()):
        raise not_supported(
            "a sequence cannot number the rows that are there",
            position_in(item),
            "CREATE TABLE with the column, and INSERT … SELECT",
        )


def _with_default(made: TableDefinition, item: Any, zone: Zone) -> TableDefinition:
    name = folded(item.this)
    column = made.column(name)
    if column is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{name}" of relation "{made.name}" does not exist', position=position_in(item))
    value = item.args.get("default")
    text = None if value is None else default_text(value, column.kind, zone)
    for each in made.columns:
        if each.name.lower() == name.lower():
            if each.identity:
                raise syntax_error(f'column "{each.name}" of relation "{made.name}" is an identity column', position_in(item))
            if each.added and not each.nullable:
                _refuse_numbers(msgspec.structs.replace(each, default=text), item, False)
    columns = tuple(
        msgspec.structs.replace(each, default=text) if each.name.lower() == name.lower() else each for each in made.columns
    )
    return msgspec.structs.replace(made, columns=columns)


_COMMENTED = ("TABLE", "VIEW")


def comment(session: Host, statement: Statement, _: Any) -> Ready:
    """COMMENT ON TABLE | COLUMN name IS 'text' | NULL."""
    is_removed = statement.word(len(statement.tokens) - 1) == "NULL"  # sqlglot takes only texts
    tokens = [*statement.tokens[:-1], *tokens_of("''")] if is_removed else statement.tokens
    tree = parse(
        Statement(statement.text, [each for at, each in enumerate(tokens) if at != 2 or statement.word(2) != "MATERIALIZED"])
    )
    kind = str(tree.args.get("kind", "")).upper() if isinstance(tree, exp.Comment) else ""
    if kind not in (*_COMMENTED, "COLUMN"):
        raise not_supported(
            f"COMMENT ON {kind or statement.word(2)} is not supported", statement.position(0), "there are TABLE, VIEW and COLUMN"
        )
    text = None if is_removed else tree.expression.name
    if kind in _COMMENTED:
        name = definition_named(session, tree.this).name
        return _changing(session, statement, name, lambda made: msgspec.structs.replace(made, comment=text), "COMMENT")
    column = tree.this
    if not isinstance(column, exp.Column) or not column.table:
        raise syntax_error("COMMENT ON COLUMN needs table.column", statement.position(3))
    table = exp.table_(column.table)
    definition = definition_named(session, table)
    found = definition.column(column.name)
    if found is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{column.name}" of relation "{definition.name}" does not exist')
    wanted = found.name

    def apply(made: TableDefinition) -> TableDefinition:
        columns = tuple(msgspec.structs.replace(each, comment=text) if each.name == wanted else each for each in made.columns)
        return msgspec.structs.replace(made, columns=columns)

    return _changing(session, statement, definition.name, apply, "COMMENT")


def _changing(session: Host, statement: Statement, name: str, apply: Change, tag: str) -> Ready:
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
