"""Routes below `/associations`."""

from __future__ import annotations

from msgspec import Struct

from barnabas import limits
from barnabas.registry.core import associations, errors
from barnabas.registry.core.commands import DeleteAssociations, PutAssociations
from barnabas.registry.core.entities import Json
from barnabas.registry.http.bodies import AssociationBatchQuery, AssociationBatchRequest, AssociationRequest
from barnabas.registry.http.exchange import answer, body_of, flag, many, page
from barnabas.registry.http.surface import Surface, Table, checked_context
from barnabas.web.routing import HttpError, Request, Response


def _shown(surface: Surface, request: Request, wanted: Json) -> Response:
    wanted = {**wanted, "resourceType": request.query.get("resourceType") or "topic"}
    found = associations.selected(surface.state, wanted, many(request, "associationType"), request.query.get("lifecycle"))
    return answer(request, page(request, [_fields(each) for each in found], limits.MAX_LISTED_SCHEMAS))


def _fields(association: Json) -> Json:
    return {key: value for key, value in association.items() if key != "tenant"}


async def by_subject(surface: Surface, request: Request, context: str, text: str) -> Response:
    return _shown(surface, request, {"subject": surface.subject(context, text)})


async def by_name(surface: Surface, request: Request, context: str, namespace: str, name: str) -> Response:
    return _shown(surface, request, {"resourceNamespace": namespace, "resourceName": name})


async def by_resource(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    return _shown(surface, request, {"resourceId": resource_id})


async def create(surface: Surface, request: Request, context: str) -> Response:
    return await _put(surface, request, context, body_of(request, AssociationRequest), update=False)


async def update(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    body = body_of(request, AssociationRequest)
    if body.setdefault("resourceId", resource_id) != resource_id:
        detail = "Resource ID in the path parameter does not match the resource ID in the request body"
        raise errors.invalid_association("resourceId", detail)
    return await _put(surface, request, context, body, update=True)


async def _put(surface: Surface, request: Request, context: str, body: Json, *, update: bool) -> Response:
    given = request.query.get("context", "")
    prefix = context or (checked_context(given) if given else "")
    return await surface.write(request, PutAssociations(prefix, body, update, flag(request, "dryRun")))


async def delete(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    kinds = tuple(many(request, "associationType"))
    command = DeleteAssociations(resource_id, request.query.get("resourceType"), kinds, flag(request, "cascadeLifecycle"))
    await surface.backend.write(request, command)
    return Response(b"", 204)


async def batch_get(surface: Surface, request: Request, context: str) -> Response:
    results: list[Json] = []
    for item in _requests(request, AssociationBatchQuery):
        wanted = {name: item[name] for name in associations.RESOURCE_FIELDS if item.get(name)}
        wanted.setdefault("resourceType", "topic")
        found = associations.selected(surface.state, wanted, item.get("associationTypes") or ())
        head = {name: found[0].get(name) for name in associations.RESOURCE_FIELDS} if found else wanted
        results.append({"result": {**head, "associations": [_fields(each) for each in found]}})
    return answer(request, {"results": results}, 207)


async def batch_change(surface: Surface, request: Request, context: str) -> Response:
    results: list[Json] = []
    for item in _requests(request, AssociationBatchRequest):
        try:
            value = await surface.backend.write(
                request, PutAssociations(context, item, update=True, dry_run=flag(request, "dryRun"))
            )
            results.append({"result": value})
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
