"""Associations: which subject describes the keys or values of a resource such as a topic.

A strong association owns its subject: no other resource may have it, and it can be deleted with the resource. A frozen one does not change.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import md5
from uuid import UUID

from barnabas.registry.core import errors, names, records, registration
from barnabas.registry.core.commands import DeleteAssociations, Outcome, PutAssociations, Register
from barnabas.registry.core.drafts import draft_from
from barnabas.registry.core.entities import Json
from barnabas.registry.core.parsing import Parser
from barnabas.registry.core.records import Record
from barnabas.registry.core.state import State
from barnabas.web.routing import HttpError

RESOURCE_FIELDS = ("resourceName", "resourceNamespace", "resourceId", "resourceType")
LIFECYCLES = frozenset({"STRONG", "WEAK"})
TYPES = frozenset({"key", "value"})


def selected(state: State, wanted: Json, association_types: Collection[str] = (), lifecycle: str | None = None) -> list[Json]:
    """The associations with these fields, in order of resource and type."""
    found = [
        each
        for each in state.associations.values()
        if all(each.get(name) == value for name, value in wanted.items())
        and (not association_types or each.get("associationType") in association_types)
        and (lifecycle is None or each.get("lifecycle") == lifecycle.upper())
    ]
    return sorted(found, key=lambda each: (str(each.get("resourceName")), str(each.get("associationType"))))


def put(state: State, parser: Parser, command: PutAssociations) -> Outcome:
    """Create or change the associations of one resource; schemas that come along are registered."""
    resource = _resource(command.request)
    items = command.request.get("associations")
    if not isinstance(items, list) or not items:
        raise errors.invalid_association("associations", "cannot be null or empty")
    written: list[Record] = []
    shown = []
    for item in items:
        value, schema, new = _one(state, parser, command, resource, item if isinstance(item, dict) else {})
        written += new
        shown.append({**value, **({} if schema is None else {"schema": schema})})
    answer = {**resource, "associations": shown}
    return Outcome(() if command.dry_run else tuple(written), answer)


def delete(state: State, command: DeleteAssociations) -> Outcome:
    """Remove the associations of a resource."""
    found = meant(state, command)
    if not found:
        raise errors.association_not_found(command.resource_id)
    written: list[Record] = []
    for value in found:
        if value.get("frozen") and not command.cascade:
            raise HttpError(409, _frozen(value), 40908)
        written.append(_record(value, delete=True))
        if command.cascade and value.get("lifecycle") == "STRONG":
            versions = state.versions(value["subject"], deleted=True)
            for version in versions:
                if state.users(value["subject"], version.version):
                    raise errors.reference_exists(value["subject"], version.version)
                written.append(records.schema_tombstone(value["subject"], version.version))
    return Outcome(tuple(written), None)


def meant(state: State, command: DeleteAssociations) -> list[Json]:
    """The associations that a command removes."""
    wanted = {"resourceId": command.resource_id, "resourceType": command.resource_type or "topic"}
    return selected(state, wanted, command.association_types)


def subject_of(state: State, context: str, resource: Json, item: Json) -> str:
    """The subject of one association of a request, in the context of its path."""
    kind = item.get("associationType") or "value"
    same_place = {"resourceId": resource.get("resourceId"), "resourceType": resource.get("resourceType") or "topic"}
    before = next(iter(selected(state, same_place, [kind])), {})
    subject = item.get("subject") or before.get("subject") or f"{context}{resource.get('resourceName')}-{kind}"
    return names.in_context_of(context, str(subject))


def _resource(request: Json) -> Json:
    resource = {name: request.get(name) for name in RESOURCE_FIELDS}
    resource["resourceType"] = resource["resourceType"] or "topic"
    for name in ("resourceName", "resourceNamespace", "resourceId"):
        if not isinstance(resource[name], str) or not resource[name]:
            raise errors.invalid_association(name, "cannot be null or empty")
    return resource


def _one(
    state: State, parser: Parser, command: PutAssociations, resource: Json, item: Json
) -> tuple[Json, Json | None, list[Record]]:
    kind = item.get("associationType") or "value"
    if kind not in TYPES:
        raise errors.invalid_association("associationType", f"'{kind}' is not key or value")
    same_place = {"resourceId": resource["resourceId"], "resourceType": resource["resourceType"]}
    before = next(iter(selected(state, same_place, [kind])), None)
    subject = subject_of(state, command.context, resource, item)
    if not names.is_valid(subject):
        raise errors.invalid_association("subject", f"'{subject}' is not valid")
    lifecycle = str(item.get("lifecycle") or (before or {}).get("lifecycle") or "WEAK").upper()
    if lifecycle not in LIFECYCLES:
        raise errors.invalid_association("lifecycle", f"'{lifecycle}' is not STRONG or WEAK")
    frozen = bool(item.get("frozen", (before or {}).get("frozen", False)))
    info = {"subject": subject, "associationType": kind, "lifecycle": lifecycle, "frozen": frozen}
    value = {**resource, **info}
    value["guid"] = (before or {}).get("guid") or str(UUID(bytes=md5(repr(value).encode(), usedforsecurity=False).digest()))
    if before is not None:
        _check_change(command, before, value, item)
    _check_others(state, value)
    if item.get("schema") is None:
        if not state.has(subject):
            raise HttpError(409, f"No active (non-deleted) version exists for subject '{subject}'", 40907)
        return info, None, [] if before == value else [_record(value)]
    draft = draft_from(item["schema"] if isinstance(item["schema"], dict) else {"schema": item["schema"]})
    outcome = registration.register(state, parser, Register(subject, draft, normalize=bool(item.get("normalize"))))
    return info, outcome.answer, [*outcome.records, *([] if before == value else [_record(value)])]


def _check_change(command: PutAssociations, before: Json, value: Json, item: Json) -> None:
    if before["subject"] != value["subject"] or (not command.update and before != value):
        text = f"An association of type '{value['associationType']}' already exists for resource '{value['resourceName']}'"
        raise HttpError(409, text, 40903)
    if before.get("frozen") and (before != value or item.get("schema") is not None):
        raise HttpError(409, _frozen(before), 40908)


def _check_others(state: State, value: Json) -> None:
    """A subject belongs to one resource strongly, or to several weakly."""
    for other in selected(state, {"subject": value["subject"]}):
        if other["resourceId"] == value["resourceId"] and other["associationType"] == value["associationType"]:
            continue
        if other["lifecycle"] == "STRONG":
            raise HttpError(409, f"A strong association already exists for subject '{value['subject']}'", 40905)
        if value["lifecycle"] == "STRONG":
            raise HttpError(409, f"An association already exists for subject '{value['subject']}'", 40904)


def _frozen(value: Json) -> str:
    return f"The association of type  '{value['associationType']}' is frozen for subject '{value['subject']}'"


def _record(value: Json, *, delete: bool = False) -> Record:
    key = {
        "keytype": "ASSOC",
        "tenant": "default",
        "resourceName": value["resourceName"],
        "resourceNamespace": value["resourceNamespace"],
        "resourceType": value["resourceType"],
        "associationType": value["associationType"],
        "magic": 0,
    }
    return Record(key, None if delete else {"tenant": "default", **value})
