"""All routes of the interface."""

from __future__ import annotations

from barnabas.registry.http import associations, schemas, settings, subjects
from barnabas.registry.http.surface import Surface, add_routes
from barnabas.web.routing import Router


def router_for(surface: Surface) -> Router:
    """The router of a registry."""
    router = Router()
    for table in (subjects.TABLE, schemas.TABLE, settings.TABLE, associations.TABLE):
        add_routes(router, surface, table)
    return router
