"""Sends requests that librdkafka does not offer, directly over the protocol.

Examples are ApiVersions, settings of every resource type, and deleting offsets of groups.

It has one blocking connection, sends one request at a time, and uses the command's client settings. It raises the errors of
commands.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from barnabas.cli.errors import BadInput, Failure
from barnabas.client.config import ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, ConnectionFailed, TimedOut, UnsupportedRequest
from barnabas.client.plans import Call
from barnabas.errors import ConfigError, ProtocolError
from barnabas.protocol.base_message import Message

CLIENT_ID = "barnabas-cli"


class Target(Protocol):
    """The address of the cluster and the client settings: a command's `Connection`."""

    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def timeout_s(self) -> float: ...
    def addresses(self) -> Sequence[tuple[str, int]]: ...


class Wire:
    """A connection to one broker, with the versions that both sides support.

    Raises, from every call:
        Failure: the broker ended the connection, does not answer in time, or does not support the request.
        BadInput: invalid client settings.
    """

    def __init__(self, target: Target, address: tuple[str, int]) -> None:
        self._target = target
        self._address = address
        config = _settings(target, address)
        try:
            self._connection = Connection(address, config)
        except ClientError as error:
            raise self._failure(error, while_opening=True) from error

    @classmethod
    def open_first(cls, target: Target) -> Self:
        """Connects to the first bootstrap server that can be reached."""
        failure = Failure("no bootstrap server given")
        for address in target.addresses():
            try:
                return cls(target, address)
            except Failure as error:
                failure = error
        raise failure

    def to(self, host: str, port: int) -> Wire:
        """Another connection with the same settings."""
        return Wire(self._target, (host, port))

    def request(self, request: Message) -> Any:
        """Send a request in the newest version that both sides support, and wait for the response."""
        try:
            self._connection.send(Call(request))
            return self._connection.receive()
        except ClientError as error:
            raise self._failure(error) from error

    @property
    def name(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """The first and the last version of each request that the broker supports, by API key."""
        return self._connection.wire.versions

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _failure(self, error: ClientError, *, while_opening: bool = False) -> Failure:
        cause = error.__cause__
        if isinstance(error, TimedOut):
            return Failure(f"{self.name} did not answer within {self._target.timeout_s:g} s")
        if isinstance(error, UnsupportedRequest):
            return Failure(f"{self.name} does not support {error.request}")
        if not isinstance(error, ConnectionFailed):
            return Failure(str(error))
        if isinstance(cause, ProtocolError):
            return Failure(f"{self.name} does not speak the Kafka protocol (or requires TLS: -X security.protocol=ssl)")
        if isinstance(cause, ssl.SSLError):
            return Failure(f"no TLS connection to {self.name}: {error.reason}")
        if while_opening and isinstance(cause, OSError):
            return Failure(f"cannot reach {self.name} ({error.reason}); is a broker running there?")
        return Failure(f"{self.name} ended the connection: {error.reason}")


def _settings(target: Target, address: tuple[str, int]) -> ClientConfig:
    limit_ms = str(max(1, round(target.timeout_s * 1000)))
    limits = {"request.timeout.ms": limit_ms, "socket.connection.setup.timeout.ms": limit_ms}
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    own = {"bootstrap.servers": f"{host}:{address[1]}", "client.id": CLIENT_ID}
    try:
        return ClientConfig.from_options({**target.properties, **limits, **own})
    except ConfigError as error:
        raise BadInput(str(error)) from error
