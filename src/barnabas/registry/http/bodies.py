"""The types of bodies: those of requests, which `exchange.body_of` checks, and those of answers.

The OpenAPI document is generated from these types. Further fields in a request are ignored. An answer has no further fields.
Fields have the names of Confluent's interface.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from barnabas import limits

Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Number = Int | str | None  # clients may send a number as a string
Flag = bool | str | None  # clients may send a boolean as a string
Scalar = str | int | float | bool | None
Text = str | None
Few = Meta(max_length=limits.MAX_LISTED_SCHEMAS)


class ReferenceBody(Struct):
    """A schema that another one names."""

    name: Text = None
    subject: Text = None
    version: Number = None


class MetadataBody(Struct):
    """Tags by path, properties by name, and the names of properties with secrets."""

    tags: dict[str, list[str]] | None = None
    properties: dict[str, Scalar] | None = None
    sensitive: list[str] | None = None


class RuleBody(Struct, rename="camel"):
    """A rule for the data of a schema."""

    name: Text = None
    doc: Text = None
    kind: Text = None
    mode: Text = None
    type: Text = None
    tags: list[str] | None = None
    params: dict[str, Scalar] | None = None
    expr: Text = None
    on_success: Text = None
    on_failure: Text = None
    disabled: bool | None = None


class RuleSetBody(Struct, rename="camel"):
    """The rules of a schema: for versions, for values, and for encoded values."""

    migration_rules: list[RuleBody] | None = None
    domain_rules: list[RuleBody] | None = None
    encoding_rules: list[RuleBody] | None = None


class EntityBody(Struct, rename="camel"):
    """A part of a schema: `.acme.Order.id`, and `SR_FIELD` or `SR_RECORD`."""

    entity_path: Text = None
    entity_type: Text = None


class TagsBody(Struct, rename="camel"):
    """The tags of a part of a schema."""

    schema_entity: EntityBody | None = None
    tags: list[str] | None = None


class SchemaRequest(Struct, rename="camel"):
    """A schema to look up or to check."""

    schema: str | int | float | None = None
    schema_type: Text = None
    references: list[ReferenceBody] | None = None
    metadata: MetadataBody | None = None
    rule_set: RuleSetBody | None = None


class RegisterRequest(SchemaRequest, rename="camel"):
    """A schema to register. Without a schema the latest version is registered again."""

    version: Number = None
    id: Number = None
    propagate_schema_tags: bool | None = None
    schema_tags_to_add: list[TagsBody] | None = None
    schema_tags_to_remove: list[TagsBody] | None = None


class TagsRequest(Struct, rename="camel"):
    """Changes of the tags, metadata and rules of a version."""

    new_version: Number = None
    metadata: MetadataBody | None = None
    rule_set: RuleSetBody | None = None
    tags_to_add: list[TagsBody] | None = None
    tags_to_remove: list[TagsBody] | None = None
    rules_to_merge: RuleSetBody | None = None
    rules_to_remove: list[str] | None = None


class ConfigRequest(Struct, rename="camel"):
    """A config. Fields that are absent keep their value; null removes one."""

    alias: Text = None
    normalize: Flag = None
    validate_fields: Flag = None
    validate_names: Flag = None
    compatibility: Text = None
    compatibility_policy: Text = None
    compatibility_group: Text = None
    default_metadata: MetadataBody | None = None
    override_metadata: MetadataBody | None = None
    default_rule_set: RuleSetBody | None = None
    override_rule_set: RuleSetBody | None = None


class ModeRequest(Struct):
    """A mode."""

    mode: Text = None


class AssociationItem(Struct, rename="camel"):
    """One association of a resource. `op_type` is CREATE, UPSERT or DELETE in a batch."""

    op_type: Text = None
    subject: Text = None
    association_type: Text = None
    lifecycle: Text = None
    frozen: bool | None = None
    schema: SchemaRequest | str | None = None
    normalize: bool | None = None


class AssociationRequest(Struct, rename="camel"):
    """The associations of one resource."""

    resource_name: Text = None
    resource_namespace: Text = None
    resource_id: Text = None
    resource_type: Text = None
    associations: Annotated[list[AssociationItem], Few] | None = None


class AssociationBatchRequest(Struct):
    """The associations of several resources."""

    requests: Annotated[list[AssociationRequest], Few] | None = None


class AssociationQuery(Struct, rename="camel"):
    """The resource of the requested associations."""

    resource_name: Text = None
    resource_namespace: Text = None
    resource_id: Text = None
    resource_type: Text = None
    association_types: list[str] | None = None
    lifecycle: Text = None


class AssociationBatchQuery(Struct):
    """The resources of the requested associations."""

    requests: Annotated[list[AssociationQuery], Few] | None = None


# --- answers


class ErrorBody(Struct, forbid_unknown_fields=True):
    """The reason why a request was refused. The first three digits of the code are usually the status."""

    error_code: int
    message: str


class ReferenceAnswer(Struct, forbid_unknown_fields=True):
    """A reference to another schema; version -1 is the latest."""

    name: str
    subject: str
    version: int


class TagsAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """The tags in the text of a schema."""

    schema_entity: dict[str, str]
    tags: list[str]


class ContentAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """The common fields of all answers with a schema."""

    schema: str
    schema_type: str
    references: list[ReferenceAnswer] | UnsetType = UNSET
    metadata: MetadataBody | UnsetType = UNSET
    rule_set: RuleSetBody | UnsetType = UNSET
    schema_tags: list[TagsAnswer] | UnsetType = UNSET


class RegisteredAnswer(ContentAnswer, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A schema that is registered."""

    id: int
    version: int
    guid: str


