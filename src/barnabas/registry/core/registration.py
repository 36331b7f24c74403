"""Registers a schema: the steps from a client's draft to the records of a version."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.registry.core import compatibility, errors, names, records, rule_sets
from barnabas.registry.core.commands import ChangeTags, Outcome, Register
from barnabas.registry.core.drafts import integer, metadata_of, rule_set_of, texts, wrong
from barnabas.registry.core.entities import (
    CONFLUENT_VERSION,
    Draft,
    Json,
    Version,
    merge_rule_sets,
    property_of,
    schema_fields,
    with_confluent_version,
)
from barnabas.registry.core.lookup import canonical, matches, with_settings
from barnabas.registry.core.parsing import Parser
from barnabas.registry.core.state import State
from barnabas.registry.formats.interface import Entity, InvalidSchema, ParsedSchema

IMPORTING = frozenset({"IMPORT", "FORWARD"})
NO_RESERVATION: Mapping[str, int] = {}


def answer_of(version: int, schema_id: int, guid: str, draft: Draft) -> Json:
    """The answer to a registration."""
    return {"id": schema_id, "version": version, "guid": guid, **schema_fields(draft)}


def register(state: State, parser: Parser, command: Register, reserved: Mapping[str, int] = NO_RESERVATION) -> Outcome:
    """Register a schema.

    Args:
        reserved: the last id of each context that earlier commands use; their records are being written.

    Raises:
        HttpError: the schema is refused.
    """
    subject = command.subject
    check_mode(state, subject, command.schema_id)
    versions = state.versions(subject, deleted=True)
    living = [each for each in versions if not each.deleted]
    config, mode = state.config_in_scope(subject), state.mode_in_scope(subject)
    next_version = versions[-1].version + 1 if versions else 1
    draft = _with_tags(parser, command)
    number = command.version or (-1 if command.tags_to_add or command.tags_to_remove else 0)
    if mode not in IMPORTING:
        draft = _completed(parser, command, draft, living, config, number, next_version)
    elif not draft.schema.strip():
        raise errors.invalid_schema("Empty schema")
    rule_sets.check(command.draft.rule_set)
    normalize = mode not in IMPORTING and (command.normalize or bool(config.get("normalize")))
    parsed = parser.parse(subject, draft, strict=command.schema_id < 0 and validates_names(config))
    given, draft = draft, canonical(draft, parsed, normalize=normalize)
    identity = draft.identity
    parser.keep_identity(given, identity, normalized=normalize)
    schema_id, known = command.schema_id, state.known(subject, identity)
    if known is not None and schema_id in {-1, known}:
        found = state.find(subject, identity)
        if number == 0 and found is not None:
            return Outcome((), answer_of(found.version, found.id, found.guid, found.draft))
        schema_id = known
    if number == 0:
        for each in reversed(living):
            if schema_id in {-1, each.id} and matches(state, parser, draft, each):
                return Outcome((), answer_of(each.version, each.id, each.guid, draft))
    if mode not in IMPORTING:
        _check_compatible(parser, subject, config, draft, parsed, living)
    if number <= 0:
        number = next_version
    elif number != next_version and mode not in IMPORTING:
        raise errors.invalid_schema("Version is not one more than previous version")
    context = names.context_of(subject)
    new_id = -1
    if schema_id < 0:
        schema_id = new_id = max(state.contexts[context].last_id, reserved.get(context, 0)) + 1
    else:
        _check_id(state, subject, schema_id, identity)
    version = Version(subject, number, schema_id, draft, identity)
    old = [
        records.schema_tombstone(subject, each.version)
        for each in versions
        if each.deleted and each.id == schema_id and each.version < number
    ]
    first = [] if context == names.DEFAULT_CONTEXT or context in state.named_contexts else [records.context_record(context)]
    alone = command.schema_id >= 0
    touched = None if alone else frozenset((subject, (context, identity)))
    written = (*first, *old, records.schema_record(version))
    return Outcome(written, answer_of(number, schema_id, version.guid, draft), touched, context, new_id)


def change_tags(state: State, parser: Parser, command: ChangeTags) -> Outcome:
    """Register a version again with other tags, metadata and rules."""
    old = state.version(command.subject, command.version)
    if old is None:
        missing = errors.version_not_found if state.has(command.subject) else lambda _: errors.subject_not_found(command.subject)
        raise missing(command.version)
    request = command.request
    number = integer(request, "newVersion", 0)
    parsed = parser.parse(command.subject, old.draft)
    try:
        parsed = parsed.with_tags(tag_map(request.get("tagsToAdd")), tag_map(request.get("tagsToRemove")))
    except InvalidSchema as error:
        raise errors.invalid_schema(str(error)) from None
    rule_set = rule_set_of(request, "ruleSet")
    if request.get("rulesToMerge") is not None or request.get("rulesToRemove") is not None:
        before = state.version(command.subject, number - 1 if number else -1)
        rule_set = merge_rule_sets(before.draft.rule_set if before else None, rule_set_of(request, "rulesToMerge"))
        rule_set = rule_sets.without(rule_set, texts(request.get("rulesToRemove") or [], "rulesToRemove"))
    metadata = old.draft.metadata if request.get("metadata") is None else metadata_of(request, "metadata")
    metadata = with_confluent_version(metadata, number or state.versions(command.subject, deleted=True)[-1].version + 1)
    draft = Draft(parsed.canonical, old.draft.schema_type, old.draft.references, metadata, rule_set)
    return register(state, parser, Register(command.subject, draft, number))


def check_mode(state: State, subject: str, schema_id: int = -1) -> None:
    """Check that the mode allows registering a schema. Raises HttpError 42205."""
    check_writable(state, subject)
    mode, where = state.mode_in_scope(subject), _where(subject)
    if schema_id >= 0 and mode not in IMPORTING:
        raise errors.not_permitted(f"{where} is not in import mode")
    if schema_id < 0 and mode != "READWRITE":
        raise errors.not_permitted(f"{where} is not in read-write mode")


def check_writable(state: State, subject: str | None) -> None:
    """Check that the mode of a subject, a context or everything allows changes. Raises HttpError 42205."""
    if state.mode_in_scope(subject).startswith("READONLY"):
        raise errors.not_permitted(f"{_where(subject)} is in read-only mode")


def validates_names(config: Json) -> bool:
    """Whether a new schema must keep the strict rules of its format; true unless the config says otherwise."""
    return config.get("validateNames") is not False


def tag_map(items: object) -> dict[Entity, tuple[str, ...]]:
    """The tags of a request by entity; a request may name an entity several times. Raises HttpError 422."""
    found: dict[Entity, tuple[str, ...]] = {}
    for item in items if isinstance(items, list) else ():
        named = item.get("schemaEntity") if isinstance(item, dict) else None
        if not isinstance(named, dict):
            raise wrong("schemaEntity", "an object")
        entity = Entity(str(named.get("entityPath", "")), str(named.get("entityType", "")).upper())
        found[entity] = (*found.get(entity, ()), *texts(item.get("tags") or [], "tags"))
    return found


def _where(subject: str | None) -> str:
    return f"Subject {subject or 'null'} in context {names.parse(subject or '').prefix}"


def _with_tags(parser: Parser, command: Register) -> Draft:
    if not (command.tags_to_add or command.tags_to_remove):
        return command.draft
    parsed = parser.parse(command.subject, command.draft)
    try:
        parsed = parsed.with_tags(tag_map(list(command.tags_to_add)), tag_map(list(command.tags_to_remove)))
    except InvalidSchema as error:
        raise errors.invalid_schema(str(error)) from None
    return canonical(command.draft, parsed)


def _completed(
    parser: Parser, command: Register, draft: Draft, living: list[Version], config: Json, number: int, next_version: int
) -> Draft:
    """The draft with the metadata and rules from the version before it and from the config."""
    before = living[-1].draft if living else None
    if not draft.schema.strip():
        if before is None:
            raise errors.invalid_schema("Empty schema")
        draft = Draft(before.schema, before.schema_type, before.references, draft.metadata, draft.rule_set)
    if command.propagate_tags and before is not None:
        tags = parser.parse(command.subject, before).tags()
        if tags:
            draft = canonical(draft, parser.parse(command.subject, draft).with_tags(tags, {}))
    completed = with_settings(draft, before, config)
    metadata = completed.metadata
    if number != 0 or property_of(metadata, CONFLUENT_VERSION) is not None:
        metadata = with_confluent_version(metadata, next_version)
    return Draft(completed.schema, completed.schema_type, completed.references, metadata, completed.rule_set)


def _check_compatible(
    parser: Parser, subject: str, config: Json, draft: Draft, parsed: ParsedSchema, living: list[Version]
) -> None:
    found = compatibility.problems(config, draft, parsed, living, lambda each: parser.parse(each.subject, each.draft))
    if found:
        raise errors.incompatible(subject, found)


def _check_id(state: State, subject: str, schema_id: int, identity: bytes) -> None:
    """Check that an id does not get another content. Raises HttpError 42205."""
    prefix = names.parse(subject).prefix
    held = state.by_id(schema_id, prefix)
    if held is not None and held.identity != identity:
        raise errors.not_permitted(f"Overwrite new schema with id {schema_id} in context {prefix} is not permitted.")
