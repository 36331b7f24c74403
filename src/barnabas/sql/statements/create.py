"""CREATE TABLE: over a topic that exists, over a topic of its own, or from a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.client.results import NewTopic
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.sql.catalog.definitions import ALWAYS, BY_DEFAULT, FORMATS, ColumnDefinition, TableDefinition, quoted
from barnabas.sql.catalog.topics import declared
from barnabas.sql.dialect import IDENTITY_OPTIONS, Statement, parse, words_of
from barnabas.sql.duck.types import declared_field
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.sequences import check_name, name_in
from barnabas.sql.results import Done
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.numbered import Numbering, with_sequences
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.sequence_options import SequenceOptions, new_sequence, options_in
from barnabas.sql.statements.target import cast_to, default_of
from barnabas.sql.states import (
    DUPLICATE_COLUMN,
    DUPLICATE_TABLE,
    INVALID_PARAMETER,
    INVALID_TABLE,
    UNDEFINED_COLUMN,
    not_supported,
    syntax_error,
)
from barnabas.tables.column_types import type_name
from barnabas.tables.scan import EXTRA_FIELDS, META_FIELDS, MODES

RESERVED = {each.name for each in (*META_FIELDS, *EXTRA_FIELDS)} | {"_key"}
OPTIONS = ("topic", "key", "format", "partitions", "replicas", "mode")
COLLATIONS = ("c", "posix", "default", "ucs_basic")  # texts are compared by their bytes
_SERIALS = {exp.DType.SMALLSERIAL: "smallint", exp.DType.SERIAL: "integer", exp.DType.BIGSERIAL: "bigint"}
_WHOLE: dict[pa.DataType, str] = {pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint"}
# Of Postgres' pages; topics have none.
STORAGE = ("fillfactor", "parallel_workers", "oids", "toast_tuple_target", "user_catalog_table")
_OTHER = {
    "INDEX": "a table with a primary key is read by key without an index",
    "SCHEMA": "there is one schema, public",
    "DATABASE": "there is one database",
    "USER": "`barnabas user add` makes one",
    "ROLE": "`barnabas user add` makes a user, and `barnabas acl` gives rights",
    "FUNCTION": "there are no functions of users",
    "TYPE": "use a struct",
    "TRIGGER": "read the topic with a consumer",
    "EXTENSION": "no statement loads an extension",
    "STREAM": "CREATE TABLE without a primary key declares a stream, and CREATE MATERIALIZED VIEW keeps a query",
    "SOURCE": "CREATE TABLE … WITH (topic = …) declares a table over a topic",
    "SINK": "the topic of a materialized view has its rows and changes",
}


class Options(NamedTuple):
    """The words after WITH.

    Args:
        configs: settings of a topic that is created, such as `retention.ms`.
    """

    topic: str | None = None
    key: tuple[str, ...] = ()
    format: str = "json"
    partitions: int = -1
    replicas: int = -1
    mode: str = "permissive"
    configs: Mapping[str, str] = {}


def create(session: Host, statement: Statement, tree: Any) -> Ready:
    """CREATE TABLE [IF NOT EXISTS] name (columns) [WITH (…)]."""
    definition, options, numbered = definition_of(tree)
    definition = private(session, tree, definition, options)
    check_defaults(session, definition, statement.text)

    def run(_: Sequence[Any]) -> Result:
        make_table(session, definition, options, numbered, if_not_exists=bool(tree.args.get("exists")))
        return Done("CREATE TABLE")

    return Ready(statement.text, run)


def tree_of(statement: Statement) -> Any:
    """The tree of CREATE TABLE. Raises SqlError for everything else that can be created."""
    kind = next((statement.word(at) for at in range(1, 5) if statement.word(at) in (*_OTHER, "TABLE")), "")
    if kind != "TABLE":
        words = "CREATE " + (kind or statement.word(1))
        raise not_supported(f"{words} is not supported", statement.position(1), _OTHER.get(kind, "use CREATE TABLE"))
    tree = parse(statement)
    if not isinstance(tree, exp.Create):
        raise not_supported("this form of CREATE TABLE is not supported", hint="CREATE TABLE name (column type, …) WITH (…)")
    _refuse(tree)
    return tree


def create_index(session: Host, statement: Statement) -> Ready:
    """CREATE INDEX: it is taken without effect, as its table needs none. A unique one would be a promise that nothing keeps."""
    tree = parse(statement)
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Index):
        raise not_supported("this form of CREATE INDEX is not supported", hint=_OTHER["INDEX"])
    if tree.args.get("unique"):
        raise not_supported("CREATE UNIQUE INDEX is not supported", statement.position(1), "declare a PRIMARY KEY")
    table = tree.this.args["table"]
    session.find([part.name for part in table.parts], position_in(table))
    return done(statement.text, "CREATE INDEX")


def private(session: Host, tree: Any, definition: TableDefinition, options: Options) -> TableDefinition:
    """The definition of a temporary table: under a name that only this session has. Others stay as they are."""
    if tree.find(exp.TemporaryProperty) is None:
        return definition
    name = session.temporary_name(definition.name)
    return msgspec.structs.replace(definition, name=name, topic=options.topic or name)


def _refuse(tree: Any) -> None:
    if tree.args.get("replace"):
        raise not_supported("CREATE OR REPLACE TABLE is not supported", hint="DROP the table first")
    for node in tree.find_all(exp.UnloggedProperty, exp.InheritsProperty, exp.PartitionedByProperty, exp.LikeProperty):
        raise not_supported(
            f"CREATE TABLE with {words_of(node)} is not supported", hint="CREATE TABLE name (column type, …) WITH (…)"
        )


def definition_of(tree: Any) -> tuple[TableDefinition, Options, Mapping[str, Numbering]]:
    """The table that a statement declares, and its columns with a sequence of their own. Raises SqlError."""
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        raise not_supported("a table needs columns", position_in(tree.this), "CREATE TABLE name (column type, …)")
    name = table_name(schema.this)
    columns, primary, numbered = columns_of(schema)
    options = options_of(tree.args.get("properties"))
    key = tuple(_column(columns, each) for each in options.key) or primary
    if primary and key != primary:
        raise SqlError(INVALID_TABLE, f"the option key names {quoted(key)}, and the primary key has {quoted(primary)}")
    definition = TableDefinition(
        name, options.topic or name, tuple(columns), key, bool(primary), options.format, mode=options.mode
    )
    check(definition)
    return definition, options, numbered


def table_name(table: Any) -> str:
    """The name of a table to make: folded to lower case unless it is quoted. Raises SqlError."""
    parts = [part.name for part in table.parts]
    if len(parts) > 1 and parts[-2].lower() != "public":
        raise SqlError(
            "3F000", f'schema "{parts[-2]}" does not exist', position=position_in(table), hint="there is one schema, public"
        )
    name = folded(table.this)
    if not name or len(name) > limits.MAX_SQL_NAME:
        raise SqlError("42602", f"the name of a table has 1 to {limits.MAX_SQL_NAME} characters")
    return name


def folded(identifier: Any) -> str:
    """A name as Postgres has it."""
    return str(identifier.name if identifier.args.get("quoted") else identifier.name.lower())


def columns_of(schema: Any) -> tuple[list[ColumnDefinition], tuple[str, ...], Mapping[str, Numbering]]:
    """The columns, the primary key, and the columns with a sequence of their own. Raises SqlError."""
    columns: list[ColumnDefinition] = []
    numbered: dict[str, Numbering] = {}
    primary: list[str] = []
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            column, is_primary, numbering = column_of(item)
            if any(each.name == column.name for each in columns):
                raise SqlError(DUPLICATE_COLUMN, f'column "{column.name}" specified more than once', position=position_in(item))
            columns.append(column)
            if numbering is not None:
                numbered[column.name] = numbering
            primary += [column.name] if is_primary else []
        else:
            names = _primary(item)
            if primary:
                raise SqlError(INVALID_TABLE, "a table has one primary key only")
            primary = [_column(columns, each) for each in names]
    if len(columns) > limits.MAX_SQL_COLUMNS:
        raise SqlError("54011", f"tables can have at most {limits.MAX_SQL_COLUMNS} columns")
    if not columns:
        raise not_supported("a table needs columns", hint="CREATE TABLE name (column type, …)")
    made = [msgspec.structs.replace(each, nullable=False) if each.name in primary else each for each in columns]
    return made, tuple(primary), numbered


def _primary(item: Any) -> list[str]:
    if isinstance(item, exp.Constraint):
        item = item.expressions[0] if item.expressions else item
    if isinstance(item, exp.PrimaryKey):
        return [each.name for each in item.expressions]
    hint = "there are PRIMARY KEY, NOT NULL, DEFAULT and GENERATED … AS IDENTITY"
    raise not_supported(f"the constraint {words_of(item)} is not supported", position_in(item), hint)


def _column(columns: Sequence[ColumnDefinition], name: str) -> str:
    found = next((each.name for each in columns if each.name.lower() == name.lower()), None)
    if found is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{name}" named in key does not exist')
    return found


def column_of(item: Any) -> tuple[ColumnDefinition, bool, Numbering | None]:
    """A column, whether it is the primary key, and its sequence. Raises SqlError."""
    name = folded(item.this)
    if name.lower() in RESERVED:
        raise SqlError(
            "42939", f'column name "{name}" is reserved', position=position_in(item), hint="every table has this column"
        )
    if item.kind is None:
        raise not_supported(f'the column "{name}" needs a type', position_in(item))
    field = declared_field(name, item.kind)
    numbering = Numbering(_SERIALS[item.kind.this]) if item.kind.this in _SERIALS else None
    nullable = numbering is None
    default, comment, is_primary = None, None, False
    for each in item.constraints:
        kind = each.kind
        match kind:
            case exp.PrimaryKeyColumnConstraint():
                is_primary, nullable = True, False
            case exp.NotNullColumnConstraint():
                nullable = bool(kind.args.get("allow_null"))
            case exp.DefaultColumnConstraint():
                default = default_text(kind.this)
            case exp.GeneratedAsIdentityColumnConstraint():
                numbering, nullable = _identity(name, field, kind, numbering), False
            case exp.AutoIncrementColumnConstraint():
                raise not_supported("AUTO_INCREMENT is not supported", position_in(item), "GENERATED BY DEFAULT AS IDENTITY")
            case exp.CommentColumnConstraint():
                comment = kind.this.name
            case exp.CollateColumnConstraint() if kind.this.name.lower() in COLLATIONS:
                pass
            case _:
                _primary(kind)
    if numbering is not None and default is not None:
        raise syntax_error(f'multiple default values specified for column "{name}"', position_in(item))
    return ColumnDefinition(name, type_name(field), nullable, default, comment), is_primary, numbering


def _identity(name: str, field: pa.Field[Any], kind: Any, before: Numbering | None) -> Numbering:
    if before is not None:
        raise syntax_error(f'multiple identity specifications for column "{name}"', position_in(kind))
    if field.type not in _WHOLE:
        raise SqlError(INVALID_PARAMETER, "identity column type must be smallint, integer, or bigint", position=position_in(kind))
    options = kind.meta.get(IDENTITY_OPTIONS)
    made = Numbering(
        _WHOLE[field.type], ALWAYS if kind.this else BY_DEFAULT, options_in(options) if options else SequenceOptions()
    )
    new_sequence(made.options.name or "unnamed", made.options, made.kind)
    return made


def default_text(value: Any) -> str | None:
    """The text of a default. Raises SqlError for one that needs a row."""
    if isinstance(value, exp.Null):
        return None
    for node in value.find_all(exp.Column, exp.Query, exp.Parameter):
        raise not_supported(
            f"a default cannot use {node.sql('postgres')}", position_in(value), "use a literal or a function such as now()"
        )
    return str(value.sql("postgres"))


def options_of(properties: Any) -> Options:
    """The words after WITH. Raises SqlError."""
    found: dict[str, str] = {}
    configs: dict[str, str] = {}
    for each in properties.expressions if properties is not None else ():
        if isinstance(each, exp.TemporaryProperty):
            continue
        if type(each) not in (exp.Property, exp.FileFormatProperty):
            raise not_supported(f"{each.sql('postgres')} is not supported", hint=f"WITH takes {', '.join(OPTIONS)}")
        if isinstance(each, exp.FileFormatProperty):
            found["format"] = each.this.name.lower()
            continue
        name = (each.this if isinstance(each.this, str) else each.this.name).lower()
        value = each.args["value"].name if not isinstance(each.args["value"], str) else each.args["value"]
        if name in OPTIONS:
            found[name] = value
        elif name in STORAGE or name.startswith(("autovacuum_", "toast.")):
            continue
        elif "." in name:
            configs[name] = value
        else:
            raise SqlError(
                INVALID_PARAMETER,
                f'unrecognized option "{name}"',
                hint=f"WITH takes {', '.join(OPTIONS)}, and settings of topics in quotes",
            )
    if found.get("format", "json") not in FORMATS:
        raise SqlError(INVALID_PARAMETER, f'the format "{found["format"]}" is not known', hint=f"it can be {', '.join(FORMATS)}")
    if found.get("mode", "permissive") not in MODES:
        raise SqlError(INVALID_PARAMETER, f'the mode "{found["mode"]}" is not known', hint=f"it can be {', '.join(MODES)}")
    key = tuple(part.strip() for part in found.get("key", "").split(",") if part.strip())
    return Options(
        found.get("topic"), key, found.get("format", "json"), _number(found, "partitions"), _number(found, "replicas"),
        found.get("mode", "permissive"), configs,
    )  # fmt: skip


def _number(found: Mapping[str, str], name: str) -> int:
    text = found.get(name, "-1")
    if text != "-1" and not (text.isdigit() and 0 < int(text) <= limits.MAX_PARTITIONS_PER_REQUEST):
        raise SqlError(INVALID_PARAMETER, f'the option {name} is "{text}"; it takes a number from 1 on')
    return int(text)


def check(definition: TableDefinition) -> None:
    """Raises SqlError if the parts of a definition do not fit together."""
    values = [each for each in definition.columns if each.name not in definition.key]
    if definition.format != "json" and (len(values) != 1 or values[0].kind not in ("text", "binary")):
        raise SqlError(INVALID_TABLE, f"the format {definition.format} needs exactly one column of text or bytes beside the key")
    declared(definition)


def check_defaults(session: Host, definition: TableDefinition, text: str) -> None:
    """Raises SqlError if a default has no value, or one of a type that its column cannot hold. No number of a sequence is taken."""
    relation = declared(definition)
    names = []
    for each in definition.columns:
        if each.default is None:
            continue
        calls = [node for node in default_of(relation, each.name).walk() if name_in(node) is not None]
        for call in calls:
            check_name(call.expressions[0], session.find)
        names += [] if calls else [each.name]
    items = [cast_to(default_of(relation, name), relation.columns.field(name)) for name in names]
    if items:
        collected(session, checked(session, exp.select(*items, copy=False), text), (), text)


def make_table(
    session: Host, definition: TableDefinition, options: Options, numbered: Mapping[str, Numbering] | None = None,
    *, if_not_exists: bool = False,
) -> bool:  # fmt: skip
    """Create the topic if there is none, and write the definition; False if the table was there. Raises SqlError.

    Args:
        numbered: the columns that get a sequence of their own.
    """
    session.check_writable()
    session.definitions.refresh(session.running, max_age_s=0)
    if definition.name in session.definitions.tables:
        if if_not_exists:
            return False
        raise exists(definition.name)
    view = session.definitions.view_of_topic(definition.topic)
    if view is not None:
        raise SqlError(DUPLICATE_TABLE, f'the topic "{definition.topic}" has the rows of the view {view.name}')
    session.sequences.refresh(session.running, max_age_s=0)
    if definition.name in session.sequences.sequences:
        raise exists(definition.name)
    owns = _make_topic(session, definition, options)
    made = msgspec.structs.replace(definition, owns_topic=True) if owns else definition
    try:
        made = with_sequences(session, made, numbered) if numbered else made
    except SqlError as error:
        if if_not_exists and error.sqlstate == DUPLICATE_TABLE:  # another session made the table meanwhile
            return False
        raise
    already = False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        already = made.name in tables and tables[made.name] != made
        if already and not if_not_exists:
            raise exists(made.name)
        return {} if already else {made.name: made}

    session.definitions.change(session.client, session.running, decide)
    return not already


def exists(name: str) -> SqlError:
    """The error of a name that is taken."""
    return SqlError(DUPLICATE_TABLE, f'relation "{name}" already exists', hint="CREATE TABLE IF NOT EXISTS, or DROP TABLE first")


def _make_topic(session: Host, definition: TableDefinition, options: Options) -> bool:
    """Whether the topic was created now."""
    if has_topic(session, definition.topic):
        return False
    configs = {"cleanup.policy": "compact"} if definition.is_keyed else {}
    try:
        session.client.create_topics(
            [NewTopic(definition.topic, options.partitions, options.replicas, {**configs, **options.configs})]
        )
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return False
        raise
    session.client.agreed_topics([definition.topic])
    return True


def has_topic(session: Host, topic: str) -> bool:
    """Whether a topic is there. Raises SqlError for a name that no topic can have."""
    try:
        return topic in session.client.topics_by_name([topic])
    except KafkaError as error:
        if error.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise SqlError(
                "42602", f'"{topic}" is no name of a topic', hint="letters, digits, dots, - and _; or WITH (topic = …)"
            ) from None
        raise
