"""The interface between the host and a service: the parts of a service, and the values that the host gives to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # a command that only looks whether a service can run loads none of these
    import ssl

    from barnabas.client.config import ClientConfig
    from barnabas.web.routing import HttpError, Response, Router


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The values that the host gives to a service.

    Args:
        client: the client settings for the cluster, with the log-in of the service itself.
        listener: the URL of the service, such as `http://127.0.0.1:8081`, with the real port.
        settings: the given values of the service's own configuration keys.
        secured: whether callers log in. If so, `Request.caller` is authenticated, and the service must check rights.
        peers: creates the TLS context for connections to other instances of the service; None if the listener is not https.
        tls: the context of the listener; None if it is not https.
        neighbours: the URLs of all services of this process, by their names.
    """

    client: ClientConfig
    listener: str
    settings: Mapping[str, str]
    secured: bool = False
    peers: Callable[[], ssl.SSLContext] | None = None
    tls: ssl.SSLContext | None = None
    neighbours: Mapping[str, str] = field(default_factory=dict)


class Service(Protocol):
    """One HTTP service. The host calls `start` once, then passes requests to `router`, and calls `close` at the end."""

    @property
    def router(self) -> Router:
        """The routes of the service; they are complete before `start`."""

    @property
    def ready_lines(self) -> Sequence[str]:
        """The lines about its other ports that the host prints after `start`."""

    async def start(self) -> None:
        """Become ready; returns when the service can answer requests. Raises ServiceError with one line if it cannot start."""

    async def close(self) -> None:
        """Stop everything it started; safe to call twice and after a failed start."""

    def is_ready(self) -> bool:
        """Whether the service can answer a request now (`/readyz`)."""

    def error(self, error: HttpError) -> Response:
        """An error in the service's own form."""

    async def metrics(self) -> bytes:
        """Metrics of its own for `/metrics`, in the text format of Prometheus; empty if it has none."""


class ServiceError(Exception):
    """A service cannot start. The message is one line that names a solution."""


class CannotListen(ServiceError):
    """A service cannot have one of its addresses.

    Args:
        who: in the message.
        option: of the command, for another address.
    """

    def __init__(self, who: str, address: str, option: str, error: OSError) -> None:
        super().__init__(
            f"{who} cannot listen on {address}: {error.strerror}; {option} chooses another address, and port 0 takes a free port"
        )


class ServiceEntry(NamedTuple):
    """A row of the table of services.

    Args:
        name: its name in `--services` and in the commands.
        title: its name in the line that it is ready: `barnabas TITLE accepts connections on URL`.
        port: its usual port.
        extra: the pip extra that installs its libraries.
        libraries: the modules that the extra installs.
        load: imports the service and creates it.
        timeout_s: of a request, up to the first byte of its answer; None: SERVICE_REQUEST_TIMEOUT_S.
        follows_clients: whether a request is cancelled when its client goes away.
    """

    name: str
    title: str
    port: int
    extra: str
    libraries: tuple[str, ...]
    load: Callable[[ServiceContext], Service]
    timeout_s: float | None = None
    follows_clients: bool = False
