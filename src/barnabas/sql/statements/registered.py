"""Tables whose values have a schema of the registry.

If the subject `TOPIC-value` has a schema, its newest version gives the columns; columns that a statement declares must be the same.
Otherwise the declared columns make a schema, which is registered once the topic is there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from barnabas.errors import BarnabasError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import RegistryError
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.host import Host
from barnabas.sql.states import INVALID_TABLE, not_supported
from barnabas.tables.column_types import mark_of, table_field, type_name
from barnabas.tables.errors import TableError
from barnabas.tables.registered_format import RegisteredFormat, newest
from barnabas.tables.schema_texts import SCHEMA_TYPES, schema_text, with_fields

logger = logging.getLogger(__name__)


def found_schema(session: Host, definition: TableDefinition) -> TableDefinition:
    """The definition with the columns and the id of the subject's schema; unchanged if there is none.

    Raises:
        SqlError: no registry, no columns, or others than those of the schema.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """
    address = _registry(session, definition)
    schema = _newest(address, definition.topic)
    if schema is not None:
        return _with_columns(definition, address, schema, is_ours=False)
    if not _values_of(definition):
        raise SqlError(
            INVALID_TABLE, f"the subject {subject_of(definition.topic)} has no schema, and the statement declares no columns",
            hint="CREATE TABLE name (column type, …) WITH (…) registers one",
        )  # fmt: skip
    _text_of(definition)
    return definition


def check_registrable(session: Host, definition: TableDefinition) -> None:
    """Raises SqlError if the columns of a view cannot have a schema, or there is no registry."""
    _registry(session, definition)
    if not _values_of(definition):
        raise SqlError(
            INVALID_TABLE,
            f"the format {definition.format} needs a column beside the key",
            hint="leave the format out: rows are JSON then",
        )
    _text_of(definition)


def made_schema(session: Host, definition: TableDefinition) -> TableDefinition:
    """The definition with a schema of its columns, which is registered now. Raises SqlError, RegistryError, RegistryUnreachable."""
    address = _registry(session, definition)
    with address.client() as client:
        schema = registered(client, definition.topic, definition.format, _text_of(definition))
    return msgspec.structs.replace(_with_columns(definition, address, schema, is_ours=True), owns_schema=True)


def with_evolved_schema(
    session: Host, change: Callable[[TableDefinition], TableDefinition], definition: TableDefinition
) -> TableDefinition:
    """A changed definition with more columns, and a schema that has them: the one of the table with fields that may be null.

    Raises:
        SqlError: the format cannot be changed so, or the registry refuses the schema.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """
    made = change(definition)
    address = _registry(session, definition)
    known = {each.name for each in definition.columns}
    added = [each.field.with_nullable(True) for each in made.columns if each.name not in known]
    if definition.format == "protobuf":
        raise not_supported(
            "a column of a Protobuf message cannot be added", hint="register another version, and create the table again"
        )
    with address.client() as client:
        text = RegisteredSchemas(client).get(definition.schema_id).text
        try:
            schema = registered(client, definition.topic, definition.format, with_fields(definition.format, text, added))
        except TableError as error:
            raise SqlError(INVALID_TABLE, str(error)) from None
    return _with_columns(made, address, schema, is_ours=True)


def registered(client: Any, topic: str, format_name: str, text: str) -> RegisteredSchema:
    """Register the schema of a topic's values. Raises SqlError if the registry refuses it, RegistryUnreachable."""
    try:
        return RegisteredSchemas(client).register(subject_of(topic), text, SCHEMA_TYPES[format_name])
    except RegistryError as error:
        raise SqlError(INVALID_TABLE, f"the registry refuses the schema of {subject_of(topic)}: {error.message}") from error


def forget_schema(session: Host, definition: TableDefinition) -> None:
    """Delete the subject of a table that is gone, so that its versions remain readable by their ids. Failures are logged."""
    address = session.access.registry
    if not definition.owns_schema or not definition.owns_topic or address is None:
        return
    try:
        with address.client() as client:
            client.delete("subjects", subject_of(definition.topic))
    except BarnabasError as error:
        logger.warning("event=subject-not-deleted subject=%s error=%r", subject_of(definition.topic), str(error))


def subject_of(topic: str) -> str:
    """The subject of a topic's values."""
    return f"{topic}-value"


