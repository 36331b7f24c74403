"""One connection without its socket: requests become frames, frames become responses, in order.

Owns the correlation ids, the versions agreed with the broker, and the requests in flight.

Rules
  1. Before the versions are known, the client sends only ApiVersions.
  2. Responses come in the order of the requests; any other correlation id ends the connection.
  3. A frame's size is checked against `MAX_RESPONSE_BYTES` before memory is allocated.
  4. After the broker has broken the protocol, the client reads and sends nothing more: the meaning of the broker's bytes is
     unknown.

Ugly: The response to ApiVersions has a version-0 header in every version, and a version-0 body if the broker does not know our
version (KIP-511). Only this module handles these special cases.
"""

from __future__ import annotations

import struct
from collections import deque
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from barnabas import __version__
from barnabas.client.config import MAX_RESPONSE_BYTES
from barnabas.client.errors import UnsupportedRequest
from barnabas.error_codes import ErrorCode
from barnabas.errors import Closed, FrameTooLarge, KafkaError, ProtocolError
from barnabas.protocol.base_message import Buffer, Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.request_headers import after_response_header, write_request_header

SOFTWARE_NAME = "barnabas"
_SIZE = struct.Struct(">i")
_ERROR_CODE = struct.Struct(">h")


class Api(Struct, frozen=True):
    """The API of a request class."""

    key: int
    name: str
    first_version: int
    last_version: int
    response: type[Message]


def api_of(request: type[Message]) -> Api:
    """The API of `request`, found in the module that holds its request and response classes."""
    return _api_of_module(request.__module__)


@cache
def _api_of_module(module: str) -> Api:
    for key, (name, prefix, first, last, _) in APIS.items():
        if name == module.rpartition(".")[2]:
            return Api(key, prefix, first, last, getattr(import_module(module), f"{prefix}Response"))
    raise TypeError(f"{module} holds no request")


class _InFlight(Struct):
    correlation_id: int
    api: Api
    version: int


class Wire:
    """The state of one connection.

    Args:
        client_id: sent with every request.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._next_correlation_id = 0
        self._in_flight: deque[_InFlight] = deque()
        self._versions: dict[int, tuple[int, int]] | None = None
        self._features: dict[str, int] = {}
        self._broken: ProtocolError | None = None  # the protocol violation by the broker, if any

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return len(self._in_flight)

    @property
    def ready(self) -> bool:
        """Whether client and broker have agreed on versions."""
        return self._versions is not None

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The broker's first and last version by API key; empty before the response to ApiVersions."""
        return self._versions or {}

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature of the cluster; 0 if there is none (KIP-584)."""
        return self._features.get(name, 0)

    def version_of(self, request: type[Message], at_most: int | None = None, at_least: int | None = None) -> int:
        """The newest version that both sides support; raises UnsupportedRequest if there is none."""
        api = api_of(request)
        first = api.first_version if at_least is None else max(at_least, api.first_version)
        last = api.last_version if at_most is None else min(at_most, api.last_version)
        theirs = self.versions.get(api.key)
        if theirs is None or theirs[1] < first or theirs[0] > last:
            raise UnsupportedRequest(api.name, (first, last), theirs)
        return min(last, theirs[1])

    def send(self, request: Message, at_most: int | None = None, at_least: int | None = None) -> bytes:
        """The frame of `request` in the agreed version; raises UnsupportedRequest."""
        return self._frame(request, self.version_of(type(request), at_most, at_least))

    def send_hello(self, version: int | None = None) -> bytes:
        """The ApiVersions request that opens every connection."""
        hello = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
        return self._frame(hello, ApiVersionsRequest.LAST_VERSION if version is None else version)

    def receive_hello(self, body: Buffer) -> bytes | None:
        """Receive the response to `send_hello`; returns a frame to send if the request must be repeated in an older version."""
        entry = self._take(body)
        error = _ERROR_CODE.unpack_from(body, 4)[0]
        version = 0 if error == ErrorCode.UNSUPPORTED_VERSION else entry.version
        answer = decode(ApiVersionsResponse, version, memoryview(body), 4)
        spoken = {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}
        if error == ErrorCode.UNSUPPORTED_VERSION and entry.version > 0:
            return self.send_hello(min(entry.version - 1, spoken.get(ApiKey.API_VERSIONS, (0, 0))[1]))
        if error:
            raise KafkaError(ErrorCode(error), "ApiVersions")
        self._versions = spoken
        self._features = {item.name: item.max_version_level for item in answer.finalized_features}
        return None

    def receive(self, body: Buffer) -> Any:
        """The response in a frame (without its size), matched with the oldest request in flight; raises ProtocolError."""
        try:
            entry = self._take(body)
            view = memoryview(body)
            return decode(entry.api.response, entry.version, view, after_response_header(view, entry.api.key, entry.version))
        except ProtocolError as error:
            self._broken = error
            raise

    def receive_start(self, start: memoryview) -> tuple[int, int]:
        """The version of a response whose frame begins with these bytes, and the position of its body; the caller reads the body.

        Raises:
            ProtocolError: as `receive`.
        """
        try:
            entry = self._take(start)
            return entry.version, after_response_header(start, entry.api.key, entry.version)
        except ProtocolError as error:
            self._broken = error
            raise

    def _take(self, body: Buffer) -> _InFlight:
        self._check_unbroken()
        if len(body) < 6 or not self._in_flight:
            raise ProtocolError(f"a frame of {len(body)} bytes, {len(self._in_flight)} requests in flight")
        entry = self._in_flight.popleft()
        correlation_id = _SIZE.unpack_from(body)[0]
        if correlation_id != entry.correlation_id:
            raise ProtocolError(f"correlation id {correlation_id} instead of {entry.correlation_id}")
        return entry

    def _check_unbroken(self) -> None:
        if self._broken is not None:
            raise Closed(f"the broker broke the protocol: {self._broken}")

    def _frame(self, request: Message, version: int) -> bytes:
        self._check_unbroken()
        api = api_of(type(request))
        body = encode(request, version)
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        self._in_flight.append(_InFlight(correlation_id, api, version))
        header = write_request_header(api.key, version, correlation_id, self._client_id)
        return b"".join((_SIZE.pack(len(header) + len(body)), header, body))


def size_of_frame(header: Buffer) -> int:
    """The number of bytes after the size; raises FrameTooLarge."""
    size: int = _SIZE.unpack_from(header)[0]
    if not 0 <= size <= MAX_RESPONSE_BYTES:
        raise FrameTooLarge(size, MAX_RESPONSE_BYTES)
    return size