class VersionAnswer(RegisteredAnswer, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A version of a subject; `ts` is the time of its registration, in milliseconds."""

    subject: str
    ts: int
    deleted: bool
    aliases: list[str] | UnsetType = UNSET


class IdAnswer(ContentAnswer, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The schema of an id, with the first subject and version that has it."""

    guid: str
    subject: str
    version: int
    ts: int
    deleted: bool
    max_id: int | UnsetType = UNSET


class GuidAnswer(ContentAnswer, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The schema of a guid."""

    guid: str
    ts: int
    deleted: bool


class PlaceAnswer(Struct, forbid_unknown_fields=True):
    """A subject and its version."""

    subject: str
    version: int


class ContextIdAnswer(Struct, forbid_unknown_fields=True):
    """An id of a context."""

    context: str
    id: int


class CompatibilityAnswer(Struct, forbid_unknown_fields=True):
    """Whether a schema is compatible; `messages` with `verbose=true`."""

    is_compatible: bool
    messages: list[str] | UnsetType = UNSET


class SettingsAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """The common fields of all answers with a config."""

    compatibility_policy: str | UnsetType = UNSET
    compatibility_group: str | UnsetType = UNSET
    alias: str | UnsetType = UNSET
    normalize: bool | UnsetType = UNSET
    validate_fields: bool | UnsetType = UNSET
    validate_names: bool | UnsetType = UNSET
    default_metadata: MetadataBody | UnsetType = UNSET
    override_metadata: MetadataBody | UnsetType = UNSET
    default_rule_set: RuleSetBody | UnsetType = UNSET
    override_rule_set: RuleSetBody | UnsetType = UNSET


class ConfigAnswer(SettingsAnswer, forbid_unknown_fields=True, rename="camel"):
    """A config."""

    compatibility_level: str | UnsetType = UNSET


class ChangedConfigAnswer(SettingsAnswer, forbid_unknown_fields=True, rename="camel"):
    """The fields of a config that were changed."""

    compatibility: str | UnsetType = UNSET


class ModeAnswer(Struct, forbid_unknown_fields=True):
    """A mode; none if it was removed."""

    mode: str | UnsetType = UNSET


class ClusterAnswer(Struct, forbid_unknown_fields=True):
    """The cluster behind the registry, and the group of the registry."""

    id: str
    scope: dict[str, Any]


class InterfaceAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """The version of the interface, and of the registry."""

    version: str
    commit_id: str


class AssociationAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """A stored association; times in milliseconds."""

    create_ts: int
    update_ts: int
    subject: str
    guid: str
    resource_name: str
    resource_namespace: str
    resource_id: str
    resource_type: str
    association_type: str
    lifecycle: str
    frozen: bool


class AssociatedItem(Struct, forbid_unknown_fields=True, rename="camel"):
    """One association that was written, with its schema in the request."""

    subject: str
    association_type: str
    lifecycle: str
    frozen: bool
    schema: RegisteredAnswer | UnsetType = UNSET


class AssociatedAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """The associations of one resource that were written. A dry run names the resource alone, and an id only if the request has one."""

    resource_name: str
    resource_namespace: str
    resource_type: str
    resource_id: str | UnsetType = UNSET
    associations: list[AssociatedItem] | UnsetType = UNSET


class BatchAnswer(Struct, forbid_unknown_fields=True):
    """For each request of a batch `result` or `error`."""

    results: list[dict[str, Any]]
