"""Requests about connectors and their configs."""

from __future__ import annotations

import json
from urllib.parse import quote

from barnabas.connect.http.exchange import answer, body_of, config_of, new_connector, nothing
from barnabas.connect.http.surface import Surface
from barnabas.web.routing import Request, Response

MOST_WARNINGS, MOST_CHARACTERS = 50, 300  # of headers


async def root(surface: Surface, _request: Request) -> Response:
    """GET /"""
    return answer(await surface.run(surface.worker.root))


async def health(surface: Surface, _request: Request) -> Response:
    """GET /health"""
    await surface.run(surface.worker.names)
    return answer({"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."})


async def list_all(surface: Surface, request: Request) -> Response:
    """GET /connectors"""
    expand = {value for name, value in request.queries if name == "expand"}
    if expand:
        return answer(await surface.run(lambda: surface.worker.expanded(expand)))
    return answer(await surface.run(surface.worker.names))


async def create(surface: Surface, request: Request) -> Response:
    """POST /connectors"""
    name, config, target = new_connector(body_of(request))
    info = await surface.run(lambda: surface.worker.create(name, config, target))
    return answer(info, 201, (*_location(surface, name), *await _warnings(surface, name)))


async def get(surface: Surface, _request: Request, name: str) -> Response:
    """GET /connectors/{}"""
    return answer(await surface.run(lambda: surface.worker.info(name)))


async def get_config(surface: Surface, _request: Request, name: str) -> Response:
    """GET /connectors/{}/config"""
    return answer(await surface.run(lambda: surface.worker.config(name)))


async def put_config(surface: Surface, request: Request, name: str) -> Response:
    """PUT /connectors/{}/config"""
    config = config_of(body_of(request))
    is_new, info = await surface.run(lambda: surface.worker.put(name, config))
    headers = await _warnings(surface, name)
    return answer(info, 201, (*_location(surface, name), *headers)) if is_new else answer(info, headers=headers)


async def patch_config(surface: Surface, request: Request, name: str) -> Response:
    """PATCH /connectors/{}/config"""
    patch = config_of(body_of(request))
    info = await surface.run(lambda: surface.worker.patch(name, patch))
    return answer(info, headers=await _warnings(surface, name))


async def delete(surface: Surface, _request: Request, name: str) -> Response:
    """DELETE /connectors/{}"""
    await surface.run(lambda: surface.worker.delete(name))
    return nothing(204)


async def _warnings(surface: Surface, name: str) -> tuple[tuple[bytes, bytes], ...]:
    """A header (RFC 7234, 5.5) for each key of the config that does nothing. More than some tell nobody more."""
    found = await surface.run(lambda: surface.worker.unused(name))
    texts = [f"{key} has no effect: {reason}" for key, reason in found.items()][:MOST_WARNINGS]
    return tuple((b"warning", f"299 barnabas {json.dumps(text[:MOST_CHARACTERS])}".encode()) for text in texts)


def _location(surface: Surface, name: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"location", f"{surface.url}/connectors/{quote(name, safe='')}".encode()),)
