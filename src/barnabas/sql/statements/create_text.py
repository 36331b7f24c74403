"""SHOW CREATE: the statement that makes a table, a view or a stream again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.client.errors import PartitionError, ResourceError
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.sql.catalog.access import TEMPORARY
from barnabas.sql.catalog.definitions import ALWAYS, PUBLIC, ColumnDefinition, TableDefinition, parts_of_name
from barnabas.sql.catalog.names import shown_name
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequences import Sequence, default_text
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.duck.types import shown_type
from barnabas.sql.statements.create import KEPT, LOG_CONFIGS
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.own_topics import own_topic
from barnabas.sql.statements.sequence_options import SequenceOptions, new_sequence
from barnabas.sql.statements.table_clauses import NOTHING, OVERWRITE
from barnabas.sql.views.dependents import kind_of
from barnabas.tables.column_types import type_name

_SERIALS = {"smallint": "smallserial", "int": "serial", "bigint": "bigserial"}
_UNKNOWN = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class Facts(NamedTuple):
    """The facts beside the definition.

    Args:
        schemas: that there are.
        sequences: of identity columns, by column.
        topic: the options that its topic has and others have not.
    """

    schemas: Collection[str] = ()
    sequences: Mapping[str, Sequence] = {}
    topic: Mapping[str, str] = {}


def create_text(session: Host, relation: Relation) -> str:
    """The statement that makes a table. Raises KafkaError, ClientError."""
    definition: TableDefinition | None = relation.definition if isinstance(relation, TopicRelation) else None
    if definition is None:
        columns = ", ".join(f"{shown_name(each.name)} {type_name(each)}" for each in relation.columns)
        return f"-- no definition; as it is read:\nCREATE TABLE {shown_name(relation.name)} ({columns})"
    facts = _facts(session, definition)
    if definition.view is not None:
        return _view_text(definition, facts)
    if definition.stream is not None and definition.stream.query:
        columns = ", ".join(shown_name(each.name) for each in definition.columns)
        options = _with({**_options(definition), **facts.topic})
        return f"CREATE STREAM {_name(definition, facts)} ({columns}){options} AS\n{definition.stream.query}"
    return _table_text(definition, facts)


def _facts(session: Host, definition: TableDefinition) -> Facts:
    session.sequences.refresh(session.running)
    sequences = {}
    for each in definition.columns:
        found = session.sequences.current(_sequence_name(each)) if each.identity else None
        if found is not None:
            sequences[each.name] = found
    return Facts(session.definitions.schemas, sequences, _topic_options(session, definition) if definition.owns_topic else {})


def _sequence_name(column: ColumnDefinition) -> str:
    """Of an identity column, whose default has it."""
    return (column.default or "").removeprefix("nextval('").removesuffix("'::regclass)").strip('"')


def _topic_options(session: Host, definition: TableDefinition) -> dict[str, str]:
    """Partitions, replicas and settings that a topic of the brokers' defaults has not; none that the caller may not see."""
    try:
        topic = session.client.topics_by_name([definition.topic]).get(definition.topic)
        settings = session.client.describe_topic_config(definition.topic, only_own=True)
    except (ResourceError, PartitionError, KafkaError) as error:
        if error.code not in _UNKNOWN:
            raise
        return {}
    found: dict[str, str] = {}
    if topic is not None and len(topic.partitions) > 1:
        found["partitions"] = str(len(topic.partitions))
    replicas = max((len(each.replicas) for each in topic.partitions.values()), default=1) if topic is not None else 1
    if replicas > 1:
        found["replicas"] = str(replicas)
    own = KEPT if definition.has_row_names else {"cleanup.policy": "compact"} if definition.is_keyed else {}
    return found | {name: value or "" for name, value in sorted(settings.items()) if own.get(name) != value}


def _name(definition: TableDefinition, facts: Facts) -> str:
    if definition.name.startswith(TEMPORARY):
        return shown_name(definition.plain_name)
    return _shown(definition.name, facts)


def _shown(table: str, facts: Facts) -> str:
    schema, name = parts_of_name(table, facts.schemas)
    return shown_name(name) if schema == PUBLIC else f"{shown_name(schema)}.{shown_name(name)}"


