"""The requests, responses and routes of every HTTP service of barnabas.

The router splits a path into segments before it decodes percent escapes, so `/subjects/a%2Fb/versions` names the subject `a/b`.
It looks up each segment in a dictionary, so the time does not depend on the number of routes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

Headers = tuple[tuple[bytes, bytes], ...]


class HttpError(Exception):
    """Ends a request with this status. `code` is the service's own error code; without one it is the status."""

    def __init__(self, status: int, message: str, code: int | None = None, headers: Headers = ()) -> None:
        super().__init__(message)
        self.headers = headers
        self.status = status
        self.message = message
        self.code = status if code is None else code


class Response(NamedTuple):
    """The answer to a client: the status, the body, and headers except Content-Length, in lower case.

    A `stream` follows the body, piece by piece as the client takes them. It is closed at its end, and if the client goes away or wants
    no body. A generator that has not begun runs nothing when it is closed, so one that must release something has begun.
    """

    body: bytes = b""
    status: int = 200
    headers: Headers = ()
    stream: AsyncGenerator[bytes, None] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Args:
        principal: the caller's name in the cluster, such as `User:alice`; `User:ANONYMOUS` without log-in.
        host: the client's address.
    """

    principal: str = "User:ANONYMOUS"
    host: str = ""


@dataclass(slots=True)
class Request:
    """One request with its whole body.

    Args:
        method: in capitals.
        path: the path as it came (percent-encoded), without the query.
        query: the parameters; if a name is repeated, the last value. `queries` has all values.
        headers: the headers by name in lower case; if callers log in, `authorization` only if it was checked.
        body: the whole body, within the service's limit.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    queries: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    caller: Caller = Caller()


Handler = Callable[..., Awaitable[Response]]  # takes the request, then each `{}` of its pattern, decoded
NAMED = "{}"


class _Node:
    __slots__ = ("any", "handlers", "named")

    def __init__(self) -> None:
        self.named: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.handlers: dict[str, Handler] = {}


class Router:
    """Finds the handler of a request by its method and path.

    >>> async def version(request: Request, subject: str, number: str) -> Response: ...
    >>> router = Router()
    >>> router.add("GET", "/subjects/{}/versions/{}", version)
    """

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Add a route. `pattern` is a path; the handler gets its `{}` segments."""
        node = self._root
        for segment in _segments(pattern):
            if segment == NAMED:
                node.any = node = node.any or _Node()
            else:
                node = node.named.setdefault(segment, _Node())
        if method in node.handlers:
            raise ValueError(f"{method} {pattern} is there twice")
        node.handlers[method] = handler

    def routes(self) -> list[tuple[str, str]]:
        """Method and pattern of every route, in the order of the patterns."""
        return sorted(_routes(self._root, ""), key=lambda route: (route[1], route[0]))

    def find(self, method: str, path: str) -> tuple[Handler, list[str]]:
        """The handler for `path` (percent-encoded), and the decoded segments for it.

        Raises:
            HttpError: 404 if no pattern matches, 405 if a pattern matches but not with this method.
        """
        node, given = _descend(self._root, _segments(path), 0, [])
        if node is None:
            raise HttpError(404, "HTTP 404 Not Found")
        handler = node.handlers.get(method) or (node.handlers.get("GET") if method == "HEAD" else None)
        if handler is None:
            raise not_allowed(node.handlers)
        return handler, given


def not_allowed(methods: Collection[str]) -> HttpError:
    """The error for a method that is not in `methods`."""
    allowed = {*methods, *(["HEAD"] if "GET" in methods else [])}
    return HttpError(405, "HTTP 405 Method Not Allowed", headers=((b"allow", ", ".join(sorted(allowed)).encode()),))


def _routes(node: _Node, pattern: str) -> Iterator[tuple[str, str]]:
    for method in node.handlers:
        yield method, pattern or "/"
    for segment, below in node.named.items():
        yield from _routes(below, f"{pattern}/{segment}")
    if node.any is not None:
        yield from _routes(node.any, f"{pattern}/{NAMED}")


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _descend(node: _Node, segments: list[str], at: int, given: list[str]) -> tuple[_Node | None, list[str]]:
    """The node at the end of `segments`. A literal segment of a pattern comes before `{}`; if it does not lead to a node, `{}`
    is tried."""
    if at == len(segments):
        return (node, given) if node.handlers else (None, given)
    segment = unquote(segments[at])
    named = node.named.get(segment)
    if named is not None:
        found, taken = _descend(named, segments, at + 1, given)
        if found is not None:
            return found, taken
    if node.any is not None:
        return _descend(node.any, segments, at + 1, [*given, segment])
    return None, given
