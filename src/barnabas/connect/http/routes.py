"""The table of routes, with the right that each needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from barnabas.connect.http import catalogue, connectors, lifecycle
from barnabas.connect.http.surface import Surface
from barnabas.security.acls import Operation
from barnabas.web.routing import Request, Response, Router

Handler = Callable[..., Awaitable[Response]]  # takes the surface, the request, the segments of the path
READ, WRITE = Operation.READ, Operation.WRITE
ONE = "/connectors/{}"
ROUTES: tuple[tuple[str, str, Handler, Operation], ...] = (
    ("GET", "/", connectors.root, READ),
    ("GET", "/health", connectors.health, READ),
    ("GET", "/connectors", connectors.list_all, READ),
    ("POST", "/connectors", connectors.create, WRITE),
    ("GET", ONE, connectors.get, READ),
    ("DELETE", ONE, connectors.delete, WRITE),
    ("GET", f"{ONE}/config", connectors.get_config, READ),
    ("PUT", f"{ONE}/config", connectors.put_config, WRITE),
    ("PATCH", f"{ONE}/config", connectors.patch_config, WRITE),
    ("GET", f"{ONE}/status", lifecycle.status, READ),
    ("PUT", f"{ONE}/pause", lifecycle.pause, WRITE),
    ("PUT", f"{ONE}/resume", lifecycle.resume, WRITE),
    ("PUT", f"{ONE}/stop", lifecycle.stop, WRITE),
    ("POST", f"{ONE}/restart", lifecycle.restart, WRITE),
    ("GET", f"{ONE}/tasks", lifecycle.tasks, READ),
    ("GET", f"{ONE}/tasks/{{}}/status", lifecycle.task_status, READ),
    ("POST", f"{ONE}/tasks/{{}}/restart", lifecycle.restart_task, WRITE),
    ("GET", f"{ONE}/topics", lifecycle.topics, READ),
    ("PUT", f"{ONE}/topics/reset", lifecycle.reset_topics, WRITE),
    ("GET", f"{ONE}/offsets", lifecycle.offsets, READ),
    ("PATCH", f"{ONE}/offsets", lifecycle.alter_offsets, WRITE),
    ("DELETE", f"{ONE}/offsets", lifecycle.reset_offsets, WRITE),
    ("GET", "/connector-plugins", catalogue.list_all, READ),
    ("GET", "/connector-plugins/{}/config", catalogue.definitions, READ),
    ("PUT", "/connector-plugins/{}/config/validate", catalogue.validate, READ),
    ("GET", "/admin/loggers", catalogue.loggers, READ),
    ("GET", "/admin/loggers/{}", catalogue.logger, READ),
    ("PUT", "/admin/loggers/{}", catalogue.set_level, WRITE),
)


def add_routes(router: Router, surface: Surface) -> None:
    """Add all routes."""
    for method, pattern, handler, operation in ROUTES:
        router.add(method, pattern, _guarded(surface, handler, operation))


def _guarded(surface: Surface, handler: Handler, operation: Operation) -> Handler:
    async def handle(request: Request, *segments: str) -> Response:
        await surface.check(request.caller, operation)
        return await handler(surface, request, *segments)

    return handle
