"""Fatal errors of confluent-kafka, as exceptions.

A client that must not go on (a producer that lost its id, a static member that was fenced) ends the call that learns of it. Before Python
3.12, what confluent-kafka then raises is a `KafkaError`, which is no exception: no `except` with a name catches it, and it ends in a
traceback. Later Pythons make a `SystemError` of it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class _Caught:
    """A context that ends quietly where what is raised is no exception. It is raised anew outside, since it cannot be a context."""

    raised: Any = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(self, kind: type[Any] | None, raised: Any, trace: TracebackType | None) -> bool:
        if kind is None or issubclass(kind, BaseException):
            return False
        self.raised = raised
        return True


def with_exceptions(call: Callable[..., T], *arguments: Any) -> T:
    """What the call returns; raises KafkaException for what it raises that is no exception."""
    caught = _Caught()
    with caught:
        return call(*arguments)
    from confluent_kafka import KafkaException

    raise KafkaException(caught.raised)
