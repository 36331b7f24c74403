"""The interface of a guard, which checks the rights of a request before the handler of its API.

A guard gets the client, the request and a function that calls the handler. If nothing of the request is allowed, the guard answers itself.
Otherwise it gives the allowed part to the handler, and adds its refusals to the handler's answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.security.acls import Operation

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.security.access import Access
    from barnabas.server.requests import RequestContext


class GuardedBroker(Protocol):
    """The parts of the broker that guards use."""

    config: BrokerConfig

    @property
    def metadata(self) -> MetadataImage: ...


class Asked(NamedTuple):
    """A request before its guard: the broker, the context and the rights of the client."""

    broker: GuardedBroker
    context: RequestContext
    access: Access

    @property
    def version(self) -> int:
        return self.context.api_version


Answer = Message | Awaitable[Message]
GoOn = Callable[[Any], Answer]
Guard = Callable[[Asked, Any, GoOn], Answer]
Refuse = Callable[[Any, ErrorCode], Message]


def then(answer: Answer, change: Callable[[Any], None]) -> Answer:
    """The handler's answer after `change`."""
    if isinstance(answer, Message):
        change(answer)
        return answer
    return Later(answer, change)


class Later:
    """An answer that comes later and is then changed. If it is closed and not awaited, it closes the inner answer, as a coroutine would."""

    __slots__ = ("_answer", "_change")

    def __init__(self, answer: Awaitable[Message], change: Callable[[Any], None]) -> None:
        self._answer = answer
        self._change = change

    def __await__(self) -> Generator[Any, None, Message]:
        found = yield from self._answer.__await__()
        self._change(found)
        return found

    def close(self) -> None:
        if isinstance(self._answer, Coroutine | Later):
            self._answer.close()


def on_cluster(operations: Operation | Sequence[Operation], refuse: Refuse) -> Guard:
    """A guard of requests about the cluster: the client needs one of the operations on the cluster."""
    wanted = (operations,) if isinstance(operations, Operation) else tuple(operations)

    def guard(asked: Asked, request: Any, go_on: GoOn) -> Answer:
        if any(asked.access.allows_cluster(each) for each in wanted):
            return go_on(request)
        return refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return guard


def split(
    items: Iterable[Any], may: Callable[[Any], bool], *, name_of: Callable[[Any], Any] = attrgetter("name")
) -> tuple[list[Any], list[Any]]:
    """The items whose names the client may use, and the others; `may` is called once for each item."""
    allowed: list[Any] = []
    denied: list[Any] = []
    for item in items:
        (allowed if may(name_of(item)) else denied).append(item)
    return allowed, denied


def itself(name: str) -> str:
    """The name of an item that is a name itself."""
    return name
