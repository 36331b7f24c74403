"""The URL of a service's listener, and the socket for it."""

from __future__ import annotations

import errno
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from barnabas.web.service import ServiceEntry, ServiceError

BACKLOG = 1_024
WILDCARDS = frozenset({"0.0.0.0", "::"})


class Listener(NamedTuple):
    """An address with its scheme; port 0 means any free port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def reached_at(listener: Listener, host_name: str | None) -> Listener:
    """The address of a service for other instances, in lower case, because instances compare URLs.

    Args:
        host_name: the setting `host.name`; without it, the address of a listener on all addresses is the name of this machine.
    """
    host = host_name or (socket.gethostname() if listener.host in WILDCARDS else listener.host)
    return listener._replace(host=host.lower())


def parse_listener(text: str, default_port: int) -> Listener:
    """A listener from `http://host:port` or `https://host:port`; raises ServiceError."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ServiceError(f"{text!r} is not http://HOST:PORT or https://HOST:PORT") from None
    if url.scheme not in {"http", "https"} or not url.hostname or url.path not in {"", "/"} or url.query or url.username:
        raise ServiceError(f"{text!r} is not http://HOST:PORT or https://HOST:PORT")
    return Listener(url.scheme, url.hostname, default_port if port is None else port)


def check_postgres(address: str) -> None:
    """Raises ServiceError if Postgres clients cannot be served at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_server((host.strip("[]"), int(port))).close()
    except (OSError, ValueError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "another program has this port" if taken else getattr(error, "strerror", None) or str(error)
        raise ServiceError(
            f"SQL cannot listen on {address} for Postgres clients: {reason}; "
            "--postgres-listener HOST:PORT chooses another address, and port 0 takes a free port"
        ) from None


def bind(entry: ServiceEntry, listener: Listener) -> socket.socket:
    """A listening socket; raises ServiceError with a line that names the service and a solution."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServiceError(f"the {entry.title} cannot listen on {listener}: {error.strerror}") from None
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        reason = "another program has this port" if error.errno == errno.EADDRINUSE else error.strerror
        raise ServiceError(
            f"the {entry.title} cannot listen on {listener}: {reason}; "
            f"--{entry.name}-listener http://HOST:PORT chooses another address, and port 0 takes a free port"
        ) from None
    return made
