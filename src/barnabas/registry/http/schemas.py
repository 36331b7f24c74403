"""Routes below `/schemas`: by id, by guid, and lists.

The answer to a plain request by id is cached; the state removes it when the id changes.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from barnabas import limits
from barnabas.registry.core import errors, names
from barnabas.registry.core.entities import Json, Version, version_fields
from barnabas.registry.http.exchange import answer, encode, flag, integer, many, page, raw
from barnabas.registry.http.rights import denied_schema
from barnabas.registry.http.subjects import formatted, shown
from barnabas.registry.http.surface import Surface, Table
from barnabas.web.routing import Request, Response

TYPES = ("JSON", "PROTOBUF", "AVRO")


async def by_id(surface: Surface, request: Request, context: str, text: str) -> Response:
    schema_id = integer(text)
    state = surface.state
    if request.query or surface.rights is not None:
        version = _version(surface, request, context, schema_id)
        fields = await shown(surface, request, version)
        del fields["id"]
        if flag(request, "fetchMaxId"):
            fields["maxId"] = state.contexts[names.context_of(version.subject)].last_id
        return answer(request, fields)
    key = names.parse(context).context, schema_id
    body = state.answers.get(key)
    if body is None:
        body = encode(await _fields(surface, _version(surface, request, context, schema_id), request))
        if len(state.answers) >= limits.MAX_RENDERED_SCHEMAS:
            state.answers.clear()
        state.answers[key] = body
    return raw(request, body)


def _version(surface: Surface, request: Request, context: str, schema_id: int) -> Version:
    subject = surface.subject(context, request.query.get("subject", ""))
    found = surface.state.by_id(schema_id, subject)
    if found is None:
        raise errors.schema_not_found(schema_id)
    return surface.readable_version(request, found)


async def _fields(surface: Surface, version: Version, request: Request) -> Json:
    fields = version_fields(version, await formatted(surface, version, request.query.get("format", "")))
    del fields["id"]
    return fields


async def text_by_id(surface: Surface, request: Request, context: str, text: str) -> Response:
    version = _version(surface, request, context, integer(text))
    form = await formatted(surface, version, request.query.get("format", ""))
    return raw(request, (version.draft.schema if form is None else form).encode())


def _placed(surface: Surface, request: Request, context: str, text: str) -> list[tuple[str, int]]:
    """The subjects and versions with an id."""
    state, deleted = surface.state, flag(request, "deleted")
    version = state.by_id(integer(text), surface.subject(context, request.query.get("subject", "")))
    if version is None:
        raise errors.schema_not_found()
    placed = state.contexts[names.context_of(version.subject)].ids.get(version.id, {})
    may_read = surface.readable(request)
    return [
        (name, number)
        for name, number in sorted(placed.items())
        if state.version(name, number, deleted=deleted) and may_read(name)
    ]


async def subjects_by_id(surface: Surface, request: Request, context: str, text: str) -> Response:
    found = [subject for subject, _ in _placed(surface, request, context, text)]
    return answer(request, page(request, found, limits.MAX_LISTED_SUBJECTS))


async def versions_by_id(surface: Surface, request: Request, context: str, text: str) -> Response:
    found = [{"subject": subject, "version": number} for subject, number in _placed(surface, request, context, text)]
    return answer(request, page(request, found, limits.MAX_LISTED_SUBJECTS))


def _identity(text: str) -> bytes:
    try:
        return UUID(text).bytes
    except ValueError:
        raise errors.schema_not_found(text) from None


def _with_guid(surface: Surface, request: Request, text: str) -> list[tuple[str, int]]:
    """The contexts with a guid, each with its id there. Raises HttpError 40403 or 40301."""
    placed = surface.state.by_guid(_identity(text))
    if not placed:
        raise errors.schema_not_found(text)
    known = [each for each in placed if surface.knows_id(request, *each)]
    if not known:
        raise denied_schema(text)
    return known


async def by_guid(surface: Surface, request: Request, context: str, text: str) -> Response:
    name, schema_id = _with_guid(surface, request, text)[0]
    version = surface.state.by_id(schema_id, names.Name(name, "").prefix)
    if version is None:
        raise errors.schema_not_found(text)
    fields = await _fields(surface, surface.readable_version(request, version), request)
    del fields["subject"], fields["version"]
    return answer(request, fields)


async def ids_by_guid(surface: Surface, request: Request, context: str, text: str) -> Response:
    placed = _with_guid(surface, request, text)
    return answer(request, [{"context": name, "id": schema_id} for name, schema_id in placed])


async def types(surface: Surface, request: Request, context: str) -> Response:
    return answer(request, TYPES)


async def list_schemas(surface: Surface, request: Request, context: str) -> Response:
    state = surface.state
    given = many(request, "subjectPrefix") or [""]
    prefixes = [each if each.startswith((":.", names.WILDCARD)) else context + each for each in given]
    subjects = {subject for prefix in prefixes for subject in state.with_prefix(prefix)}
    may_read = surface.readable(request)
    aliases = _aliases(surface, prefixes, may_read) if flag(request, "aliases") else {}
    deleted, only, latest = flag(request, "deleted"), flag(request, "deletedOnly"), flag(request, "latestOnly")
    rule_type = request.query.get("ruleType")
    found = []
    for subject in sorted(filter(may_read, {*subjects, *aliases})):
        versions = [each for each in state.versions(subject, deleted=deleted or only) if each.deleted or not only]
        for version in versions[-1:] if latest else versions:
            if rule_type and not _has_rule(version, rule_type):
                continue
            found.append((version, aliases.get(subject)))
    shown = page(request, found, limits.MAX_LISTED_SCHEMAS)
    return answer(request, [_listed(version, names_) for version, names_ in shown])


def _listed(version: Version, aliases: list[str] | None) -> Json:
    fields = version_fields(version)
    if aliases:
        fields["aliases"] = aliases
    return fields


def _aliases(surface: Surface, prefixes: list[str], may_read: Callable[[str], bool]) -> dict[str, list[str]]:
    """The aliases that begin with one of `prefixes` and that the caller may read, by the subject that they refer to in their
    config."""
    found: dict[str, list[str]] = {}
    for name in sorted(filter(None, surface.state.configs)):
        if any(names.begins(name, prefix) for prefix in prefixes) and may_read(name):
            target = surface.behind_alias(name)
            if target != name:
                found.setdefault(target, []).append(name)
    return found


def _has_rule(version: Version, rule_type: str) -> bool:
    rules = (version.draft.rule_set or {}).values()
    return any(rule.get("type") == rule_type for part in rules for rule in part or ())


TABLE: Table = (
    ("GET", "/schemas", list_schemas),
    ("GET", "/schemas/types", types),
    ("GET", "/schemas/ids/{}", by_id),
    ("GET", "/schemas/ids/{}/schema", text_by_id),
    ("GET", "/schemas/ids/{}/subjects", subjects_by_id),
    ("GET", "/schemas/ids/{}/versions", versions_by_id),
    ("GET", "/schemas/guids/{}", by_guid),
    ("GET", "/schemas/guids/{}/ids", ids_by_guid),
)
