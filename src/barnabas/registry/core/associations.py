"""Associations between a resource, such as a topic, and the subjects that describe its keys and values.

A strong association owns its subject: no other resource may have the subject, and it can be deleted with the resource. A frozen
association brings the only schema of its subject and does not change. Each step of a request sees the changes of the steps
before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import md5
from uuid import UUID

from barnabas.registry.core import errors, names, records, registration
from barnabas.registry.core.association_requests import (
    CREATE,
    DELETE,
    STRONG,
    WEAK,
    Change,
    Resource,
    changes_from,
    resource_from,
)
from barnabas.registry.core.commands import DeleteAssociations, Outcome, PutAssociations, Register
from barnabas.registry.core.drafts import draft_from
from barnabas.registry.core.entities import Json
from barnabas.registry.core.parsing import Parser
from barnabas.registry.core.records import Record
from barnabas.registry.core.state import State
from barnabas.web.routing import HttpError

ANY_NAMESPACE = "-"
SHOWN = ("subject", "associationType", "lifecycle", "frozen")


def selected(
    associations: Iterable[Json], wanted: Json, association_types: Collection[str] = (), lifecycle: str | None = None
) -> list[Json]:
    """The associations with these fields, in the order of resource and type; the namespace `-` means any namespace."""
    found = [
        each
        for each in associations
        if all(
            each.get(name) == value or (name == "resourceNamespace" and value == ANY_NAMESPACE) for name, value in wanted.items()
        )
        and (not association_types or each.get("associationType") in association_types)
        and (lifecycle is None or each.get("lifecycle") == lifecycle.upper())
    ]
    order = ("resourceName", "resourceNamespace", "resourceType", "associationType", "subject")
    return sorted(found, key=lambda each: [str(each.get(name)) for name in order])


def put(state: State, parser: Parser, command: PutAssociations) -> Outcome:
    """Change the associations of one resource, all or none, and register the schemas in the request."""
    resource = resource_from(command.request, dry_run=command.dry_run)
    changes = changes_from(command.request, command.operation, command.context)
    current = {str(each["associationType"]): each for each in _of_resource(state, resource)}
    written: list[Record] = []
    shown: dict[str, Json] = {}
    reserved: dict[str, int] = {}
    for change in changes:
        before = current.get(change.kind)
        if change.operation == DELETE:
            if before is None:
                raise errors.association_not_found(resource.name)
            written += _removed(state, before, cascade=False)
            del current[change.kind]
            shown.pop(change.kind, None)
            continue
        value, schema, registered = _one(state, parser, resource, change, before, reserved)
        written += [*registered, *([] if value == before else [_record(value)])]
        current[change.kind] = value
        info = {name: value[name] for name in SHOWN}
        shown[change.kind] = info if schema is None else {**info, "schema": schema}
    if command.dry_run:
        return Outcome((), resource.fields)
    return Outcome(tuple(written), {**resource.fields, "associations": list(shown.values())})


def delete(state: State, command: DeleteAssociations) -> Outcome:
    """Remove the associations of a resource."""
    found = meant(state, command)
    if not found:
        raise errors.association_not_found(command.resource_id)
    written = [record for value in found for record in _removed(state, value, cascade=command.cascade)]
    return Outcome(() if command.dry_run else tuple(written), None)


def meant(state: State, command: DeleteAssociations) -> list[Json]:
    """The associations that a command removes."""
    wanted = {"resourceId": command.resource_id, "resourceType": command.resource_type or "topic"}
    return selected(state.associations.values(), wanted, command.association_types)


def touched(state: State, command: PutAssociations) -> list[tuple[str, Json | None]]:
    """The subjects of the associations that a command changes, each with its schema in the request. Raises HttpError 42212."""
    resource = resource_from(command.request, dry_run=command.dry_run)
    current = {str(each["associationType"]): each for each in _of_resource(state, resource)}
    found: list[tuple[str, Json | None]] = []
    for change in changes_from(command.request, command.operation, command.context):
        before = current.get(change.kind)
        if change.operation != DELETE:
            found.append((str(_value(resource, change, before)["subject"]), change.schema))
        elif before is not None:
            found.append((str(before["subject"]), None))
    return found


def _of_resource(state: State, resource: Resource) -> list[Json]:
    if resource.id is not None:
        return selected(state.associations.values(), {"resourceId": resource.id, "resourceType": resource.type})
    wanted = {"resourceName": resource.name, "resourceNamespace": resource.namespace, "resourceType": resource.type}
    return selected(state.associations.values(), wanted)


def _one(
    state: State, parser: Parser, resource: Resource, change: Change, before: Json | None, reserved: dict[str, int]
) -> tuple[Json, Json | None, list[Record]]:
    """The association after a step, the schema in it, and the records of that schema; adds the ids that it uses to `reserved`."""
    value = _value(resource, change, before)
    subject, is_frozen = str(value["subject"]), bool(value["frozen"])
    if before is not None:
        _check_change(change, before, value)
    elif is_frozen and (change.schema is None or state.has(subject, deleted=True)):
        detail = "a frozen association needs a schema, and a subject without one"
        raise errors.invalid_association("frozen", detail)
    if change.schema is not None and change.operation == CREATE and not is_frozen:
        raise errors.invalid_association("schema", "can only be provided for a frozen association")
    _check_others(state, value)
    if change.schema is None:
        if not state.has(subject):
            raise HttpError(409, f"No active (non-deleted) version exists for subject '{subject}'", 40907)
        return value, None, []
    draft = draft_from(change.schema)
    outcome = registration.register(state, parser, Register(subject, draft, normalize=change.normalize), reserved)
    if outcome.new_id >= 0:
        reserved[outcome.context] = outcome.new_id
    return value, outcome.answer, list(outcome.records)


def _value(resource: Resource, change: Change, before: Json | None) -> Json:
    old = before or {}
    subject = change.subject or old.get("subject") or names.context_prefix(resource.namespace) + f"{resource.name}-{change.kind}"
    frozen = bool(old.get("frozen", False) if change.frozen is None else change.frozen)
    lifecycle = change.lifecycle or old.get("lifecycle") or (STRONG if frozen or change.schema is not None else WEAK)
    info = {"subject": subject, "associationType": change.kind, "lifecycle": lifecycle, "frozen": frozen}
    value = {**resource.fields, **info}
    value["guid"] = old.get("guid") or str(UUID(bytes=md5(repr(value).encode(), usedforsecurity=False).digest()))
    times: Json = {name: old[name] for name in ("createTs", "updateTs") if name in old}
    return {**value, **times}


def _check_change(change: Change, before: Json, value: Json) -> None:
    same = all(before[name] == value[name] for name in SHOWN)
    if before.get("frozen") and (not same or change.schema is not None):
        raise HttpError(409, _frozen(before), 40908)
    if before["subject"] != value["subject"] or (change.operation == CREATE and not same):
        text = f"An association of type '{value['associationType']}' already exists for resource '{value['resourceName']}'"
        raise HttpError(409, text, 40903)
    if before["frozen"] != value["frozen"]:
        raise errors.invalid_association("frozen", "cannot be changed")


def _check_others(state: State, value: Json) -> None:
    """Check that a subject has one strong association, or only weak ones."""
    for other in selected(state.associations.values(), {"subject": value["subject"]}):
        if (other["resourceName"], other["resourceNamespace"], other["associationType"]) == (
            value["resourceName"],
            value["resourceNamespace"],
            value["associationType"],
        ):
            continue
        if other["lifecycle"] == STRONG:
            raise HttpError(409, f"A strong association already exists for subject '{value['subject']}'", 40905)
        if value["lifecycle"] == STRONG:
            raise HttpError(409, f"An association already exists for subject '{value['subject']}'", 40904)


def _removed(state: State, value: Json, *, cascade: bool) -> list[Record]:
    """The records that remove an association, and with `cascade` also the subject that it owns."""
    if value.get("frozen") and not cascade:
        raise HttpError(409, _frozen(value), 40908)
    written = [_record(value, delete=True)]
    if cascade and value.get("lifecycle") == STRONG:
        subject = str(value["subject"])
        registration.check_writable(state, subject)
        for version in state.versions(subject, deleted=True):
            if state.users(subject, version.version):
                raise errors.reference_exists(subject, version.version)
            written.append(records.schema_tombstone(subject, version.version))
    return written


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
    kept = {name: field for name, field in value.items() if name != "updateTs"}  # the record's timestamp already gives updateTs
    return Record(key, None if delete else {"tenant": "default", **kept})
