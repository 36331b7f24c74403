"""The server's interface of all SASL mechanisms: messages in, answers out, until the client is authenticated or the log-in
fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class AuthenticationFailed(Exception):
    """The log-in failed.

    Args:
        reason: for the log; contains no secret.
        told: the sentence for the peer; None for the general one. It must not reveal which users exist.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told


class NotYet(Exception):
    """The answer needs a slow computation; nothing has changed, and the caller evaluates the same message again after it.

    Args:
        prepare: does the computation and stores the result. It blocks, and may run in a thread.
    """

    def __init__(self, prepare: Callable[[], None]) -> None:
        super().__init__()
        self.prepare = prepare


class Identity(NamedTuple):
    """The authenticated user.

    Args:
        user: the name without "User:".
        expires_ms: the end of the credential's lifetime by the wall clock, in ms since 1970; None for never.
        by_token: whether the client used a delegation token.
        groups: the names of groups in a token's claims.
    """

    user: str
    expires_ms: int | None = None
    by_token: bool = False
    groups: tuple[str, ...] = ()


class Exchange(Protocol):
    """One log-in on the server's side."""

    @property
    def identity(self) -> Identity | None:
        """The authenticated user; None until the exchange is complete."""
        ...

    def claims(self, message: bytes) -> str | None:
        """The user that the client's next message claims to be; "" if it names none, None if this message does not authenticate
        a user yet."""
        ...

    def evaluate(self, message: bytes) -> bytes:
        """The answer to the client's next message; raises AuthenticationFailed, or NotYet."""
        ...
