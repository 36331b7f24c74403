"""What the handlers share: the registry, the writer, names as the path has them, and forwarding to the leader."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from barnabas import limits
from barnabas.registry.core import errors, names
from barnabas.registry.core.commands import Command
from barnabas.registry.core.registry import Registry
from barnabas.registry.core.state import State
from barnabas.registry.http import exchange
from barnabas.registry.store.large_work import LargeWork
from barnabas.web.routing import HttpError, Request, Response, Router


class Forwarded(Exception):
    """The leader has answered in our place."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class Backend(Protocol):
    """What the service brings."""

    async def write(self, request: Request, command: Command) -> Any:
        """The answer to a command. Raises HttpError, or Forwarded if the leader answered `request`."""

    async def cluster_id(self) -> str:
        """The id of the Kafka cluster."""

    def group(self) -> str:
        """The id of the registry's group."""


class Surface:
    """The registry as handlers see it."""

    def __init__(self, registry: Registry, backend: Backend) -> None:
        self.registry = registry
        self.backend = backend
        self.large = LargeWork(limits.MAX_LARGE_REQUESTS_AT_ONCE)

    @property
    def state(self) -> State:
        """What is registered."""
        return self.registry.state

    def subject(self, context: str, text: str, *, alias: bool = True) -> str:
        """The subject that a path names below the path of a context, behind its alias."""
        subject = names.normalize(text if text.startswith((":.", ":*:")) else context + text)
        return self.behind_alias(subject) if alias else subject

    def behind_alias(self, subject: str) -> str:
        """The subject that an alias means."""
        target = (self.state.configs.get(subject) or {}).get("alias") if subject else None
        return names.in_context_of(subject, target) if isinstance(target, str) and target else subject

    async def write(self, request: Request, command: Command, status: int = 200) -> Response:
        """Run a command and show its answer."""
        exchange.media_type(request)
        value = await self.backend.write(request, command)
        return exchange.answer(request, value, status)


Handler = Callable[..., Awaitable[Response]]  # takes the surface, the request, the prefix of the context, and the segments
Table = tuple[tuple[str, str, Handler], ...]


def add_routes(router: Router, surface: Surface, table: Table) -> None:
    """Add each route twice: plain, and below `/contexts/{}`."""
    for method, pattern, handler in table:
        router.add(method, pattern, _plain(surface, handler))
        if pattern != "/":
            router.add(method, f"/contexts/{{}}{pattern}", _in_context(surface, handler))


def _plain(surface: Surface, handler: Handler) -> Handler:
    async def handle(request: Request, *segments: str) -> Response:
        try:
            return await handler(surface, request, "", *segments)
        except Forwarded as done:
            return done.response

    return handle


def _in_context(surface: Surface, handler: Handler) -> Handler:
    async def handle(request: Request, context: str, *segments: str) -> Response:
        try:
            return await handler(surface, request, checked_context(context), *segments)
        except Forwarded as done:
            return done.response

    return handle


def checked_context(text: str) -> str:
    """The prefix of a context that a client names. Raises HttpError 400."""
    try:
        return names.context_prefix(text)
    except ValueError as error:
        raise HttpError(400, str(error), 400) from None


def checked_subject(subject: str) -> str:
    """The subject, if a subject may have this name. Raises HttpError 42208."""
    if not names.is_valid(subject):
        raise errors.invalid_subject(subject)
    return subject
