"""The errors of barnabas.

    BarnabasError
    ├── KafkaError                a protocol error code, answered to the peer
    │   └── InvalidRecordError    names the records of a batch that were refused
    ├── ProtocolError             bytes that break the protocol; the connection is closed
    │   ├── MalformedMessage      a message that does not decode
    │   └── FrameTooLarge         a frame over socket.request.max.bytes
    ├── StorageError
    │   ├── CorruptLog            bytes on disk that cannot be what was written
    │   ├── SegmentsGone          segments of a log that changed while a cleaning read them
    │   ├── LogDirFailed          a log directory that no longer works
    │   ├── StorageExhausted      no disk space (or no descriptor) for now; nothing has changed
    │   └── StartsUnwritten       the errors of all log directories whose log start offsets could not be written
    ├── ConfigError               a configuration value that is refused: key, value, what is allowed
    ├── Closed                    used after close, or the peer closed the connection
    └── InvariantViolated         a rule of the code is broken; stops the partition or the broker

Exceptions carry fields; `__str__` builds their text. A peer gets an error code, and the text of a `KafkaError` if the protocol
has a field for it. It never gets the text of another exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.error_codes import ErrorCode

__all__ = [
    "BarnabasError",
    "KafkaError",
    "InvalidRecordError",
    "ProtocolError",
    "MalformedMessage",
    "FrameTooLarge",
    "StorageError",
    "CorruptLog",
    "SegmentsGone",
    "LogDirFailed",
    "StorageExhausted",
    "StartsUnwritten",
    "ConfigError",
    "Closed",
    "InvariantViolated",
    "ErrorCode",
]


# A peer that speaks another protocol sends these as the size of a frame.
TLS_HANDSHAKE_HEAD = 0x1603  # the first two bytes of a TLS handshake
# The first four bytes of an HTTP request, or of an answer.
HTTP_HEADS = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"HTTP"})


class BarnabasError(Exception):
    """The base of all errors that barnabas raises. Pickle keeps its fields, independent of the arguments of its constructor."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_it_was, (type(self), self.args), self.__dict__.copy()


def _as_it_was(kind: type[BarnabasError], arguments: tuple[Any, ...]) -> BarnabasError:
    """An exception without its fields; pickle sets them afterwards."""
    return kind.__new__(kind, *arguments)


class KafkaError(BarnabasError):
    """A protocol error for one request, topic or partition.

    Args:
        code: the error code for the peer.
        message: a sentence for the peer, in responses that have a field for it; None if Kafka sends none.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class InvalidRecordError(KafkaError):
    """The broker refuses a batch because of some of its records (KIP-467).

    Args:
        code: INVALID_RECORD or INVALID_TIMESTAMP.
        record_errors: pairs of the record's index in its batch and a sentence.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)


class ProtocolError(BarnabasError):
    """The peer broke the protocol; its connection is closed."""


class MalformedMessage(ProtocolError):
    """Bytes that do not decode as the expected message."""

    def __init__(self, message_name: str, version: int, reason: str) -> None:
        super().__init__(message_name, version, reason)
        self.message_name = message_name
        self.version = version
        self.reason = reason

    def __str__(self) -> str:
        return f"malformed {self.message_name} version {self.version}: {self.reason}"


class FrameTooLarge(ProtocolError):
    """A frame whose size is above the limit or negative."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        hint = ""
        if self.size >> 16 == TLS_HANDSHAKE_HEAD:
            hint = "; it looks like a TLS handshake"
        elif (self.size & 0xFFFFFFFF).to_bytes(4) in HTTP_HEADS:
            hint = "; it looks like HTTP"
        return f"a frame of {self.size} bytes; allowed are 0 to {self.limit}{hint}"


class StorageError(BarnabasError):
    """The log could not be read or written."""


class CorruptLog(StorageError):
    """Bytes in a file that the broker cannot have written."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, position, reason)
        self.path = path
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is corrupt at byte {self.position}: {self.reason}"


class SegmentsGone(StorageError):
    """A log was deleted or truncated while a cleaning or a conversion worked on its sealed segments."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the segments of {self.name} have changed"


class _LogDirError(StorageError):
    """An error of the log directory at `path`, with its `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"log directory {self.path}: {self.reason}"


class LogDirFailed(_LogDirError):
    """A log directory that cannot be used any more."""


class StorageExhausted(_LogDirError):
    """Disk space, a disk quota, descriptors or memory have run out: nothing has changed, and a later try may succeed."""


class StartsUnwritten(StorageError):
    """The log start offsets of some log directories could not be written to their checkpoints."""

    def __init__(self, failures: Sequence[LogDirFailed | StorageExhausted]) -> None:
        super().__init__(failures)
        self.failures = tuple(failures)

    @property
    def paths(self) -> set[str]:
        """The log directories."""
        return {failure.path for failure in self.failures}

    def __str__(self) -> str:
        return "; ".join(map(str, self.failures))


class ConfigError(BarnabasError):
    """A configuration value that is refused."""

    def __init__(self, key: str, value: str, allowed: str) -> None:
        super().__init__(key, value, allowed)
        self.key = key
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"invalid value {self.value!r} for {self.key}: {self.allowed}"


class Closed(BarnabasError):
    """An object was used after it was closed."""


class InvariantViolated(BarnabasError):
    """A rule of the code itself is broken; `story` holds the last events before that."""

    def __init__(self, rule: str, story: Sequence[str] = ()) -> None:
        super().__init__(rule, story)
        self.rule = rule
        self.story = tuple(story)

    def __str__(self) -> str:
        return "\n  ".join([self.rule, *self.story])
