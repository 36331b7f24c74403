"""The seam between the host and a service: what each service brings, and what it is given."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.web.routing import HttpError, Response, Router


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The values that the host gives to a service.

    Args:
        client: how to reach the cluster, with the log-in of the service itself.
        listener: the URL at which the service is reached, such as `http://127.0.0.1:8081`, with the port that it really has.
        settings: those of the service's own configuration keys that were given.
        secured: whether callers log in, so that `Request.caller` is true and rights are to be asked for.
        peers: makes the TLS context of connections to other instances of the service; None if the listener is not https.
    """

    client: ClientConfig
    listener: str
    settings: Mapping[str, str]
    secured: bool = False
    peers: Callable[[], ssl.SSLContext] | None = None


class Service(Protocol):
    """One HTTP surface. The host calls `start` once, then passes requests to `router`, and calls `close` at the end."""

    @property
    def router(self) -> Router:
        """Its routes; they are complete before `start`."""

    async def start(self) -> None:
        """Become ready: return when requests can be answered. Raises ServiceError with one line if it never will."""

    async def close(self) -> None:
        """Stop everything it started; safe to call twice and after a failed start."""

    def is_ready(self) -> bool:
        """Whether a request would be answered now (`/readyz`)."""

    def error(self, error: HttpError) -> Response:
        """An error in the service's own form."""


class ServiceError(Exception):
    """A service cannot start. The message is one line that names the way out."""


class ServiceEntry(NamedTuple):
    """A row of the table of services.

    Args:
        name: as `--services` and the commands have it.
        title: as the line that tells that it is ready has it: `barnabas TITLE accepts connections on URL`.
        port: by convention.
        extra: of pip, which brings what it needs.
        libraries: the modules that the extra brings.
        load: imports the service and makes it.
        timeout_s: of a request, up to the first byte of its answer.
        follows_clients: whether a request is cancelled when its client goes away.
    """

    name: str
    title: str
    port: int
    extra: str
    libraries: tuple[str, ...]
    load: Callable[[ServiceContext], Service]
    timeout_s: float = limits.SERVICE_REQUEST_TIMEOUT_S
    follows_clients: bool = False
