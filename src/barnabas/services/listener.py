"""The URL of a service's listener, and the socket for it."""

from __future__ import annotations

import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from barnabas.addresses import joined
from barnabas.listening import listening_socket
from barnabas.web.service import CannotListen, ServiceEntry, ServiceError

WILDCARDS = frozenset({"0.0.0.0", "::"})


class Listener(NamedTuple):
    """An address with its scheme; port 0 means any free port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{joined(self.host, self.port)}"


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


def option_of(entry: ServiceEntry) -> str:
    """The option for the listener of a service beside others."""
    return f"--{entry.name}-listener"


def bind(entry: ServiceEntry, listener: Listener, option: str) -> socket.socket:
    """A listening socket. Raises CannotListen; its message names the option of the command that sets the listener."""
    try:
        return listening_socket(listener.host, listener.port)
    except OSError as error:
        raise CannotListen(entry.title, str(listener), f"{option} http://HOST:PORT", error) from None
