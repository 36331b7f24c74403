"""Requests that change associations: the checks of a request that do not depend on the state."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.registry.core import errors, names
from barnabas.registry.core.entities import Json

TOPIC = "topic"
CREATE, UPSERT, DELETE = "CREATE", "UPSERT", "DELETE"
OPERATIONS = frozenset({CREATE, UPSERT, DELETE})
STRONG, WEAK = "STRONG", "WEAK"
TYPES = frozenset({"key", "value"})


class Resource(NamedTuple):
    """The resource that a subject describes. Without an id only a dry run is possible."""

    name: str
    namespace: str
    id: str | None
    type: str

    @property
    def fields(self) -> Json:
        """The fields of the resource in answers and records."""
        fields = {
            "resourceName": self.name,
            "resourceNamespace": self.namespace,
            "resourceId": self.id,
            "resourceType": self.type,
        }
        return {name: value for name, value in fields.items() if value is not None}


class Change(NamedTuple):
    """One step of a request; a field is None if the request does not have it."""

    operation: str
    kind: str
    subject: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Json | None = None
    normalize: bool = False


def resource_from(request: Json, *, dry_run: bool) -> Resource:
    """The resource of a request. Raises HttpError 42212."""
    values: dict[str, str | None] = {}
    for name in ("resourceName", "resourceNamespace", "resourceId"):
        value = request.get(name)
        if (not isinstance(value, str) or not value) and not (dry_run and name == "resourceId" and not value):
            raise errors.invalid_association(name, "cannot be null or empty")
        values[name] = value or None
    kind = request.get("resourceType") or TOPIC
    if kind != TOPIC:
        raise errors.invalid_association("resourceType", f"must be '{TOPIC}'")
    return Resource(str(values["resourceName"]), str(values["resourceNamespace"]), values["resourceId"], kind)


def changes_from(request: Json, operation: str, context: str) -> list[Change]:
    """The steps of a request.

    Args:
        operation: the operation of all steps; "" if each step has its own in `opType`.
        context: the context prefix for subjects without a context.

    Raises:
        HttpError: 42212.
    """
    items = request.get("associations")
    if not isinstance(items, list) or not items:
        raise errors.invalid_association("associations", "cannot be null or empty")
    changes = [_change(item if isinstance(item, dict) else {}, operation, context) for item in items]
    if len({(each.operation == DELETE, each.kind) for each in changes}) < len(changes):
        raise errors.invalid_association("associationType", "cannot be duplicated")
    if len({each.frozen for each in changes} - {None}) > 1:
        raise errors.invalid_association("frozen", "all associations for a resource must be consistently frozen or non-frozen")
    return changes


def _change(item: Json, operation: str, context: str) -> Change:
    operation = operation or str(item.get("opType") or UPSERT).upper()
    if operation not in OPERATIONS:
        raise errors.invalid_association("opType", f"must be one of {', '.join(sorted(OPERATIONS))}")
    kind = str(item.get("associationType") or "value")
    if kind not in TYPES:
        raise errors.invalid_association("associationType", "must be either 'key' or 'value'")
    if operation == DELETE:
        return Change(operation, kind)
    subject = item.get("subject")
    if subject is not None:
        subject = names.in_context_of(context, str(subject))
        if not names.is_valid(subject):
            raise errors.invalid_association("subject", f"'{subject}' is not valid")
    lifecycle, frozen, schema = _lifecycle(item), item.get("frozen"), item.get("schema")
    frozen = None if frozen is None else frozen is True
    if isinstance(schema, str):
        schema = {"schema": schema}
    if schema is not None and not isinstance(schema, dict):
        raise errors.invalid_association("schema", "must be an object")
    if lifecycle is None and operation == CREATE:
        lifecycle = STRONG if frozen else WEAK
    if lifecycle == WEAK and schema is not None:
        raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
    if lifecycle == WEAK and frozen:
        raise errors.invalid_association("frozen", "association with lifecycle of WEAK cannot be frozen")
    return Change(operation, kind, subject, lifecycle, frozen, schema, item.get("normalize") is True)


def _lifecycle(item: Json) -> str | None:
    given = item.get("lifecycle")
    if given is None:
        return None
    if str(given).upper() not in {STRONG, WEAK}:
        raise errors.invalid_association("lifecycle", f"must be either '{STRONG}' or '{WEAK}'")
    return str(given).upper()
