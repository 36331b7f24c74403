"""The shared parts of the handlers: the registry, the writer, names in paths, and forwarding to the leader."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import unquote

from barnabas import limits
from barnabas.errors import BarnabasError
from barnabas.registry.core import errors, names
from barnabas.registry.core.commands import Command
from barnabas.registry.core.entities import Draft, Version
from barnabas.registry.core.registry import Registry
from barnabas.registry.core.state import State
from barnabas.registry.http import exchange, rights
from barnabas.registry.http.forwarding import FORWARDED, HOST, PRINCIPAL
from barnabas.registry.http.rights import OTHERWISE, RULES, Right, Rights, Rule
from barnabas.registry.store.large_work import LargeWork
from barnabas.security.acls import CLUSTER, Operation
from barnabas.web.routing import Caller, HttpError, Request, Response, Router


class Forwarded(Exception):
    """The leader has answered the request."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class Backend(Protocol):
    """The interface of the service for the handlers."""

    async def write(self, request: Request, command: Command) -> Any:
        """The answer to a command. Raises HttpError, or Forwarded if the leader answered `request`."""

    async def cluster_id(self) -> str:
        """The id of the Kafka cluster."""

    def group(self) -> str:
        """The id of the registry's group."""


class Surface:
    """The registry for handlers.

    Args:
        rights: the rights of callers. None if callers do not log in; then every caller may do everything.
    """

    def __init__(self, registry: Registry, backend: Backend, rights: Rights | None = None) -> None:
        self.registry = registry
        self.backend = backend
        self.large = LargeWork(limits.MAX_LARGE_REQUESTS_AT_ONCE)
        self.rights = rights

    @property
    def state(self) -> State:
        """The state of the registry."""
        return self.registry.state

    def subject(self, context: str, text: str, *, alias: bool = True) -> str:
        """The subject in a path below the path of a context; an alias is replaced by its subject."""
        subject = names.normalize(text if text.startswith((":.", ":*:")) else context + text)
        return self.behind_alias(subject) if alias else subject

    def behind_alias(self, subject: str) -> str:
        """The subject of an alias; any other subject unchanged."""
        target = (self.state.configs.get(subject) or {}).get("alias") if subject else None
        return names.in_context_of(subject, target) if isinstance(target, str) and target else subject

    async def admit(self, request: Request, rule: Rule, context: str, segments: tuple[str, ...]) -> None:
        """Check a request by the rule of its route. Raises HttpError 40301, or 50001 if the cluster cannot be asked."""
        assert self.rights is not None
        try:
            await self.rights.refresh()
        except BarnabasError as error:
            raise errors.store_failed(str(error)) from None
        self._speak_for(request)
        if rule.right is not None:
            text = segments[0] if rule.on_subject else ""
            self.permit(request, rule.right, self.subject(context, text, alias=rule.alias))

    async def renew(self) -> bool:
        """Read the rights again, and return whether that was done; raises HttpError 50001 if the cluster cannot be asked."""
        try:
            return self.rights is not None and await self.rights.renew()
        except BarnabasError as error:
            raise errors.store_failed(str(error)) from None

    def _speak_for(self, request: Request) -> None:
        """Accept the caller in a forwarded request: a registry with CLUSTER_ACTION forwards in the name of its callers, like a
        broker."""
        principal = request.headers.get(PRINCIPAL)
        if principal is None or FORWARDED not in request.headers or self.rights is None:
            return
        if self.rights.allows(request.caller.principal, request.caller.host, Operation.CLUSTER_ACTION, CLUSTER):
            request.caller = Caller(unquote(principal), request.headers.get(HOST, ""))

    def permit(self, request: Request, right: Right, subject: str) -> None:
        """Raises HttpError 40301 if the caller does not have a right on a subject."""
        if self.rights is not None and not rights.allowed(self.rights, request.caller, right, subject):
            raise rights.denied(right, subject)

    def permit_references(self, request: Request, subject: str, draft: Draft) -> None:
        """Raises HttpError 40301 if the caller may not read the subjects that a schema refers to."""
        if self.rights is not None:
            for reference in draft.references:
                self.permit(request, rights.READ, names.in_context_of(subject, str(reference.subject)))

    def readable(self, request: Request) -> Callable[[str], bool]:
        """A function that says whether the caller may read a subject."""
        return _everything if self.rights is None else rights.readable(self.rights, request.caller)

    def readable_version(self, request: Request, found: Version) -> Version:
        """The version, or one with the same id in a subject that the caller may read. Raises HttpError 40301."""
        if self.rights is None:
            return found
        may = self.readable(request)
        if may(found.subject):
            return found
        placed = self.state.contexts[names.context_of(found.subject)].ids.get(found.id, {})
        for subject, number in sorted(placed.items()):
            version = self.state.version(subject, number, deleted=True) if may(subject) else None
            if version is not None:
                return version
        raise rights.denied_schema(found.id)

    def contexts(self, request: Request) -> set[str]:
        """The named contexts in which the caller may read a subject."""
        named = self.state.named_contexts
        if self.rights is None:
            return named
        may = self.readable(request)
        found = {each for each in named if may(f":{each}:")}
        return found | {names.context_of(subject) for subject in filter(may, self.state.subjects)} & named

    def knows_id(self, request: Request, context: str, schema_id: int) -> bool:
        """Whether the caller may read a subject with this id in a context."""
        may = self.readable(request)
        return self.rights is None or any(map(may, self.state.contexts[context].ids.get(schema_id, ())))

    async def write(self, request: Request, command: Command, status: int = 200) -> Response:
        """Run a command and return its answer."""
        exchange.media_type(request)
        value = await self.backend.write(request, command)
        return exchange.answer(request, value, status)


