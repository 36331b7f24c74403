"""The errors of barnabas.

    BarnabasError
    ├── KafkaError                a protocol error code, answered to the peer
    │   └── InvalidRecordError    names the records of a batch that were refused
    ├── ProtocolError             bytes that break the protocol; the connection is closed
    │   ├── MalformedMessage      a message that does not decode
    │   └── FrameTooLarge         a frame over socket.request.max.bytes
    ├── StorageError
    │   ├── CorruptLog            bytes on disk that cannot be what was written
    │   ├── SegmentsGone          segments of a log that are no longer what a cleaning took them for
    │   ├── LogDirFailed          a log directory that no longer works
    │   ├── StorageExhausted      no room on the disk (or no descriptor) for now; nothing has changed
    │   └── StartsUnwritten       those two, of all log directories in which it could not be written down where logs begin
    ├── ConfigError               a configuration value that is refused: key, value, what is allowed
    ├── Closed                    used after close, or the other side went away
    └── InvariantViolated         something that cannot happen happened; stops the partition or the broker

Exceptions carry fields; their text is built in `__str__`. What a peer is told is a code and, where the protocol has room
for it, the text of a `KafkaError`, never that of another exception.
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


TLS_HANDSHAKE_HEAD = 0x1603  # the first two bytes of a client that expects TLS, read as the size of a frame


class BarnabasError(Exception):
    """Everything that barnabas raises on purpose. Can be pickled, with its fields, whatever its constructor takes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_it_was, (type(self), self.args), self.__dict__.copy()


def _as_it_was(kind: type[BarnabasError], arguments: tuple[Any, ...]) -> BarnabasError:
    """An exception without its fields, which pickle sets."""
    return kind.__new__(kind, *arguments)


class KafkaError(BarnabasError):
    """A protocol error for one request, topic or partition.

    Args:
        code: what the peer is answered.
        message: a sentence for the peer, for responses that carry one; None where Kafka sends none.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class InvalidRecordError(KafkaError):
    """A batch refused because of some of its records (KIP-467).

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
    """Bytes that are not the message they should be."""

    def __init__(self, message_name: str, version: int, reason: str) -> None:
        super().__init__(message_name, version, reason)
        self.message_name = message_name
        self.version = version
        self.reason = reason

    def __str__(self) -> str:
        return f"malformed {self.message_name} version {self.version}: {self.reason}"


class FrameTooLarge(ProtocolError):
    """A frame that announces more bytes than are taken, or fewer than none."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        hint = "; it looks like a TLS handshake" if self.size >> 16 == TLS_HANDSHAKE_HEAD else ""
        return f"a frame of {self.size} bytes; allowed are 0 to {self.limit}{hint}"


class StorageError(BarnabasError):
    """The log could not be read or written."""


class CorruptLog(StorageError):
    """Bytes in a file that cannot be what was written there."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, position, reason)
        self.path = path
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is corrupt at byte {self.position}: {self.reason}"


class SegmentsGone(StorageError):
    """A log was deleted, truncated or shortened while somebody worked on its sealed segments."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the segments of {self.name} have changed"


class _LogDirError(StorageError):
    """Of the log directory at `path`, for a `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"log directory {self.path}: {self.reason}"


class LogDirFailed(_LogDirError):
    """A log directory that cannot be used, and why."""


class StorageExhausted(_LogDirError):
    """Disk space, a quota, descriptors or memory have run out: nothing has changed, and it may be tried again later."""


class StartsUnwritten(StorageError):
    """Where the logs of some log directories begin could not be written down."""

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
    """Something was used after it was closed."""


class InvariantViolated(BarnabasError):
    """A rule of the code itself does not hold; `story` are the last events that led there."""

    def __init__(self, rule: str, story: Sequence[str] = ()) -> None:
        super().__init__(rule, story)
        self.rule = rule
        self.story = tuple(story)

    def __str__(self) -> str:
        return "\n  ".join([self.rule, *self.story])
