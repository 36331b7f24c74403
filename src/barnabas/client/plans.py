"""The operations of a client without I/O: generators that yield requests and receive responses.

A plan yields instructions and receives their outcome at the same `yield`; the shells in `blocking` and `asynchronous` execute
them. So there is one implementation of every operation, and tests of its retries need no socket or clock.

    list[Call]  -> list of responses or `ClientError`s, in the same order
    Pause       -> None, after so many milliseconds
    Now         -> milliseconds of a monotonic clock
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, LoginFailed, TimedOut, UnsupportedRequest
from barnabas.errors import KafkaError
from barnabas.protocol.base_message import Message

R = TypeVar("R")
ANY_BROKER = -1


class Call(Struct, frozen=True):
    """Send `request` to broker `node_id` (or to any) in a version from `at_least` to `at_most`."""

    request: Message
    node_id: int = ANY_BROKER
    at_most: int | None = None
    at_least: int | None = None


class Pause(Struct, frozen=True):
    """Wait for some milliseconds."""

    milliseconds: float


class Now(Struct, frozen=True):
    """Tell the time."""


Instruction = Sequence[Call] | Pause | Now
Plan = Generator[Instruction, Any, R]


def call(request: Message, node_id: int = ANY_BROKER, at_most: int | None = None) -> Plan[Any]:
    """One request and its response; raises the shell's error."""
    (answer,) = yield [Call(request, node_id, at_most)]
    if isinstance(answer, ClientError):
        raise answer
    return answer


def retrying(config: ClientConfig, waiting_for: str, attempt: Callable[[], Plan[R]]) -> Plan[R]:
    """Repeat `attempt` until it returns, raises an error that is not retriable, or `default_api_timeout_ms` is over.

    Raises:
        TimedOut: with the last error as its cause.
    """
    deadline = (yield Now()) + config.default_api_timeout_ms
    backoff: float = config.retry_backoff_ms
    while True:
        try:
            return (yield from attempt())
        except (LoginFailed, UnsupportedRequest):
            raise
        except KafkaError as error:
            if not is_retriable(error):
                raise
            last: Exception = error
        except ClientError as error:
            last = error
        if (yield Now()) + backoff >= deadline:
            raise TimedOut(waiting_for, config.default_api_timeout_ms, str(last)) from last
        yield Pause(backoff)
        backoff = min(backoff * 2, config.retry_backoff_max_ms)


def is_retriable(error: KafkaError) -> bool:
    """Whether a retry may help; False for an error that is marked as final."""
    return error.code.retriable and not getattr(error, "final", False)
