"""Where Postgres clients connect. Imports nothing of the Postgres protocol."""

from __future__ import annotations

import socket

from barnabas.addresses import host_and_port, joined
from barnabas.errors import ConfigError
from barnabas.listening import listening_socket
from barnabas.web.service import CannotListen

POSTGRES = "postgres.listener"
DEFAULT_POSTGRES = "127.0.0.1:5433"


def postgres_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT. Raises ConfigError."""
    try:
        return host_and_port(text)
    except ValueError:
        raise ConfigError(POSTGRES, text, "HOST:PORT") from None


def listening_for_postgres(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens, and its address with the real port. Raises CannotListen."""
    try:
        listening = listening_socket(host, port)
    except OSError as error:
        raise CannotListen("the Postgres port", joined(host, port), "--postgres-listener HOST:PORT", error) from None
    return listening, joined(host, listening.getsockname()[1])