def _registry(session: Host, definition: TableDefinition) -> RegistryAddress:
    address = session.access.registry
    if address is None:
        raise SqlError(
            "55000", f"the format {definition.format} needs a schema registry, and this server knows none",
            hint="start it with -X schema.registry.url=http://HOST:PORT",
        )  # fmt: skip
    return address


def _newest(address: RegistryAddress, topic: str) -> RegisteredSchema | None:
    try:
        return newest(address, topic)
    except SchemaDataError:
        return None


def _values_of(definition: TableDefinition) -> list[ColumnDefinition]:
    return [each for each in definition.columns if each.name not in definition.key]


def _text_of(definition: TableDefinition) -> str:
    try:
        return schema_text(definition.format, definition.topic, [each.field for each in _values_of(definition)])
    except TableError as error:
        raise SqlError(INVALID_TABLE, str(error)) from None


def _with_columns(
    definition: TableDefinition, address: RegistryAddress, schema: RegisteredSchema, *, is_ours: bool
) -> TableDefinition:
    """The definition with the columns of a schema.

    Args:
        is_ours: whether the schema was made of the definition, so that its types may be wider.
    """
    wanted = SCHEMA_TYPES[definition.format]
    if schema.schema_type != wanted:
        raise SqlError(
            INVALID_TABLE,
            f"the format is {definition.format}, and the newest schema of {subject_of(definition.topic)} is {schema.schema_type}",
        )
    try:
        fields = RegisteredFormat(address, schema).fields
        never = _never_null(schema)
        columns = [ColumnDefinition(each.name, type_name(table_field(each)), nullable=each.name not in never) for each in fields]
    except (SchemaDataError, TableError) as error:
        raise SqlError(INVALID_TABLE, f"the schema of {subject_of(definition.topic)} gives no columns: {error}") from None
    keys = [each for each in definition.columns if each.name in definition.key]
    twice = [each.name for each in columns if each.name in definition.key]
    if twice:
        raise SqlError(
            INVALID_TABLE, f'the column "{twice[0]}" of the key is a column of the values, too',
            hint="give the column of the key another name",
        )  # fmt: skip
    assert schema.id is not None
    if not _values_of(definition):
        return msgspec.structs.replace(definition, columns=(*keys, *columns), schema_id=schema.id)
    made = _checked(definition, columns, is_ours=is_ours)
    return msgspec.structs.replace(definition, columns=made, schema_id=schema.id)


def _checked(definition: TableDefinition, columns: Sequence[ColumnDefinition], *, is_ours: bool) -> tuple[ColumnDefinition, ...]:
    """The declared columns, with the types of the schema. Raises SqlError if they are others."""
    subject = subject_of(definition.topic)
    known = {each.name: each for each in columns}
    made = []
    for each in definition.columns:
        if each.name in definition.key:
            made.append(each)
            continue
        found = known.pop(each.name, None)
        if found is None:
            raise SqlError(INVALID_TABLE, f'the schema of {subject} has no column "{each.name}"', hint=_listed(columns))
        is_same = mark_of(found.field) == mark_of(each.field) and found.field.type == each.field.type
        if not is_same and not is_ours:
            raise SqlError(
                INVALID_TABLE, f'the column "{each.name}" is {each.kind}, and the schema of {subject} has {found.kind}'
            )
        nullable = each.nullable and found.nullable
        made.append(msgspec.structs.replace(each, kind=each.kind if is_same else found.kind, nullable=nullable))
    if known:
        raise SqlError(
            INVALID_TABLE, f"the schema of {subject} also has {', '.join(known)}",
            hint="declare all columns, or none: then they are those of the schema",
        )  # fmt: skip
    return tuple(made)


def _listed(columns: Sequence[ColumnDefinition]) -> str:
    return f"it has {', '.join(each.name for each in columns)}"


def _never_null(schema: RegisteredSchema) -> set[str]:
    """The columns that the schema requires."""
    if schema.schema_type == "PROTOBUF":
        return set()
    found = json.loads(schema.text)
    if not isinstance(found, dict):
        return set()
    if schema.schema_type == "JSON":
        return {name for name in found.get("required", ()) if not _may_be_null(found.get("properties", {}).get(name))}
    return {each["name"] for each in found.get("fields", ()) if not (isinstance(each["type"], list) and "null" in each["type"])}


def _may_be_null(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return not isinstance(kind, str) or kind == "null"
