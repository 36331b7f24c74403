"""The router of the interface."""

from __future__ import annotations

import asyncio

from barnabas.registry.http.all_tables import DOCUMENT, TABLES
from barnabas.registry.http.surface import Surface, add_routes
from barnabas.web.routing import Request, Response, Router


def router_for(surface: Surface) -> Router:
    """The router of a registry."""
    router = Router()
    for table in TABLES:
        add_routes(router, surface, table)
    router.add("GET", DOCUMENT, _document)
    return router


async def _document(request: Request) -> Response:
    """The OpenAPI document. Requests for it are rare, so its modules are loaded here, in a thread that blocks no other
    request."""

    def made() -> Response:
        from barnabas.registry.http import openapi

        return openapi.answer()

    return await asyncio.to_thread(made)
