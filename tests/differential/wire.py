"""One blocking connection to a broker, for requests that are built by kio and answers that are read by our codec.

kio writes the requests, so that a fault of our own writers cannot hide itself; what kio refuses to write (the invalid cases) is
written by our codec when asked so, and so is what Kafka 4 dropped, which kio does not know.
`tests/protocol` holds the two codecs against each other.
"""

from __future__ import annotations

import dataclasses
import io
import socket
import struct
import typing
from datetime import timedelta
from functools import cache
from types import TracebackType
from typing import Any

from kio.index import load_entity_schema
from kio.serial import entity_writer
from kio.static.constants import EntityType

from barnabas.protocol import messages
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode

CLIENT_ID = "differential"
ANSWER_TIMEOUT_S = 15.0
KEYS = {prefix: key for key, (_, prefix, *_) in messages.APIS.items()}


class ConnectionEnded(Exception):
    """The broker closed the connection where an answer was due."""


def api_of(request: Message) -> str:
    """The API's name: the class's without `Request`."""
    return type(request).__name__.removesuffix("Request")


def api_key_of(request: Message) -> int:
    """The API key of a request."""
    return KEYS[api_of(request)]


@cache
def response_class(api_key: int) -> type[Message]:
    """The class of an API's answer."""
    module, prefix, *_ = messages.APIS[api_key]
    page = __import__(f"barnabas.protocol.messages.{module}", fromlist=["*"])
    found: type[Message] = getattr(page, prefix + "Response")
    return found


@cache
def _item_types(schema: type[Any]) -> dict[str, Any]:
    """kio's class of each field that holds messages."""
    found = {}
    for name, hint in typing.get_type_hints(schema).items():
        parts = [hint, *typing.get_args(hint)]
        parts += [inner for part in parts for inner in typing.get_args(part)]
        found[name] = next((part for part in parts if dataclasses.is_dataclass(part)), None)
    return found


def to_kio(message: Message, schema: type[Any]) -> Any:
    """`message` as an entity of kio's class for the version."""
    values = {}
    for field in dataclasses.fields(schema):
        ours = next(name for name in (field.name, field.name + "_ms", field.name + "_") if hasattr(message, name))
        value = getattr(message, ours)
        item = _item_types(schema)[field.name]  # type: ignore[arg-type]  # classes are hashable
        if "timedelta" in str(field.metadata.get("kafka_type")):
            value = timedelta(milliseconds=value)
        elif isinstance(value, Message):
            value = to_kio(value, item)
        elif isinstance(value, list | tuple):
            value = tuple(to_kio(each, item) if isinstance(each, Message) else each for each in value)
        values[field.name] = value
    return schema(**values)


def request_body(request: Message, version: int, *, by_kio: bool = True) -> bytes:
    """The bytes after the header."""
    if not by_kio or version < messages.FIRST_VERSIONS_OF_KAFKA_4.get(api_key_of(request), 0):
        return bytes(encode(request, version))
    module = messages.APIS[api_key_of(request)][0]
    schema = load_entity_schema(module, version, EntityType.request)
    out = io.BytesIO()
    entity_writer(schema)(out, to_kio(request, schema))
    return out.getvalue()


def request_header(
    api_key: int, version: int, correlation_id: int, *, flexible: bool, client_id: str | None = CLIENT_ID
) -> bytes:
    """Request header version 1, or 2 where the request is flexible."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    return struct.pack(">hhih", api_key, version, correlation_id, length) + name + (b"\0" if flexible else b"")


def framed(payload: bytes) -> bytes:
    """`payload` behind its size."""
    return struct.pack(">i", len(payload)) + payload


class Line:
    """A connection; answers must come in the order of the requests."""

    def __init__(self, address: tuple[str, int], *, client_id: str = CLIENT_ID) -> None:
        self.client_id = client_id
        self.last_correlation_id = 0
        self.waiting: list[tuple[int, int, int]] = []  # correlation id, API key, version
        self.socket = socket.create_connection(address, timeout=ANSWER_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: Message, version: int, *, by_kio: bool = True) -> None:
        """Send without waiting for the answer."""
        self.socket.sendall(self._frame(request, version, by_kio=by_kio))

    def send_together(self, *asked: tuple[Message, int]) -> None:
        """Send requests, each with its version, in one write."""
        self.socket.sendall(b"".join(self._frame(request, version, by_kio=True) for request, version in asked))

    def _frame(self, request: Message, version: int, *, by_kio: bool) -> bytes:
        """A request whose answer is waited for from now on."""
        key = api_key_of(request)
        self.last_correlation_id += 1
        flexible = version >= messages.APIS[key][4]
        header = request_header(key, version, self.last_correlation_id, flexible=flexible, client_id=self.client_id)
        self.waiting.append((self.last_correlation_id, key, version))
        return framed(header + request_body(request, version, by_kio=by_kio))

    def forget_last(self) -> None:
        """Expect no answer to what was sent last (Produce with acks 0)."""
        self.waiting.pop()

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet, of that API's class.

        Raises:
            ConnectionEnded: the broker closed the connection.
        """
        correlation_id, key, version = self.waiting.pop(0)
        frame = self.receive_frame()
        answered = int.from_bytes(frame[:4], "big", signed=True)
        assert answered == correlation_id, f"answer {answered} where {correlation_id} is due"
        flexible_header = version >= messages.APIS[key][4] and key != KEYS["ApiVersions"]
        return decode(response_class(key), version, frame, 5 if flexible_header else 4)

    def receive_frame(self) -> bytes:
        """One frame as it came, without its size."""
        return self._receive_bytes(int.from_bytes(self._receive_bytes(4), "big"))

    def _receive_bytes(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionEnded
            data += piece
        return bytes(data)

    def close(self) -> None:
        """End the connection."""
        self.socket.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
