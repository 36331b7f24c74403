"""All routes of the interface."""

from __future__ import annotations

import asyncio

from barnabas.registry.http import associations, schemas, settings, subjects
from barnabas.registry.http.surface import Surface, add_routes
from barnabas.web.routing import Request, Response, Router

TABLES = (subjects.TABLE, schemas.TABLE, settings.TABLE, associations.TABLE)
DOCUMENT = "/openapi.json"


def router_for(surface: Surface) -> Router:
    """The router of a registry."""
    router = Router()
    for table in TABLES:
        add_routes(router, surface, table)
    router.add("GET", DOCUMENT, _document)
    return router


async def _document(request: Request) -> Response:
    """The OpenAPI document. Few ask for it, so its modules are loaded then, and making it does not hold up others."""

    def made() -> Response:
        from barnabas.registry.http import openapi

        return openapi.answer()

    return await asyncio.to_thread(made)
