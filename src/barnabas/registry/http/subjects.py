"""Routes below `/subjects` and `/compatibility`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from barnabas import limits
from barnabas.registry.core import compatibility, errors, lookup, names, registration
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
from barnabas.web.routing import HttpError, Request, Response

Value = TypeVar("Value")


async def list_subjects(surface: Surface, request: Request, context: str) -> Response:
    state = surface.state
    prefixes = many(request, "subjectPrefix") or ["" if context else names.WILDCARD]
    found: dict[str, None] = {}
    for prefix in prefixes:
        whole = prefix if prefix.startswith((":.", names.WILDCARD)) else context + prefix
        found |= dict.fromkeys(state.with_prefix(whole))
    may_read = surface.readable(request)
    subjects = [each for each in found if is_wanted(state, request, each) and may_read(each)]
    return answer(request, page(request, subjects, limits.MAX_LISTED_SUBJECTS))


def is_wanted(state: State, request: Request, subject: str) -> bool:
    """Whether the answer shows a subject, by the parameters `deleted` and `deletedOnly`."""
    living = state.has(subject)
    return not living if flag(request, "deletedOnly") else living or flag(request, "deleted")


async def look_up(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject, body = surface.subject(context, text), body_of(request, SchemaRequest)
    draft, deleted = draft_from(body), flag(request, "deleted")
    surface.permit_references(request, subject, draft)
    state, parser, normalize = surface.state, surface.registry.parser, flag(request, "normalize")
    others = list(filter(surface.readable(request), state.elsewhere(subject)))

    def search() -> Version | None:
        found = lookup.look_up(state, parser, subject, draft, normalize=normalize, deleted=deleted)
        for reading in others if found is None else ():
            with contextlib.suppress(HttpError):  # the draft's references may not exist in the context of this subject
                found = lookup.look_up(state, parser, reading, draft, normalize=normalize, deleted=deleted)
            if found is not None:
                break
        return found

    found = await surface.large.run(surface.registry.characters(subject, draft, compared=False), search)
    if found is not None:
        return answer(request, await shown(surface, request, found))
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
            return answer(request, await shown(surface, request, version))
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
    surface.permit_references(request, subject, draft)
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
    characters = surface.registry.characters(subject, draft, compared=False)
    known = await surface.large.run(characters, lambda: lookup.known(surface.state, surface.registry.parser, command))
    if known is not None:
        return answer(request, registration.answer_of(known.version, known.id, known.guid, known.draft))
    return await surface.write(request, command)


def _items(body: Json, name: str) -> tuple[Json, ...]:
    items = body.get(name)
    return tuple(item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def version_or_error(surface: Surface, request: Request, subject: str, text: str, *, deleted: bool | None = None) -> Version:
    """The version in a path. Raises HttpError 42202, 40401 or 40402."""
    wanted = version_number(text)
    also_deleted = flag(request, "deleted") if deleted is None else deleted
    found = surface.state.anywhere(subject, wanted, deleted=also_deleted)
    if found is not None and (found.subject == subject or surface.readable(request)(found.subject)):
        return found
    if not surface.state.has(subject, deleted=also_deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(wanted)


async def formatted(surface: Surface, version: Version, form: str) -> str | None:
    """The text in the form that the client requests; None for the stored form."""
    if not form.strip():
        return None
    return await _of_parsed(surface, version, lambda parsed: parsed.formatted(form))


async def _of_parsed(surface: Surface, version: Version, use: Callable[[ParsedSchema], Value]) -> Value:
    characters = surface.registry.characters(version.subject, version.draft, compared=False)
    return await surface.large.run(characters, lambda: use(surface.registry.parser.parse(version.subject, version.draft)))


async def shown(surface: Surface, request: Request, version: Version) -> Json:
    """The answer that shows a version, according to `format`, `referenceFormat` and `findTags`."""
    fields = version_fields(version, await formatted(surface, version, request.query.get("format", "")))
    if request.query.get("referenceFormat", "").lower() == "qualified":
        for reference in fields.get("references", ()):
            reference["subject"] = names.in_context_of(version.subject, reference["subject"])
    wanted = many(request, "findTags")
    if wanted:
        tags = await _of_parsed(surface, version, lambda parsed: parsed.tags())
        fields["schemaTags"] = [
            {"schemaEntity": {"entityPath": entity.path, "entityType": entity.kind.lower()}, "tags": sorted(values)}
            for entity, values in tags.items()
            if "*" in wanted or not values.isdisjoint(wanted)
        ]
    return fields


async def get_version(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    found = version_or_error(surface, request, surface.subject(context, text), version)
    return answer(request, await shown(surface, request, found))


async def get_version_text(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    found = version_or_error(surface, request, surface.subject(context, text), version)
    form = await formatted(surface, found, request.query.get("format", ""))
    return raw(request, (found.draft.schema if form is None else form).encode())


async def get_users(surface: Surface, request: Request, context: str, text: str, version: str) -> Response:
    found = version_or_error(surface, request, surface.subject(context, text), version, deleted=True)
    users = surface.state.users(found.subject, found.version)
    if surface.rights is not None:
        contexts = list(surface.state.contexts)
        users = [each for each in users if any(surface.knows_id(request, context, each) for context in contexts)]
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
    if found is not None and not surface.readable(request)(found.subject):
        found = None
    if found is None and wanted != -1:
        raise errors.version_not_found(wanted)
    return await _checked(surface, request, subject, body, [] if found is None else [found])


async def check_all(surface: Surface, request: Request, context: str, text: str) -> Response:
    subject, body = surface.subject(context, text), body_of(request, SchemaRequest)
    return await _checked(surface, request, subject, body, surface.state.versions(subject))


async def _checked(
    surface: Surface, request: Request, subject: str, body: Mapping[str, object], earlier: list[Version]
) -> Response:
    verbose, normalize, draft = flag(request, "verbose"), flag(request, "normalize"), draft_from(dict(body))
    surface.permit_references(request, subject, draft)
    try:
        messages = await surface.large.run(
            surface.registry.characters(subject, draft) + sum(len(each.draft.schema) for each in earlier),
            lambda: _problems(surface, subject, draft, earlier, normalize=normalize),
        )
    except HttpError as error:
        if not verbose or error.code != errors.INVALID_SCHEMA:
            raise
        messages = [error.message]
    fields: Json = {"is_compatible": not messages}
    if verbose:
        fields["messages"] = messages
    return answer(request, fields)


def _problems(surface: Surface, subject: str, draft: Draft, earlier: list[Version], *, normalize: bool) -> list[str]:
    """The reasons why a schema may not follow versions. Raises HttpError 42201."""
    if not draft.schema.strip():
        raise errors.invalid_schema("Empty schema")
    config, parser = surface.state.config_in_scope(subject), surface.registry.parser
    parsed = parser.parse(subject, draft, strict=registration.validates_names(config))
    if normalize or config.get("normalize"):
        parsed = parsed.normalized()
    draft = Draft(parsed.canonical, draft.schema_type, draft.references, draft.metadata, draft.rule_set)
    return compatibility.problems(config, draft, parsed, earlier, lambda each: parser.parse(each.subject, each.draft))


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
