"""Requests about plug-ins, checks of configs, and levels of loggers."""

from __future__ import annotations

from barnabas.connect.herder import errors
from barnabas.connect.herder.validation import CLASS, definitions_shown, plugins_shown
from barnabas.connect.http.exchange import answer, body_of, config_of, flag, nothing
from barnabas.connect.http.surface import Surface
from barnabas.connect.levels import LEVELS
from barnabas.connect.plugin import Kind, UnknownPlugin, find
from barnabas.web.routing import HttpError, Request, Response


async def list_all(surface: Surface, request: Request) -> Response:
    """GET /connector-plugins"""
    only = flag(request.query, "connectorsOnly", default=True)
    return answer(await surface.run(lambda: plugins_shown(connectors_only=only)))


async def definitions(surface: Surface, request: Request, name: str) -> Response:
    """GET /connector-plugins/{}/config"""
    version = request.query.get("version")
    return answer(await surface.run(lambda: definitions_shown(name, version)))


async def validate(surface: Surface, request: Request, name: str) -> Response:
    """PUT /connector-plugins/{}/config/validate"""
    config = config_of(body_of(request))
    cls = config.get(CLASS)
    if cls is not None and not _is_same(cls, name):
        raise errors.bad(f"Included connector type {cls} does not match request type {name}")
    if cls is None:
        shown = "{" + (f"name={config['name']}" if config.get("name") else "") + "}"
        raise errors.unusable(f"Connector config {shown} contains no connector type")
    return answer(await surface.run(lambda: surface.worker.validate(config)))


def _is_same(one: str, other: str) -> bool:
    if one == other or one.rpartition(".")[2] in (other, f"{other}Connector"):
        return True
    try:
        kinds = (Kind.SOURCE, Kind.SINK)
        return find(one, kinds).name == find(other, kinds).name
    except UnknownPlugin:
        return False


async def loggers(surface: Surface, _request: Request) -> Response:
    """GET /admin/loggers"""
    return answer(surface.levels.all())


async def logger(surface: Surface, _request: Request, name: str) -> Response:
    """GET /admin/loggers/{}"""
    found = surface.levels.one(name)
    if found is None:
        raise HttpError(404, f"Logger {name} not found.")
    return answer(found)


async def set_level(surface: Surface, request: Request, name: str) -> Response:
    """PUT /admin/loggers/{}"""
    body = body_of(request)
    level = body.get("level") if isinstance(body, dict) else None
    if level is None:
        raise errors.bad("Desired 'level' parameter was not specified in request.")
    if str(level).upper() not in LEVELS:
        raise HttpError(404, f"invalid log level '{level}'.")
    if request.query.get("scope", "worker").lower() == "cluster":
        await surface.run(lambda: surface.worker.set_level(name, str(level).upper()))
        return nothing(204)
    return answer(surface.levels.set(name, str(level).upper()))
