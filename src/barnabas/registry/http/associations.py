"""Routes below `/associations`."""

from __future__ import annotations

from msgspec import Struct

from barnabas import limits
from barnabas.registry.core import associations, errors
from barnabas.registry.core.association_requests import CREATE, TOPIC, UPSERT
from barnabas.registry.core.commands import DeleteAssociations, PutAssociations
from barnabas.registry.core.drafts import draft_from
from barnabas.registry.core.entities import Json, version_fields
from barnabas.registry.http.bodies import AssociationBatchQuery, AssociationBatchRequest, AssociationRequest
from barnabas.registry.http.exchange import answer, body_of, flag, many, page
from barnabas.registry.http.rights import DELETE, WRITE
from barnabas.registry.http.surface import Surface, Table, checked_context
from barnabas.web.routing import HttpError, Request, Response

RESOURCE_FIELDS = ("resourceName", "resourceNamespace", "resourceId", "resourceType")


def _shown(surface: Surface, request: Request, wanted: Json) -> Response:
    wanted = {**wanted, "resourceType": request.query.get("resourceType") or "topic"}
    known, kinds = surface.state.associations.values(), many(request, "associationType")
    may_read = surface.readable(request)
    found = associations.selected(known, wanted, kinds, request.query.get("lifecycle"))
    items = [_fields(each) for each in found if may_read(each["subject"])]
    return answer(request, page(request, items, limits.MAX_LISTED_SCHEMAS))


def _fields(association: Json) -> Json:
    return {key: value for key, value in association.items() if key != "tenant"}


async def by_subject(surface: Surface, request: Request, context: str, text: str) -> Response:
    return _shown(surface, request, {"subject": surface.subject(context, text)})


async def by_name(surface: Surface, request: Request, context: str, namespace: str, name: str) -> Response:
    return _shown(surface, request, {"resourceNamespace": namespace, "resourceName": name})


async def by_resource(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    return _shown(surface, request, {"resourceId": resource_id})


async def create(surface: Surface, request: Request, context: str) -> Response:
    command = _command(surface, request, context, body_of(request, AssociationRequest), CREATE)
    return await surface.write(request, command)


async def update(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    body = body_of(request, AssociationRequest)
    if body.get("resourceId") is None:
        body["resourceId"] = resource_id
    elif body["resourceId"] != resource_id:
        detail = "Resource ID in the path parameter does not match the resource ID in the request body"
        raise errors.invalid_association("resourceId", detail)
    return await surface.write(request, _command(surface, request, context, body, UPSERT))


def _command(surface: Surface, request: Request, context: str, body: Json, operation: str) -> PutAssociations:
    """The command of a request. Raises HttpError 40301 if the caller may not write to the subjects in the request."""
    given = request.query.get("context", "")
    prefix = context or (checked_context(given) if given else "")
    command = PutAssociations(prefix, body, operation, flag(request, "dryRun"))
    for subject, schema in associations.touched(surface.state, command) if surface.rights is not None else ():
        surface.permit(request, WRITE, subject)
        if schema is not None:
            surface.permit_references(request, subject, draft_from(schema))
    return command


async def delete(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    kinds = tuple(many(request, "associationType"))
    kind, cascade = request.query.get("resourceType"), flag(request, "cascadeLifecycle")
    command = DeleteAssociations(resource_id, kind, kinds, cascade, flag(request, "dryRun"))
    for each in associations.meant(surface.state, command):
        surface.permit(request, DELETE if cascade else WRITE, each["subject"])
    await surface.backend.write(request, command)
    return Response(b"", 204)


async def batch_get(surface: Surface, request: Request, context: str) -> Response:
    results: list[Json] = []
    may_read = surface.readable(request)
    for item in _requests(request, AssociationBatchQuery):
        wanted = {name: item[name] for name in RESOURCE_FIELDS if item.get(name)}
        wanted.setdefault("resourceType", TOPIC)
        known, lifecycle = surface.state.associations.values(), item.get("lifecycle")
        found = associations.selected(known, wanted, item.get("associationTypes") or (), lifecycle and str(lifecycle))
        found = [each for each in found if may_read(each["subject"])]
        result = {name: found[0].get(name) for name in RESOURCE_FIELDS} if found else wanted
        if found:
            result["associations"] = [_info(surface, request, each) for each in found]
        results.append({"result": result})
    return answer(request, {"results": results}, 207)


def _info(surface: Surface, request: Request, association: Json) -> Json:
    info: Json = {name: association[name] for name in associations.SHOWN}
    latest = surface.state.version(association["subject"], -1) if flag(request, "includeSchemas") else None
    return info if latest is None else {**info, "schema": version_fields(latest)}


async def batch_change(surface: Surface, request: Request, context: str) -> Response:
    results: list[Json] = []
    for item in _requests(request, AssociationBatchRequest):
        try:
            command = _command(surface, request, context, item, "")
            results.append({"result": await surface.backend.write(request, command)})
        except HttpError as error:
            results.append({"error": {"error_code": error.code, "message": error.message}})
    return answer(request, {"results": results}, 207)


def _requests(request: Request, kind: type[Struct]) -> list[Json]:
    items: list[Json] | None = body_of(request, kind).get("requests")
    if not items:
        raise errors.invalid_association("requests", "cannot be null or empty")
    return items


TABLE: Table = (
    ("GET", "/associations/subjects/{}", by_subject),
    ("GET", "/associations/resources/{}/{}", by_name),
    ("GET", "/associations/resources/{}", by_resource),
    ("POST", "/associations", create),
    ("PUT", "/associations/resources/{}", update),
    ("DELETE", "/associations/resources/{}", delete),
    ("POST", "/associations:batchGet", batch_get),
    ("POST", "/associations:batchMutate", batch_change),
)
