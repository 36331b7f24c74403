"""Writes the head and the body of an answer together. uvicorn writes each alone, with one more system call and packet."""

from __future__ import annotations

from typing import Any

MOST_JOINED_BYTES = 64 * 1024  # a larger body is written separately, because that costs less than copying it


class OneWrite:
    """The transport of one answer. It keeps the head until the body comes; that is immediately after the head. The answer to
    HEAD has no body.

    Args:
        cycle: uvicorn's object that writes the answer.
    """

    __slots__ = ("_cycle", "_head", "_transport")

    def __init__(self, cycle: Any) -> None:
        self._cycle, self._transport = cycle, cycle.transport
        self._head: bytes | None = None  # empty after the head was written

    def write(self, data: bytes) -> None:
        """Write, or keep the head. Bytes before the answer (`100 Continue`) go out at once."""
        if self._head is None and self._cycle.response_started and self._cycle.scope["method"] != "HEAD":
            self._head = data
            return
        if self._head:
            head, self._head = self._head, b""
            if len(data) <= MOST_JOINED_BYTES:
                data = head + data
            else:
                self._transport.write(head)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        """Every other attribute is that of the connection."""
        return getattr(self._transport, name)
