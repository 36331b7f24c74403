"""A few requests straight over the protocol, for what librdkafka has no call for.

These are API versions, settings of every resource type, and deleted offsets of groups.

One blocking connection, one request at a time. Speaks to plain and TLS listeners, with and without SASL.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from importlib import import_module
from secrets import token_hex
from types import TracebackType
from typing import Any, Protocol, Self

from barnabas.cli.errors import BadInput, Failure
from barnabas.error_codes import ErrorCode
from barnabas.errors import Closed, ConfigError
from barnabas.protocol import messages
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_keys import ApiKey

CLIENT_ID = b"barnabas-cli"
MAX_RESPONSE_BYTES = 100 * 1024 * 1024  # a length beyond this means that the other side does not speak the protocol
API_KEYS = {prefix: key for key, (_, prefix, *_) in messages.APIS.items()}


class Target(Protocol):
    """Where the cluster is and how to talk to it: a Connection."""

    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def timeout_s(self) -> float: ...
    def addresses(self) -> Sequence[tuple[str, int]]: ...


class Wire:
    """A connection to one broker, with the versions that both sides know.

    Raises, from every call:
        Failure: the broker is gone, does not answer in time, or does not know the request.
    """

    def __init__(self, connection: Target, address: tuple[str, int]) -> None:
        self._connection = connection
        self._address = address
        self._correlation_id = 0
        self._socket = self._open_socket()
        try:
            self.versions = self._ask_versions()
            self._authenticate()
        except BaseException:
            self.close()
            raise

    @classmethod
    def open_first(cls, connection: Target) -> Self:
        """To the first bootstrap server that can be reached."""
        failure = Failure("no bootstrap server given")
        for address in connection.addresses():
            try:
                return cls(connection, address)
            except Failure as error:
                failure = error
        raise failure

    def to(self, host: str, port: int) -> Wire:
        """Another connection with the same settings."""
        return Wire(self._connection, (host, port))

    def request(self, request: Message) -> Any:
        """Send and wait for the answer, in the newest version that both sides know."""
        prefix = type(request).__name__.removesuffix("Request")
        api_key = API_KEYS[prefix]
        _, _, first, last, _ = messages.APIS[api_key]
        theirs = self.versions.get(api_key)
        if theirs is None or theirs[0] > last or theirs[1] < first:
            raise Failure(f"{self.name} does not know {prefix}")
        return self._exchange(request, api_key, min(last, theirs[1]))

    @property
    def name(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open_socket(self) -> socket.socket:
        try:
            plain = socket.create_connection(self._address, timeout=self._connection.timeout_s)
        except OSError as error:
            raise Failure(f"cannot reach {self.name} ({error.strerror or error}); is a broker running there?") from error
        if "ssl" not in self._protocol():
            return plain
        try:
            return _tls_context(self._connection.properties).wrap_socket(plain, server_hostname=self._address[0])
        except OSError as error:
            plain.close()
            raise Failure(f"no TLS connection to {self.name}: {error}") from error

    def _protocol(self) -> str:
        return self._connection.properties.get("security.protocol", "plaintext").lower()

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        from barnabas.protocol.messages.api_versions import ApiVersionsRequest

        request = ApiVersionsRequest(client_software_name="barnabas-cli", client_software_version="1")
        answer = self._exchange(request, ApiKey.API_VERSIONS, 3)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = self._exchange(ApiVersionsRequest(), ApiKey.API_VERSIONS, 0)
        return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    def _authenticate(self) -> None:
        from barnabas.client.config import credentials_from
        from barnabas.client.errors import ClientError
        from barnabas.client.sasl import log_in

        credentials = credentials_from(self._connection.properties)
        if credentials is None:
            return
        answer: Any = None
        try:
            login = log_in(credentials.at_hand(self._address[0]), self.name, token_hex(16))
            while True:
                answer = self.request(login.send(answer))
        except StopIteration:
            return
        except ClientError as error:
            raise Failure(str(error)) from error

    def _exchange(self, request: Message, api_key: int, version: int) -> Any:
        self._correlation_id += 1
        flexible = version >= messages.APIS[api_key][4]
        head = struct.pack(">hhih", api_key, version, self._correlation_id, len(CLIENT_ID)) + CLIENT_ID + b"\0" * flexible
        body = head + encode(request, version)
        try:
            self._socket.sendall(struct.pack(">i", len(body)) + body)
            data = self._receive(self._receive_size())
        except TimeoutError as error:
            raise Failure(f"{self.name} did not answer within {self._connection.timeout_s:g} s") from error
        except (OSError, Closed) as error:
            raise Failure(f"{self.name} closed the connection: {error}") from error
        return self._parse(data, api_key, version, flexible and api_key != ApiKey.API_VERSIONS)

    def _parse(self, data: bytes, api_key: int, version: int, tagged_header: bool) -> Any:
        if api_key == ApiKey.API_VERSIONS and data[4:6] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION):
            version = 0  # KIP-511: the refusal comes in the oldest version
        module_name, prefix, *_ = messages.APIS[api_key]
        response = getattr(import_module(f"barnabas.protocol.messages.{module_name}"), f"{prefix}Response")
        return decode(response, version, memoryview(data)[5 if tagged_header else 4 :])

    def _receive_size(self) -> int:
        (size,) = struct.unpack(">i", self._receive(4))
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise Failure(f"{self.name} does not speak the Kafka protocol (or wants TLS: -X security.protocol=ssl)")
        return int(size)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise Closed("it ended in the middle of an answer" if data else "it ended without an answer")
            data += piece
        return bytes(data)


def _tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    from barnabas.tls.contexts import client_context
    from barnabas.tls.settings import client_settings

    try:
        return client_context(client_settings(properties))
    except ConfigError as error:
        raise BadInput(str(error)) from error


def code_name(code: int) -> str:
    """The name of an error code; unknown ones by number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"
