"""Routes below `/associations`."""

from __future__ import annotations

from barnabas import limits
from barnabas.registry.core import associations, errors, names
from barnabas.registry.core.commands import DeleteAssociations, PutAssociations
from barnabas.registry.core.drafts import draft_from
from barnabas.registry.core.entities import Json
from barnabas.registry.http.exchange import answer, body_of, flag, many, page
from barnabas.registry.http.rights import DELETE, WRITE
from barnabas.registry.http.surface import Surface, Table
from barnabas.web.routing import HttpError, Request, Response


def _shown(surface: Surface, request: Request, wanted: Json) -> Response:
    wanted = {**wanted, "resourceType": request.query.get("resourceType") or "topic"}
    found = associations.selected(surface.state, wanted, many(request, "associationType"), request.query.get("lifecycle"))
    may_read = surface.readable(request)
    items = [{key: value for key, value in each.items() if key != "tenant"} for each in found if may_read(each["subject"])]
    return answer(request, page(request, items, limits.MAX_LISTED_SCHEMAS))


async def by_subject(surface: Surface, request: Request, context: str, text: str) -> Response:
    return _shown(surface, request, {"subject": surface.subject(context, text)})


async def by_name(surface: Surface, request: Request, context: str, namespace: str, name: str) -> Response:
    return _shown(surface, request, {"resourceNamespace": namespace, "resourceName": name})


async def by_resource(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    return _shown(surface, request, {"resourceId": resource_id})


async def create(surface: Surface, request: Request, context: str) -> Response:
    return await _put(surface, request, context, body_of(request), update=False)


async def update(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    body = body_of(request)
    if body.setdefault("resourceId", resource_id) != resource_id:
        detail = "Resource ID in the path parameter does not match the resource ID in the request body"
        raise errors.invalid_association("resourceId", detail)
    return await _put(surface, request, context, body, update=True)


async def _put(surface: Surface, request: Request, context: str, body: Json, *, update: bool) -> Response:
    given = request.query.get("context", "")
    prefix = context or (names.context_prefix(given) if given else "")
    _permit(surface, request, prefix, body)
    return await surface.write(request, PutAssociations(prefix, body, update, flag(request, "dryRun")))


def _permit(surface: Surface, request: Request, prefix: str, body: Json) -> None:
    """Raises HttpError 40301 if the caller may not write to the subjects that a request associates."""
    items = body.get("associations")
    if surface.rights is None or not isinstance(items, list):
        return
    for item in filter(lambda each: isinstance(each, dict), items):
        subject = associations.subject_of(surface.state, prefix, body, item)
        surface.permit(request, WRITE, subject)
        if isinstance(item.get("schema"), dict):
            surface.permit_references(request, subject, draft_from(item["schema"]))


async def delete(surface: Surface, request: Request, context: str, resource_id: str) -> Response:
    kinds = tuple(many(request, "associationType"))
    command = DeleteAssociations(resource_id, request.query.get("resourceType"), kinds, flag(request, "cascadeLifecycle"))
    for each in associations.meant(surface.state, command):
        surface.permit(request, DELETE if command.cascade else WRITE, each["subject"])
    await surface.backend.write(request, command)
    return Response(b"", 204)


async def batch_get(surface: Surface, request: Request, context: str) -> Response:
    results: list[Json] = []
    for item in _requests(request):
        wanted = {name: item[name] for name in associations.RESOURCE_FIELDS if item.get(name)}
        wanted.setdefault("resourceType", "topic")
        may_read = surface.readable(request)
        found = associations.selected(surface.state, wanted, item.get("associationTypes") or ())
        found = [each for each in found if may_read(each["subject"])]
        head = {name: found[0].get(name) for name in associations.RESOURCE_FIELDS} if found else wanted
        results.append({"result": {**head, "associations": found}})
    return answer(request, {"results": results}, 207)


async def batch_change(surface: Surface, request: Request, context: str) -> Response:
    results: list[Json] = []
    for item in _requests(request):
        try:
            _permit(surface, request, context, item)
            value = await surface.backend.write(
                request, PutAssociations(context, item, update=True, dry_run=flag(request, "dryRun"))
            )
            results.append({"result": value})
        except HttpError as error:
            results.append({"error": {"error_code": error.code, "message": error.message}})
    return answer(request, {"results": results}, 207)


def _requests(request: Request) -> list[Json]:
    items = body_of(request).get("requests")
    if not isinstance(items, list) or not items:
        raise errors.invalid_association("requests", "cannot be null or empty")
    return [item for item in items if isinstance(item, dict)]


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
