"""Fatal errors of confluent-kafka, as exceptions.

After a fatal error a client must not continue (a producer that lost its id, a static member that was fenced). The next call
then raises a `KafkaError`, which is not an exception class. Before Python 3.12, no `except` with a class catches it, and the
program ends with a traceback. Later versions of Python turn it into a `SystemError`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class _Caught:
    """A context manager that catches a raised object that is not an exception. The caller raises a real exception after the
    block, since the object cannot be its `__context__`."""

    raised: Any = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(self, kind: type[Any] | None, raised: Any, trace: TracebackType | None) -> bool:
        if kind is None or issubclass(kind, BaseException):
            return False
        self.raised = raised
        return True


def with_exceptions(call: Callable[..., T], *arguments: Any) -> T:
    """Call `call` and return its result; raises KafkaException if the call raises an object that is not an exception."""
    caught = _Caught()
    with caught:
        return call(*arguments)
    from confluent_kafka import KafkaException

    raise KafkaException(caught.raised)
