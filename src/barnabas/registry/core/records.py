"""Records of the topic `_schemas` in Confluent's format: keys and values as JSON, with the keys' fields in Confluent's order.

The order matters: compaction compares the bytes of keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from barnabas.registry.core.entities import Draft, Json, Version, parts
from barnabas.registry.formats.interface import Reference

EMPTY = frozenset({b"", b'""', b"null"})  # values that other registries write as a deletion, besides a null value


class Record(NamedTuple):
    """One record; a value of None deletes the entry of the key."""

    key: Json
    value: Json | None


class SchemaKey(msgspec.Struct, frozen=True):
    """The fields of all keys."""

    keytype: str = ""
    subject: str | None = None
    version: int = 0
    magic: int = 0
    tenant: str | None = None
    context: str | None = None
    resource_name: str | None = msgspec.field(default=None, name="resourceName")
    resource_namespace: str | None = msgspec.field(default=None, name="resourceNamespace")
    resource_type: str | None = msgspec.field(default=None, name="resourceType")
    association_type: str | None = msgspec.field(default=None, name="associationType")


class ReferenceValue(msgspec.Struct, frozen=True):
    """A reference in a value."""

    name: str
    subject: str
    version: int


class SchemaValue(msgspec.Struct, frozen=True):
    """The fields of a value under a SCHEMA key."""

    subject: str
    version: int
    id: int
    schema: str
    md5: str | None = None
    schema_type: str | None = msgspec.field(default=None, name="schemaType")
    references: list[ReferenceValue] | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = msgspec.field(default=None, name="ruleSet")
    deleted: bool = False
    ts: int | None = None


read_key = msgspec.json.Decoder(SchemaKey).decode
read_schema = msgspec.json.Decoder(SchemaValue).decode
read_value = msgspec.json.Decoder(dict[str, Any]).decode
_write = msgspec.json.Encoder().encode


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """The bytes of key and value."""
    return _write(record.key), None if record.value is None else _write(record.value)


def version_of(value: SchemaValue, timestamp_ms: int) -> Version:
    """The version in a value."""
    references = tuple([Reference(each.name, each.subject, each.version) for each in value.references or ()])
    draft = Draft(value.schema, value.schema_type or "AVRO", references, value.metadata, value.rule_set)
    return Version(value.subject, value.version, value.id, draft, draft.identity, value.deleted, timestamp_ms)


def schema_key(subject: str, version: int) -> Json:
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}


def schema_record(version: Version, *, deleted: bool = False) -> Record:
    """The record that registers a version, or marks it as deleted."""
    draft = version.draft
    value: Json = {"subject": version.subject, "version": version.version, "id": version.id}
    if draft.schema_type != "AVRO":
        value["schemaType"] = draft.schema_type
    value |= {**parts(draft), "schema": draft.schema, "deleted": deleted}
    return Record(schema_key(version.subject, version.version), value)


def schema_tombstone(subject: str, version: int) -> Record:
    return Record(schema_key(subject, version), None)


def delete_subject_record(subject: str, version: int) -> Record:
    key = {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
    return Record(key, {"subject": subject, "version": version})


def clear_subject_record(subject: str | None) -> Record:
    return Record({"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}, {"subject": subject})


def config_record(subject: str | None, config: Json | None) -> Record:
    """`config` with the name `compatibilityLevel`; None deletes."""
    key = {"keytype": "CONFIG", "subject": subject, "magic": 0}
    return Record(key, None if config is None else {"subject": subject, **config})


def mode_record(subject: str | None, mode: str | None) -> Record:
    key = {"keytype": "MODE", "subject": subject, "magic": 0}
    return Record(key, None if mode is None else {"subject": subject, "mode": mode})


def context_record(context: str, *, deleted: bool = False) -> Record:
    key = {"keytype": "CONTEXT", "tenant": "default", "context": context, "magic": 0}
    return Record(key, None if deleted else {"tenant": "default", "context": context})


def noop_record() -> Record:
    return Record({"keytype": "NOOP", "magic": 0}, None)
