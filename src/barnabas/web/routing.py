"""Requests, responses and routes, as every HTTP service of barnabas sees them.

Routes are found by the segments of the path before they are percent-decoded, so `/subjects/a%2Fb/versions` names the subject `a/b`.
A dictionary leads from segment to segment: the time does not grow with the number of routes.
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
    """The answer to a client: the status, the body, and headers besides Content-Length, in lower case.

    A `stream` follows the body, piece by piece as the client takes them. It is closed if the client goes away.
    """

    body: bytes = b""
    status: int = 200
    headers: Headers = ()
    stream: AsyncGenerator[bytes, None] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Args:
        principal: as the cluster names the caller, such as `User:alice`; `User:ANONYMOUS` without log-in.
        host: the client's address.
    """

    principal: str = "User:ANONYMOUS"
    host: str = ""


@dataclass(slots=True)
class Request:
    """One request with its whole body.

    Args:
        method: in capitals.
        path: percent-encoded as it came, without the query.
        query: the parameters; of several with one name the last counts, `queries` has all.
        headers: by name in lower case.
        body: at most as many bytes as the service allows.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    queries: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
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
        """`pattern` is a path whose `{}` segments are given to the handler."""
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
        """The handler for `path` (percent-encoded) and the decoded segments that it takes.

        Raises:
            HttpError: 404 if no pattern fits, 405 if one fits but for the method.
        """
        node, given = _descend(self._root, _segments(path), 0, [])
        if node is None:
            raise HttpError(404, "HTTP 404 Not Found")
        handler = node.handlers.get(method) or (node.handlers.get("GET") if method == "HEAD" else None)
        if handler is None:
            raise not_allowed(node.handlers)
        return handler, given


def not_allowed(methods: Collection[str]) -> HttpError:
    """The answer to a method that is none of these."""
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
    """The node at the end of `segments`. A segment that a pattern names wins over `{}`; if it leads nowhere, `{}` is tried."""
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