Handler = Callable[..., Awaitable[Response]]  # arguments: the surface, the request, the prefix of the context, the path segments
Table = tuple[tuple[str, str, Handler], ...]


def add_routes(router: Router, surface: Surface, table: Table) -> None:
    """Add each route twice: plain, and below `/contexts/{}`."""
    for method, pattern, handler in table:
        rule = RULES.get((method, pattern), OTHERWISE)
        router.add(method, pattern, _plain(surface, handler, rule))
        if pattern != "/":
            router.add(method, f"/contexts/{{}}{pattern}", _in_context(surface, handler, rule))


def _everything(_subject: str) -> bool:
    return True


def _plain(surface: Surface, handler: Handler, rule: Rule) -> Handler:
    async def handle(request: Request, *segments: str) -> Response:
        return await _guarded(surface, handler, rule, request, "", segments)

    return handle


def _in_context(surface: Surface, handler: Handler, rule: Rule) -> Handler:
    async def handle(request: Request, context: str, *segments: str) -> Response:
        return await _guarded(surface, handler, rule, request, checked_context(context), segments)

    return handle


async def _guarded(
    surface: Surface, handler: Handler, rule: Rule, request: Request, prefix: str, segments: tuple[str, ...]
) -> Response:
    """The handler's answer, if the caller has the right. After a refusal it reads the bindings again and tries once more."""
    try:
        if surface.rights is None:
            return await handler(surface, request, prefix, *segments)
        try:
            await surface.admit(request, rule, prefix, segments)
            return await handler(surface, request, prefix, *segments)
        except HttpError as refused:
            if refused.code != rights.DENIED or not await surface.renew():
                raise
        await surface.admit(request, rule, prefix, segments)
        return await handler(surface, request, prefix, *segments)
    except Forwarded as done:
        return done.response


def checked_context(text: str) -> str:
    """The prefix of a context in a path. Raises HttpError 400."""
    try:
        return names.context_prefix(text)
    except ValueError as error:
        raise HttpError(400, str(error), 400) from None


def checked_subject(subject: str) -> str:
    """The subject, if a subject may have this name. Raises HttpError 42208."""
    if not names.is_valid(subject):
        raise errors.invalid_subject(subject)
    return subject