def _table_text(definition: TableDefinition, facts: Facts) -> str:
    lines = [_column_text(definition, each, facts) for each in definition.columns]
    if definition.key and definition.is_keyed:
        named = f"CONSTRAINT {shown_name(definition.key_name)} " if definition.key_name else ""
        lines.append(f"{named}PRIMARY KEY ({', '.join(map(shown_name, definition.key))})")
    constraints = [
        *((each.name, each.declared) for each in definition.unique),
        *((each.name, each.text) for each in definition.checks),
        *((each.name, each.text(_shown(each.table, facts))) for each in definition.foreign_keys),
    ]
    lines += [f"CONSTRAINT {shown_name(name)} {text}" for name, text in constraints]
    if definition.watermark is not None:
        lines.append(definition.watermark.text)
    options = {**_options(definition), **facts.topic}
    if definition.has_row_names and (not definition.owns_topic or not options.keys().isdisjoint(LOG_CONFIGS)):
        options["append_only"] = "false"
    is_stream = definition.stream is not None
    kind = "TEMPORARY TABLE" if definition.name.startswith(TEMPORARY) else "STREAM" if is_stream else "TABLE"
    end = "" if definition.is_keyed or is_stream else " APPEND ONLY"
    end += {OVERWRITE: " ON CONFLICT OVERWRITE", NOTHING: " ON CONFLICT DO NOTHING"}.get(definition.on_conflict, "")
    body = ",\n".join(f"  {each}" for each in lines)
    return f"{_notes(definition)}CREATE {kind} {_name(definition, facts)} (\n{body}\n){end}{_with(options)}"


def _notes(definition: TableDefinition) -> str:
    """Comments on what a statement cannot say: the fields of records that have other names than their columns."""
    named = [f"{each} is the field {stored}" for each, stored in definition.stored_names.items()]
    found = f"-- of the records that are there, {', '.join(named)}\n" if named else ""
    lacking = [f"{each.name} {each.missing}" for each in definition.columns if each.missing is not None]
    return found + (f"-- records without the field have {', '.join(lacking)}\n" if lacking else "")


def _options(definition: TableDefinition) -> dict[str, str]:
    """The options that differ from those of a table without any."""
    found = {}
    if definition.topic != own_topic(definition.name) and not definition.name.startswith(TEMPORARY):
        found["topic"] = definition.topic
    if definition.format != "json":
        found["format"] = definition.format
    if definition.key and not definition.is_keyed:
        found["key"] = ", ".join(definition.key)
    if definition.mode != "permissive":
        found["mode"] = definition.mode
    return found


def _with(options: Mapping[str, str]) -> str:
    shown = [f"{_option(name)} = {_quoted(value)}" for name, value in options.items()]
    return f" WITH ({', '.join(shown)})" if shown else ""


def _option(name: str) -> str:
    return f'"{name}"' if "." in name else name


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _column_text(definition: TableDefinition, each: ColumnDefinition, facts: Facts) -> str:
    """A column as CREATE TABLE has it; one with a sequence of its own gets another there."""
    start = f"{shown_name(each.name)} {each.kind if each.labels is None else shown_type(each.field)}"
    rest = "" if each.nullable else " NOT NULL"
    if each.identity:
        kind = "ALWAYS" if each.identity == ALWAYS else "BY DEFAULT"
        rest += f" GENERATED {kind} AS IDENTITY{_sequence_options(definition, each, facts)}"
    elif each.default == default_text(f"{definition.name}_{each.name}_seq") and not each.nullable and each.kind in _SERIALS:
        start, rest = f"{shown_name(each.name)} {_SERIALS[each.kind]}", ""
    elif each.generated is not None:
        rest += f" GENERATED ALWAYS AS ({each.generated}) STORED"
    elif each.default is not None:
        rest += f" DEFAULT {each.default}"
    return start + rest + (f" COMMENT {_quoted(each.comment)}" if each.comment else "")


def _sequence_options(definition: TableDefinition, column: ColumnDefinition, facts: Facts) -> str:
    """The options of an identity column that differ from those of one without any."""
    found = facts.sequences.get(column.name)
    if found is None:
        return ""
    plain = new_sequence(found.name, SequenceOptions(increment=found.increment), found.kind)
    words = [f"SEQUENCE NAME {shown_name(found.name)}"] if found.name != f"{definition.name}_{column.name}_seq" else []
    words += [f"INCREMENT BY {found.increment}"] if found.increment != 1 else []
    words += [f"MINVALUE {found.minimum}"] if found.minimum != plain.minimum else []
    words += [f"MAXVALUE {found.maximum}"] if found.maximum != plain.maximum else []
    first = found.minimum if found.increment > 0 else found.maximum
    words += [f"START WITH {found.start}"] if found.start != first else []
    words += [f"CACHE {found.cache}"] if found.cache != 1 else []
    words += ["CYCLE"] if found.cycle else []
    return f" ({' '.join(words)})" if words else ""


def _view_text(definition: TableDefinition, facts: Facts) -> str:
    view = definition.view
    assert view is not None
    shown = ", ".join(shown_name(each.name) for each in definition.columns if each.name not in view.hidden)
    options = _with({**_options(definition), **facts.topic}) if view.is_materialized else ""
    return f"CREATE {kind_of(definition).upper()} {_name(definition, facts)} ({shown}){options} AS\n{view.query}"
