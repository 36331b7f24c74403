"""The client of a session, as the session's thread sees it."""

from __future__ import annotations

from typing import Protocol

from barnabas.sql.postgres.messages import Message


class Gone(Exception):
    """The client is gone, or is no longer wanted: the thread ends."""


class Channel(Protocol):
    """Messages of a client in, bytes to it out. For one thread."""

    def receive(self) -> Message:
        """The next message; waits for it. Raises Gone."""

    def send(self, data: bytes | memoryview) -> None:
        """Bytes for the client, now or later; waits while the client is behind. Raises Gone."""

    def flush(self) -> None:
        """Send at once all that `send` took. Raises Gone."""
