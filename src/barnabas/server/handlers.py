"""The types of handlers: a handler of an API, and the class of the requests that it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast

from barnabas.protocol.base_message import Message
from barnabas.server.requests import RequestContext

if TYPE_CHECKING:
    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.server.connection import Connection

B = TypeVar("B")
B_contra = TypeVar("B_contra", contravariant=True)
R = TypeVar("R", bound=Message)
Answer = Message | Awaitable[Message]


class Handle(Protocol[B_contra]):
    """Answers requests of one API.

    Args:
        broker: the interface that the API declares as a `Protocol`.
    """

    def __call__(self, broker: B_contra, context: RequestContext, request: Message, /) -> Answer: ...


class Handler(NamedTuple, Generic[B_contra]):
    """One API: the dispatcher decodes a frame into `request` and calls `handle` with it."""

    request: type[Message]
    handle: Handle[B_contra]


def takes(request: type[R], handle: Callable[[B, RequestContext, R], Answer]) -> Handler[B]:
    """The handler of these requests."""
    return Handler(request, cast("Handle[B]", handle))


class Parts(Protocol[B_contra]):
    """Divides a request in a cluster into the part of this broker and the part of the controller; None for an empty part."""

    def __call__(
        self, broker: B_contra, context: RequestContext, request: Message, /
    ) -> tuple[Message | None, Message | None]: ...


class TakeOver(Protocol[B_contra]):
    """Gets a request before the dispatcher decodes it. Returns whether it has answered the request."""

    def __call__(self, broker: B_contra, connection: Connection, header: RequestHeader, frame: memoryview, /) -> bool: ...
