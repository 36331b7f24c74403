"""The errors of a client: a refused partition, an unreachable broker, a timeout.

BarnabasError
├── KafkaError
│   ├── PartitionError      an error code for one topic-partition (or one topic)
│   └── ResourceError       an error code for any other resource: a group, a topic to create
└── ClientError
    ├── ConnectionFailed    no connection, or it was lost
    ├── LoginFailed         a broker refused the log-in; a retry does not help
    ├── TimedOut            no response in time; names the expected event and the last error
    ├── BrokersDisagree     the brokers disagree on a topic for the moment
    ├── Interrupted         another thread ended the operation (in `interruption.py`)
    └── UnsupportedRequest  broker and client have no version of this request in common
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, KafkaError


class PartitionError(KafkaError):
    """An error for `topic` and `partition`; the partition is None for the whole topic."""

    def __init__(self, code: ErrorCode, topic: str, partition: int | None, message: str | None = None) -> None:
        super().__init__(code, message)
        self.topic = topic
        self.partition = partition

    def __str__(self) -> str:
        where = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"{where}: {super().__str__()}"


class ResourceError(KafkaError):
    """An error for a named resource, such as `resource` "group orders"."""

    def __init__(self, code: ErrorCode, resource: str, message: str | None = None) -> None:
        super().__init__(code, message)
        self.resource = resource

    def __str__(self) -> str:
        return f"{self.resource}: {super().__str__()}"


class ClientError(BarnabasError):
    """A request without a response."""


class ConnectionFailed(ClientError):
    """A broker that cannot be reached, or that closed the connection."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"no connection to {self.address}: {self.reason}"


class LoginFailed(ClientError):
    """The broker at `address` refused the credentials, or did not prove its identity."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"no log-in at {self.address}: {self.reason}"


class TimedOut(ClientError):
    """`waiting_for` did not happen within `timeout_ms`; `last` is the error of the last try, if there was one."""

    def __init__(self, waiting_for: str, timeout_ms: int, last: str | None = None) -> None:
        super().__init__(waiting_for, timeout_ms, last)
        self.waiting_for = waiting_for
        self.timeout_ms = timeout_ms
        self.last = last

    def __str__(self) -> str:
        text = f"no {self.waiting_for} within {self.timeout_ms} ms"
        return f"{text}; last error: {self.last}" if self.last else text


class BrokersDisagree(ClientError):
    """Brokers disagree on some of `topics`: some have not received a change yet."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(tuple(topics))
        self.topics = tuple(topics)

    def __str__(self) -> str:
        return f"the brokers disagree on {', '.join(self.topics)}"


class UnsupportedRequest(ClientError):
    """No common version of a request."""

    def __init__(self, request: str, ours: tuple[int, int], theirs: tuple[int, int] | None) -> None:
        super().__init__(request, ours, theirs)
        self.request = request
        self.ours = ours
        self.theirs = theirs

    def __str__(self) -> str:
        spoken = "does not know it" if self.theirs is None else f"speaks versions {self.theirs[0]} to {self.theirs[1]}"
        return f"{self.request}: the broker {spoken}, we speak {self.ours[0]} to {self.ours[1]}"
