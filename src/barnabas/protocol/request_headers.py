"""Request and response headers, and the versions of each API whose headers are flexible (KIP-482)."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import skip_tagged_fields
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.tuples import new_tuple

CORRELATION_ID_BYTES = 4  # the whole response header of versions that are not flexible
API_BYTES = 4  # API key and version, the first fields of a request
BEHIND_CORRELATION_ID = API_BYTES + CORRELATION_ID_BYTES
API_VERSIONS = int(ApiKey.API_VERSIONS)
_FIRST_FLEXIBLE = {api_key: api[4] for api_key, api in APIS.items()}
_NEVER = 1 << 15  # above all versions
_START = Struct(">hhih")  # api key, api version, correlation id, length of the client id


class RequestHeader(NamedTuple):
    """The header of a request; `body` is the position of the body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: int


def has_flexible_request_header(api_key: int, version: int) -> bool:
    return version >= _FIRST_FLEXIBLE.get(api_key, _NEVER)


def has_flexible_response_header(api_key: int, version: int) -> bool:
    """Whether a response has the flexible header; responses to ApiVersions never have it, so that every client can read them."""
    return api_key != API_VERSIONS and has_flexible_request_header(api_key, version)


def read_request_header(frame: memoryview) -> RequestHeader:
    """The header of a frame without its size.

    Raises:
        MalformedMessage: the frame is too short, or the client id is not UTF-8.
    """
    if len(frame) < _START.size:
        raise MalformedMessage("RequestHeader", 1, f"{len(frame)} bytes")
    api_key, version, correlation_id, length = _START.unpack_from(frame)
    position = _START.size
    client_id = None
    if length >= 0:
        end = position + length
        if end > len(frame):
            raise MalformedMessage("RequestHeader", 1, f"a client id of {length} bytes where {len(frame) - position} are left")
        try:
            client_id = str(frame[position:end], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage("RequestHeader", 1, str(error)) from error
        position = end
    if has_flexible_request_header(api_key, version):
        if position < len(frame) and not frame[position]:  # the usual case: no tagged fields
            position += 1
        else:
            position = _skip_tags(frame, position, "RequestHeader", 2)
    return new_tuple(RequestHeader, (api_key, version, correlation_id, client_id, position))


def write_request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The bytes of a request header, between the size of the frame and the body."""
    encoded = None if client_id is None else client_id.encode()
    start = _START.pack(api_key, version, correlation_id, -1 if encoded is None else len(encoded))
    return start + (encoded or b"") + (b"\0" if has_flexible_request_header(api_key, version) else b"")


def after_response_header(frame: memoryview, api_key: int, version: int) -> int:
    """The position of the body of a response in a frame without its size.

    Raises:
        MalformedMessage: the tagged fields do not end.
    """
    if not has_flexible_response_header(api_key, version):
        return CORRELATION_ID_BYTES
    return _skip_tags(frame, CORRELATION_ID_BYTES, "ResponseHeader", 1)


def _skip_tags(frame: memoryview, position: int, header: str, version: int) -> int:
    """The end of the tagged fields of a header; all of them are skipped."""
    try:
        return skip_tagged_fields(frame, position, {}, None)
    except (IndexError, ValueError) as error:
        raise MalformedMessage(header, version, str(error)) from error
