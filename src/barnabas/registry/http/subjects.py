"""Routes below `/subjects` and `/compatibility`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from barnabas import limits
from barnabas.registry.core import compatibility, errors, names, registration
from barnabas.registry.core.commands import ChangeTags, DeleteSubject, DeleteVersion, Register
from barnabas.registry.core.drafts import draft_from, integer
from barnabas.registry.core.entities import Draft, Json, Version, property_of, version_fields
from barnabas.registry.core.state import State
from barnabas.registry.formats.interface import ParsedSchema
from barnabas.registry.http.bodies import RegisterRequest, SchemaRequest, TagsRequest
from barnabas.registry.http.exchange import (
    answer,
    body_of,
    flag,
    many,
    page,
    raw,
    version_number,
)
from barnabas.registry.http.surface import Surface, Table, checked_subject
from barnabas.web.routing import Request, Response

Value = TypeVar("Value")


async def list_subjects(surface: Surface, request: Request, context: str) -> Response:
    state = surface.state
    prefixes = many(request, "subjectPrefix") or ["" if context else names.WILDCARD]
    found: dict[str, None] = {}
    for prefix in prefixes:
        whole = prefix if prefix.startswith((":.", names.WILDCARD)) else context + prefix
        found |= dict.fromkeys(state.with_prefix(whole))
    subjects = [each for each in found if is_wanted(state, request, each)]
    return answer(request, page(request, subjects, limits.MAX_LISTED_SUBJECTS))


def is_wanted(state: State, request: Request, subject: str) -> bool:
    """Whether `deleted` and `deletedOnly` let a subject be shown."""
    living = state.has(subject)
    return not living if flag(request, "deletedOnly") else living or flag(request, "deleted")


async def look_up(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject, body = surface.subject(context, text), body_of(request, SchemaRequest)
    draft, deleted, normalize = draft_from(body), flag(request, "deleted"), flag(request, "normalize")
    state, parser = surface.state, surface.registry.parser
    readings = [subject]
    if names.context_of(subject) == names.DEFAULT_CONTEXT:
        readings += [f":{name}:{subject}" for name in sorted(surface.state.named_contexts)]

    def search() -> Version | None:
        for reading in readings:
            if reading in state.subjects or reading == subject:
                found = registration.look_up(state, parser, reading, draft, normalize=normalize, deleted=deleted)
                if found is not None:
                    return found
        return None

    found = await surface.large.run(surface.registry.characters(subject, draft, compared=False), search)
    if found is not None:
        return answer(request, version_fields(found, await formatted(surface, found, request.query.get("format", ""))))
    if not surface.state.has(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


async def delete_subject(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject = surface.subject(context, text)
    return await surface.write(request, DeleteSubject(subject, flag(request, "permanent")))


async def latest_with_metadata(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject = surface.subject(context, text)
    wanted = dict(zip(many(request, "key"), many(request, "value"), strict=False))
    deleted = flag(request, "deleted")
    for version in reversed(surface.state.versions(subject, deleted=deleted)):
        if all(property_of(version.draft.metadata, key) == value for key, value in wanted.items()) and wanted:
            return answer(request, version_fields(version, await formatted(surface, version, request.query.get("format", ""))))
    if not surface.state.has(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


async def list_versions(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject = surface.subject(context, text)
    only, deleted = flag(request, "deletedOnly"), flag(request, "deleted")
    if not surface.state.has(subject, deleted=deleted or only):
        raise errors.subject_not_found(subject)
    versions = [each for each in surface.state.versions(subject, deleted=deleted or only) if each.deleted or not only]
    negative = flag(request, "deletedAsNegative")
    numbers = [-each.version if negative and each.deleted else each.version for each in versions]
    return answer(request, page(request, numbers, limits.MAX_LISTED_SUBJECTS))


async def register(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject, body = checked_subject(surface.subject(context, text)), body_of(request, RegisterRequest)
    draft = draft_from(body)
    command = Register(
        subject,
        draft,
        integer(body, "version", 0),
        integer(body, "id", -1),
        flag(request, "normalize"),
        body.get("propagateSchemaTags") is True,
        _items(body, "schemaTagsToAdd"),
        _items(body, "schemaTagsToRemove"),
    )
    known = await surface.large.run(
        surface.registry.characters(subject, draft, compared=False), partial(_known, surface, command)
    )
    if known is not None:
        return answer(request, known)
    return await surface.write(request, command)


def _known(surface: Surface, command: Register) -> Json | None:
    """The answer to a schema that is registered already: it needs no writer."""
    state = surface.state
    if command.version or command.tags_to_add or command.tags_to_remove or command.propagate_tags or not command.draft.schema:
        return None
    if any(state.config_in_scope(command.subject).get(name) for name in registration.DEFAULTS):
        return None
    if state.mode_in_scope(command.subject) != "READWRITE" and command.schema_id < 0:
        return None
    normalize, parser = command.normalize, surface.registry.parser
    if command.subject not in state.subjects:
        return None
    found = registration.look_up(state, parser, command.subject, command.draft, normalize=normalize, deleted=False)
    if found is None or command.schema_id not in {-1, found.id}:
        return None
    return registration.answer_of(found.version, found.id, found.guid, found.draft)


def _items(body: Json, name: str) -> tuple[Json, ...]:
    items = body.get(name)
    return tuple(item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def version_or_error(surface: Surface, request: Request, subject: str, text: str, *, deleted: bool | None = None) -> Version:
    """The version that a path names. Raises HttpError 42202, 40401 or 40402."""
    wanted = version_number(text)
    also_deleted = flag(request, "deleted") if deleted is None else deleted
    found = surface.state.anywhere(subject, wanted, deleted=also_deleted)
    if found is not None:
        return found
    if not surface.state.has(subject, deleted=also_deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(wanted)


async def formatted(surface: Surface, version: Version, form: str) -> str | None:
    """The text in a form that the client asks for; None for the one that is stored."""
    if not form.strip():
        return None
    return await _parsed(surface, version, lambda parsed: parsed.formatted(form))


async def _parsed(surface: Surface, version: Version, use: Callable[[ParsedSchema], Value]) -> Value:
    characters = surface.registry.characters(version.subject, version.draft, compared=False)
    return await surface.large.run(characters, lambda: use(surface.registry.parser.parse(version.subject, version.draft)))


async def with_found_tags(surface: Surface, version: Version, request: Request, fields: Json) -> Json:
    """The answer with the tags of the text that `findTags` asks for."""
    wanted = many(request, "findTags")
    if wanted:
        tags = await _parsed(surface, version, lambda parsed: parsed.tags())
        fields["schemaTags"] = [
            {"schemaEntity": {"entityPath": entity.path, "entityType": entity.kind}, "tags": sorted(values)}
            for entity, values in tags.items()
            if "*" in wanted or not values.isdisjoint(wanted)
        ]
    return fields


async def get_version(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    found = version_or_error(surface, request, surface.subject(context, text), version)
    fields = version_fields(found, await formatted(surface, found, request.query.get("format", "")))
    return answer(request, await with_found_tags(surface, found, request, fields))


async def get_version_text(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    found = version_or_error(surface, request, surface.subject(context, text), version)
    form = await formatted(surface, found, request.query.get("format", ""))
    return raw(request, (found.draft.schema if form is None else form).encode())


async def get_users(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    found = version_or_error(surface, request, surface.subject(context, text), version, deleted=True)
    users = surface.state.users(found.subject, found.version)
    return answer(request, page(request, users, limits.MAX_LISTED_SUBJECTS))


async def delete_version(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    subject = surface.subject(context, text)
    return await surface.write(request, DeleteVersion(subject, version_number(version), flag(request, "permanent")))


async def change_tags(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    subject = surface.subject(context, text)
    return await surface.write(request, ChangeTags(subject, version_number(version), body_of(request, TagsRequest)))


async def check_version(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    subject, wanted, body = surface.subject(context, text), version_number(version), body_of(request, SchemaRequest)
    found = surface.state.anywhere(subject, wanted)
    if found is None and wanted != -1:
        raise errors.version_not_found(wanted)
    return await _checked(surface, request, subject, body, [] if found is None else [found])


async def check_all(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject, body = surface.subject(context, text), body_of(request, SchemaRequest)
    return await _checked(surface, request, subject, body, surface.state.versions(subject))


async def _checked(
    surface: Surface, request: Request, subject: str, body: Mapping[str, object], earlier: list[Version]
) -> Response:
    draft, parser = draft_from(dict(body)), surface.registry.parser
    if not draft.schema.strip():
        raise errors.invalid_schema("Empty schema")
    config = surface.state.config_in_scope(subject)

    def compare() -> list[str]:
        parsed = parser.parse(subject, draft, strict=True)
        if flag(request, "normalize") or config.get("normalize"):
            parsed = parsed.normalized()
        stored = Draft(parsed.canonical, draft.schema_type, draft.references, draft.metadata, draft.rule_set)
        return compatibility.problems(config, stored, parsed, earlier, lambda each: parser.parse(each.subject, each.draft))

    characters = surface.registry.characters(subject, draft) + sum(len(each.draft.schema) for each in earlier)
    messages = await surface.large.run(characters, compare)
    fields: Json = {"is_compatible": not messages}
    if flag(request, "verbose"):
        fields["messages"] = messages
    return answer(request, fields)


TABLE: Table = (
    ("GET", "/subjects", list_subjects),
    ("POST", "/subjects/{}", look_up),
    ("DELETE", "/subjects/{}", delete_subject),
    ("GET", "/subjects/{}/metadata", latest_with_metadata),
    ("GET", "/subjects/{}/versions", list_versions),
    ("POST", "/subjects/{}/versions", register),
    ("GET", "/subjects/{}/versions/{}", get_version),
    ("DELETE", "/subjects/{}/versions/{}", delete_version),
    ("GET", "/subjects/{}/versions/{}/schema", get_version_text),
    ("GET", "/subjects/{}/versions/{}/referencedby", get_users),
    ("POST", "/subjects/{}/versions/{}/tags", change_tags),
    ("POST", "/compatibility/subjects/{}/versions/{}", check_version),
    ("POST", "/compatibility/subjects/{}/versions", check_all),
)
