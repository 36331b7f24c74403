"""Routes of `/config`, `/mode`, `/contexts`, and those with facts about the registry itself."""

from __future__ import annotations

from importlib.metadata import version

from barnabas import limits
from barnabas.registry.core import errors, names
from barnabas.registry.core.commands import DeleteConfig, DeleteContext, DeleteMode, SetConfig, SetMode
from barnabas.registry.http.bodies import ConfigRequest, ModeRequest
from barnabas.registry.http.exchange import answer, body_of, flag, page
from barnabas.registry.http.rights import DELETE
from barnabas.registry.http.surface import Surface, Table, checked_context
from barnabas.web.routing import Request, Response

INTERFACE_VERSION = "8.3.0"  # version of Confluent's interface; clients check it


def _scope(surface: Surface, context: str, text: str = "") -> str | None:
    """The subject or context of a setting; None for everything."""
    return surface.subject(context, text, alias=False) or None


async def get_config(surface: Surface, request: Request, context: str, text: str = "") -> Response:
    scope = _scope(surface, context, text)
    if flag(request, "defaultToGlobal"):
        return answer(request, surface.state.config_in_scope(scope))
    found = surface.state.config(scope)
    if found is None:
        raise errors.no_subject_config(scope or "")
    return answer(request, found)


async def put_config(surface: Surface, request: Request, context: str, text: str = "") -> Response:
    body = body_of(request, ConfigRequest)
    return await surface.write(request, SetConfig(_scope(surface, context, text), body))


async def delete_config(surface: Surface, request: Request, context: str, text: str = "") -> Response:
    return await surface.write(request, DeleteConfig(_scope(surface, context, text)))


async def get_mode(surface: Surface, request: Request, context: str, text: str = "") -> Response:
    scope = _scope(surface, context, text)
    if flag(request, "defaultToGlobal"):
        return answer(request, {"mode": surface.state.mode_in_scope(scope)})
    found = surface.state.mode(scope)
    if found is None:
        raise errors.no_subject_mode(scope or "")
    return answer(request, {"mode": found})


async def put_mode(surface: Surface, request: Request, context: str, text: str = "") -> Response:
    body = body_of(request, ModeRequest)
    mode = body.get("mode")
    if "mode" not in body or not isinstance(mode, str | None):
        raise errors.invalid_mode()
    return await surface.write(request, SetMode(_scope(surface, context, text), mode, flag(request, "force")))


async def delete_mode(surface: Surface, request: Request, context: str, text: str = "") -> Response:
    return await surface.write(request, DeleteMode(_scope(surface, context, text), flag(request, "recursive")))


async def list_contexts(surface: Surface, request: Request, context: str) -> Response:
    prefix = request.query.get("contextPrefix", "")
    known = surface.contexts(request)
    found = [each for each in (names.DEFAULT_CONTEXT, *sorted(known)) if each.startswith(prefix)]
    return answer(request, page(request, found, limits.MAX_LISTED_SUBJECTS))


async def delete_context(surface: Surface, request: Request, context: str, text: str) -> Response:
    prefix = checked_context(text)
    surface.permit(request, DELETE, prefix)
    await surface.backend.write(request, DeleteContext(prefix))
    return Response(b"", 204)


async def root(surface: Surface, request: Request, context: str) -> Response:
    return answer(request, {})


async def metadata_id(surface: Surface, request: Request, context: str) -> Response:
    clusters = {"kafka-cluster": await surface.backend.cluster_id(), "schema-registry-cluster": surface.backend.group()}
    return answer(request, {"scope": {"path": [], "clusters": clusters}, "id": ""})


async def metadata_version(surface: Surface, request: Request, context: str) -> Response:
    return answer(request, {"version": INTERFACE_VERSION, "commitId": f"barnabas-{version('barnabas')}"})


TABLE: Table = (
    ("GET", "/", root),
    ("POST", "/", root),
    ("GET", "/config", get_config),
    ("PUT", "/config", put_config),
    ("DELETE", "/config", delete_config),
    ("GET", "/config/{}", get_config),
    ("PUT", "/config/{}", put_config),
    ("DELETE", "/config/{}", delete_config),
    ("GET", "/mode", get_mode),
    ("PUT", "/mode", put_mode),
    ("DELETE", "/mode", delete_mode),
    ("GET", "/mode/{}", get_mode),
    ("PUT", "/mode/{}", put_mode),
    ("DELETE", "/mode/{}", delete_mode),
    ("GET", "/contexts", list_contexts),
    ("DELETE", "/contexts/{}", delete_context),
    ("GET", "/v1/metadata/id", metadata_id),
    ("GET", "/v1/metadata/version", metadata_version),
)
