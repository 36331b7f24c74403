"""CREATE TABLE: over a topic that exists, over a topic of its own, or from a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.client.results import LATEST, NewTopic
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.sql.catalog.definitions import FORMATS, PUBLIC, REGISTERED, TableDefinition, quoted
from barnabas.sql.catalog.topics import declared
from barnabas.sql.dialect import Statement, parse, words_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.sequences import check_name, name_in
from barnabas.sql.results import Done
from barnabas.sql.statements.columns import columns_of, folded, key_column, key_name_of
from barnabas.sql.statements.constraints import check_conditions, take_constraints, with_constraints
from barnabas.sql.statements.enforcement import checks_plan
from barnabas.sql.statements.foreign_keys import NOT_ENFORCED, take_references, with_references
from barnabas.sql.statements.foreign_options import notice_of, read_options, taken_encoding
from barnabas.sql.statements.generated import check_generated_columns, with_generated_words
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.numbered import Numbering, with_sequences
from barnabas.sql.statements.own_topics import own_topic
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.registered import found_schema, made_schema
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.table_clauses import NOTHING, OVERWRITE, say, taken_clauses
from barnabas.sql.statements.target import cast_to, default_of
from barnabas.sql.statements.watermarks import take_watermark, watermark_of
from barnabas.sql.states import (
    DUPLICATE_TABLE,
    INVALID_PARAMETER,
    INVALID_TABLE,
    not_supported,
)
from barnabas.tables.column_types import mark_of
from barnabas.tables.scan import MODES

OPTIONS = ("topic", "key", "format", "partitions", "replicas", "mode", "append_only", "on_conflict")
LOG_CONFIGS = ("cleanup.policy", "retention.ms", "retention.bytes")  # a topic with one of them is append-only
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}  # of a topic whose rows have names
KSQLDB = {"kafka_topic": "topic", "value_format": "format"}  # its names of options
APPEND_ONLY = ("append_only", "appendonly", "append.only")
# Of Postgres' pages; topics have none.
STORAGE = ("fillfactor", "parallel_workers", "oids", "toast_tuple_target", "user_catalog_table")
_OTHER = {
    "INDEX": "a table with a primary key is read by key without an index",
    "DATABASE": "there is one database; CREATE SCHEMA makes a schema",
    "USER": "`barnabas user add` makes one",
    "ROLE": "`barnabas user add` makes a user, and `barnabas acl` gives rights",
    "AGGREGATE": "CREATE FUNCTION makes a function of single rows",
    "PROCEDURE": "CREATE FUNCTION makes a function",
    "TYPE": "use a struct",
    "TRIGGER": "read the topic with a consumer",
    "SOURCE": "CREATE TABLE … WITH (topic = …) declares a table over a topic",
    "CONNECTION": "tables are topics of this cluster",
    "CLUSTER": "leave it out: jobs run on the engine",
    "CATALOG": "CREATE SCHEMA makes a schema",
    "SINK": "the topic of a materialized view has its rows and changes",
}


class Options(NamedTuple):
    """The words after WITH.

    Args:
        configs: settings of a topic that is created, such as `retention.ms`.
        append_only: whether rows are only added; None if the statement does not say it.
        on_conflict: what becomes of a new row whose key is there, `overwrite` or `nothing`; empty: it is refused.
        ignored: options of other databases that have no effect.
    """

    topic: str | None = None
    key: tuple[str, ...] = ()
    format: str = "json"
    partitions: int = -1
    replicas: int = -1
    mode: str = "permissive"
    configs: Mapping[str, str] = {}
    append_only: bool | None = None
    on_conflict: str = ""
    ignored: tuple[str, ...] = ()

    def topic_of(self, name: str) -> str:
        """The topic of a table or a view with this name."""
        return self.topic or own_topic(name)

    @property
    def can_change(self) -> bool:
        """Whether the rows of a table without a key can be changed, as far as the statement says.

        `WITH (key = …)` needs the keys of records for columns, and a topic with a retention is a log.
        """
        if self.append_only is not None:
            return not self.append_only
        return not self.key and not any(name in LOG_CONFIGS for name in self.configs)


def create(session: Host, statement: Statement, tree: Any) -> Ready:
    """CREATE TABLE [IF NOT EXISTS] name (columns) [WITH (…)]."""
    references = take_references(tree.this) if isinstance(tree.this, exp.Schema) else []
    definition, options, numbered = definition_of(session, tree)
    if definition.is_registered:
        definition = found_schema(session, definition)
    definition = private(session, tree, definition, options)
    if not (tree.args.get("exists") and definition.name in session.definitions.tables):
        definition = with_references(session, definition, references)
    check_defaults(session, definition, statement.text)
    check_generated_columns(session, definition, definition.schema, statement.text)
    if definition.checks:
        check_conditions(checks_plan(session, session.access.relation_of(definition), definition.checks, statement.text).schema)

    def run(_: Sequence[Any]) -> Result:
        make_table(session, definition, options, numbered, if_not_exists=bool(tree.args.get("exists")))
        if references:
            session.notify(NOT_ENFORCED)
        if options.ignored:
            session.notify(notice_of(options.ignored))
        return Done("CREATE TABLE")

    return Ready(statement.text, run)


def tree_of(statement: Statement) -> Any:
    """The tree of CREATE TABLE. Raises SqlError for everything else that can be created."""
    kind = next((statement.word(at) for at in range(1, 5) if statement.word(at) in (*_OTHER, "TABLE")), "")
    if kind != "TABLE":
        words = "CREATE " + (kind or statement.word(1))
        raise not_supported(f"{words} is not supported", statement.position(1), _OTHER.get(kind, "use CREATE TABLE"))
    statement, options = taken_clauses(with_generated_words(statement))
    statement, encoding = taken_encoding(statement)
    options |= encoding
    tree = parse(statement)
    if not isinstance(tree, exp.Create):
        raise not_supported("this form of CREATE TABLE is not supported", hint="CREATE TABLE name (column type, …) WITH (…)")
    _refuse(tree)
    say(tree, options)
    return tree


def private(session: Host, tree: Any, definition: TableDefinition, options: Options) -> TableDefinition:
    """The definition of a temporary table: under a name that only this session has. Others stay as they are."""
    if tree.find(exp.TemporaryProperty) is None:
        return definition
    if definition.is_registered:
        raise not_supported("a temporary table has no registered schema", hint="leave the format out")
    name = session.temporary_name(definition.name)
    return msgspec.structs.replace(definition, name=name, topic=options.topic_of(name))


def _refuse(tree: Any) -> None:
    if tree.args.get("replace"):
        raise not_supported("CREATE OR REPLACE TABLE is not supported", hint="DROP the table first")
    for node in tree.find_all(exp.UnloggedProperty, exp.InheritsProperty, exp.PartitionedByProperty):
        raise not_supported(
            f"CREATE TABLE with {words_of(node)} is not supported", hint="CREATE TABLE name (column type, …) WITH (…)"
        )


def definition_of(session: Host, tree: Any) -> tuple[TableDefinition, Options, Mapping[str, Numbering]]:
    """The table that a statement declares, and its columns with a sequence of their own. Raises SqlError."""
    schema = tree.this
    options = options_of(tree.args.get("properties"))
    table = schema.this if isinstance(schema, exp.Schema) else schema
    name = table_name(session, table) if tree.find(exp.TemporaryProperty) is None else folded(table.this)
    if not isinstance(schema, exp.Schema):
        if options.format not in REGISTERED or options.key:
            raise not_supported("a table needs columns", position_in(tree.this), "CREATE TABLE name (column type, …)")
        return TableDefinition(name, options.topic_of(name), (), format=options.format, mode=options.mode), options, {}
    mark = take_watermark(schema)
    constraints = take_constraints(schema)
    key_name = key_name_of(schema)
    columns, primary, numbered = columns_of(schema, session.zone)
    key = tuple(key_column(columns, each) for each in options.key) or primary
    if primary and key != primary:
        raise SqlError(INVALID_TABLE, f"the option key names {quoted(key)}, and the primary key has {quoted(primary)}")
    if primary and options.append_only:
        raise SqlError(INVALID_TABLE, "a table with a primary key is not append-only", hint="leave out one of them")
    if options.on_conflict and not primary:
        raise SqlError(INVALID_TABLE, "ON CONFLICT of a table needs a primary key")
    watermark = None if mark is None else watermark_of(mark, columns, can_change=bool(primary) or options.append_only is False)
    has_names = not primary and watermark is None and names_rows(options)
    definition = TableDefinition(
        name, options.topic_of(name), tuple(columns), key, bool(primary) or has_names, options.format, mode=options.mode,
        watermark=watermark, has_row_names=has_names, on_conflict=options.on_conflict,
        key_name=key_name,
    )  # fmt: skip
    check(definition)
    return with_constraints(definition, constraints), options, numbered


def names_rows(options: Options) -> bool:
    """Whether the rows of a table without a primary key get names, so that they can be changed. Raises SqlError if they cannot."""
    if options.append_only is False and options.key:
        hint = "PRIMARY KEY makes a table with one row for each key, APPEND ONLY one whose rows never change"
        raise SqlError(INVALID_TABLE, "rows of a table with the option key cannot be changed", hint=hint)
    if options.append_only is False and "compact" in options.configs.get("cleanup.policy", ""):
        raise _compacted(options.topic)
    return options.can_change


def _compacted(topic: str | None) -> SqlError:
    what = f'the topic "{topic}" is' if topic else "the topic would be"
    hint = "PRIMARY KEY names the columns of the key, and APPEND ONLY makes a table whose rows never change"
    return SqlError(INVALID_TABLE, f"{what} compacted: rows without a primary key could not be kept apart", hint=hint)


def table_name(session: Host, table: Any) -> str:
    """The name of a table to make: folded to lower case unless it is quoted, and behind the name of its schema. Raises SqlError."""
    return name_to_make(session, [folded(part) for part in table.parts], position_in(table))


def name_to_make(session: Host, parts: Sequence[str], position: int | None) -> str:
    """The name of a table or a sequence to make, behind the name of its schema. Raises SqlError."""
    session.definitions.refresh(session.running)
    schema = parts[-2] if len(parts) > 1 else next(iter(session.access.path()), None)
    if schema is None:
        hint = "SET search_path = public, or write the schema before the name"
        raise SqlError("3F000", "no schema has been selected to create in", position=position, hint=hint)
    if schema != PUBLIC and schema not in session.definitions.schemas:
        session.definitions.refresh(session.running, max_age_s=0)
    if schema != PUBLIC and schema not in session.definitions.schemas:
        raise SqlError("3F000", f'schema "{schema}" does not exist', position=position, hint="CREATE SCHEMA makes it")
    name = parts[-1] if schema == PUBLIC else f"{schema}.{parts[-1]}"
    if not parts[-1] or len(name) > limits.MAX_SQL_NAME:
        raise SqlError("42602", f"the name of a table has 1 to {limits.MAX_SQL_NAME} characters")
    return name


def options_of(properties: Any) -> Options:
    """The words after WITH. Raises SqlError."""
    found: dict[str, str] = {}
    configs: dict[str, str] = {}
    given, ignored = read_options(_given(properties))
    for name, value in given:
        if name in APPEND_ONLY:
            found["append_only"] = value
        elif name in OPTIONS:
            found[name] = _format(value) if name == "format" else value
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
        found.get("mode", "permissive"), configs, _switch(found, "append_only"), _conflict(found),
        ignored,
    )  # fmt: skip


def _given(properties: Any) -> list[tuple[str, str]]:
    """The options as they are written, with names in lower case. Raises SqlError."""
    found = []
    for each in properties.expressions if properties is not None else ():
        if isinstance(each, exp.TemporaryProperty):
            continue
        if type(each) not in (exp.Property, exp.FileFormatProperty):
            raise not_supported(f"{words_of(each)} of a table is not supported", hint=f"WITH takes {', '.join(OPTIONS)}")
        if isinstance(each, exp.FileFormatProperty):
            found.append(("format", each.this.name))
            continue
        option = each.this
        name = option if isinstance(option, str) else option.sql() if isinstance(option, exp.Dot) else option.name
        name = name.lower()
        value = each.args["value"]
        value = value if isinstance(value, str) else str(value.this) if isinstance(value, exp.Boolean) else value.name
        found.append((KSQLDB.get(name, name), value))
    return found


def _format(word: str) -> str:
    plain = word.lower().replace("-", "_")
    return _SPELLINGS.get(plain, plain)


_SPELLINGS = {"jsonschema": "json_schema", "json_sr": "json_schema", "proto": "protobuf"}


def _switch(found: Mapping[str, str], name: str) -> bool | None:
    text = found.get(name)
    if text is None:
        return None
    if text.lower() not in ("true", "false", "on", "off"):
        raise SqlError(INVALID_PARAMETER, f'the option {name} is "{text}"; it can be true or false')
    return text.lower() in ("true", "on")


def _conflict(found: Mapping[str, str]) -> str:
    text = found.get("on_conflict", "").lower()
    if text not in ("", OVERWRITE, NOTHING):
        raise SqlError(INVALID_PARAMETER, f'the option on_conflict is "{text}"; it can be {OVERWRITE} or {NOTHING}')
    return text


def _number(found: Mapping[str, str], name: str) -> int:
    text = found.get(name, "-1")
    if text != "-1" and not (text.isdigit() and 0 < int(text) <= limits.MAX_PARTITIONS_PER_REQUEST):
        raise SqlError(INVALID_PARAMETER, f'the option {name} is "{text}"; it takes a number from 1 on')
    return int(text)


def check(definition: TableDefinition) -> None:
    """Raises SqlError if the parts of a definition do not fit together."""
    values = [each for each in definition.columns if each.name not in definition.key]
    if definition.is_registered:
        return
    if definition.format != "json" and (
        len(values) != 1 or values[0].field.type not in (pa.string(), pa.binary()) or mark_of(values[0].field)
    ):
        raise SqlError(INVALID_TABLE, f"the format {definition.format} needs exactly one column of text or bytes beside the key")
    declared(definition)


def check_defaults(session: Host, definition: TableDefinition, text: str) -> None:
    """Raises SqlError if a default has no value, or one of a type that its column cannot hold. No number of a sequence is taken."""
    relation = session.access.relation_of(definition)
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
) -> TableDefinition | None:  # fmt: skip
    """Create the topic if there is none, and write the definition; None if the table was there. Raises SqlError.

    Args:
        numbered: the columns that get a sequence of their own.
    """
    session.check_writable()
    session.definitions.refresh(session.running, max_age_s=0)
    if definition.name in session.definitions.tables:
        if if_not_exists:
            return None
        raise exists(definition.name)
    session.definitions.with_types_of_now({definition.name: definition})  # before there is a topic
    if options.topic is None:
        definition = _with_free_topic(session, definition)
    view = session.definitions.view_of_topic(definition.topic)
    if view is not None:
        raise SqlError(DUPLICATE_TABLE, f'the topic "{definition.topic}" has the rows of the view {view.name}')
    session.sequences.refresh(session.running, max_age_s=0)
    if definition.name in session.sequences.sequences:
        raise exists(definition.name)
    owns = _make_topic(session, definition, options)
    made = msgspec.structs.replace(definition, owns_topic=True) if owns else _over(session, definition, options)
    if made.is_registered and not made.schema_id:
        made = made_schema(session, made)
    try:
        made = with_sequences(session, made, numbered) if numbered else made
    except SqlError as error:
        if if_not_exists and error.sqlstate == DUPLICATE_TABLE:  # another session made the table meanwhile
            return None
        raise
    already = False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        already = made.name in tables and tables[made.name] != made
        if already and not if_not_exists:
            raise exists(made.name)
        return {} if already else {made.name: made}

    session.definitions.change(session.client, session.running, decide)
    return None if already else made


def _with_free_topic(session: Host, definition: TableDefinition) -> TableDefinition:
    """The definition with another topic if a table that was renamed has the one of this name."""
    own = own_topic(definition.name)
    for number in range(1, limits.MAX_PARTITIONS_PER_REQUEST):
        topic = own if number == 1 else f"{own}_{number}"
        owner = session.definitions.owner_of_topic(topic)
        if owner is None or (owner.view is not None and owner.name == definition.name):
            return msgspec.structs.replace(definition, topic=topic)
    return definition


def _over(session: Host, definition: TableDefinition, options: Options) -> TableDefinition:
    """The definition of a table over a topic that is there: append-only, unless the statement says that its rows can be changed.

    An empty topic that keeps everything may be of another session that makes the same table at this moment. Raises SqlError.
    """
    if not definition.has_row_names:
        return definition
    configs = session.client.describe_topic_config(definition.topic)
    if options.append_only is False:
        if "compact" in (configs.get("cleanup.policy") or ""):
            raise _compacted(definition.topic)
        return definition
    topic = session.client.topics_by_name([definition.topic])[definition.topic]
    ends = session.client.list_offsets({(definition.topic, partition): LATEST for partition in topic.partitions})
    if all(each.offset == 0 for each in ends.values()) and all(configs.get(name) == value for name, value in KEPT.items()):
        return definition
    return msgspec.structs.replace(definition, is_keyed=False, has_row_names=False)


def exists(name: str) -> SqlError:
    """The error of a name that is taken."""
    return SqlError(DUPLICATE_TABLE, f'relation "{name}" already exists', hint="CREATE TABLE IF NOT EXISTS, or DROP TABLE first")


def _make_topic(session: Host, definition: TableDefinition, options: Options) -> bool:
    """Whether the topic was created now."""
    if has_topic(session, definition.topic):
        return False
    configs = KEPT if definition.has_row_names else {"cleanup.policy": "compact"} if definition.is_keyed else {}
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
