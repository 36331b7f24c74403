"""How a client proves who it is."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from barnabas.sql.interface import Caller
from barnabas.sql.postgres import answers
from barnabas.sql.postgres.channel import Channel
from barnabas.sql.postgres.messages import PASSWORD, Fatal
from barnabas.sql.postgres.startup import Startup


class Login:
    """A client that wants a session.

    Args:
        address: of its machine.
        is_encrypted: whether it came by TLS.
    """

    def __init__(
        self,
        startup: Startup,
        channel: Channel,
        *,
        address: str = "",
        is_encrypted: bool = False,
    ) -> None:
        self.startup, self.address, self.is_encrypted = startup, address, is_encrypted
        self._channel = channel

    def ask(self, kind: int, data: bytes = b"") -> bytes:
        """Send an authentication request and wait for the answer. Raises Fatal for another message, and Gone."""
        self.tell(kind, data)
        self._channel.flush()
        message = self._channel.receive()
        if message.kind != PASSWORD:
            raise Fatal("08P01", f"expected password response, got message type {message.kind[0]}")
        return message.body

    def tell(self, kind: int, data: bytes = b"") -> None:
        """Send an authentication message that has no answer."""
        self._channel.send(answers.authentication(kind, data))

    def caller(self, user: str | None = None, settings: dict[str, str] | None = None) -> Caller:
        """The owner of the session. It has Postgres' rules for division and nulls unless the client asks for Spark's."""
        startup = self.startup
        return Caller(user or startup.user, startup.database, settings or {}, {"sql_dialect": "postgres", **startup.parameters})


class LoggedIn(NamedTuple):
    """A log-in that succeeded.

    Args:
        lasts_s: until the cluster accepts its credentials no more. The session ends then, so that pools of clients log in again.
    """

    caller: Caller
    lasts_s: float = math.inf


class Authenticator(Protocol):
    """Decides about log-ins. It is called in the thread of the session, and may block."""

    def log_in(self, login: Login) -> LoggedIn:
        """Raises SqlError, for example 28P01."""


class Trust:
    """Believes every name. The sessions act as the server's own client."""

    def log_in(self, login: Login) -> LoggedIn:
        return LoggedIn(login.caller())
