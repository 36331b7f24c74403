"""What all SASL mechanisms are to the server: messages in, answers out, until it is known who is there or that it failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class AuthenticationFailed(Exception):
    """The log-in is over.

    Args:
        reason: for the log; names no secret.
        told: the sentence for the peer; None for the one that every mechanism has. It says nothing that tells users apart.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told


class NotYet(Exception):
    """The answer to a message needs what takes its time; nothing has changed, and the same message is to be evaluated again after it.

    Args:
        prepare: has it at hand afterwards; blocks, and may run in a thread.
    """

    def __init__(self, prepare: Callable[[], None]) -> None:
        super().__init__()
        self.prepare = prepare


class Identity(NamedTuple):
    """Who is there.

    Args:
        user: the name, without "User:".
        expires_ms: when what was shown ends, as the wall clock has it; None for never.
        by_token: whether a delegation token was shown.
        groups: names of groups that a token claims.
    """

    user: str
    expires_ms: int | None = None
    by_token: bool = False
    groups: tuple[str, ...] = ()


class Exchange(Protocol):
    """One log-in on the server's side."""

    @property
    def identity(self) -> Identity | None:
        """Who is there; None until the exchange is complete."""
        ...

    def claims(self, message: bytes) -> str | None:
        """The user that the client's next message is to prove; empty where it names none, None where it proves nothing yet."""
        ...

    def evaluate(self, message: bytes) -> bytes:
        """The answer to the client's next message; raises AuthenticationFailed, or NotYet."""
        ...
