"""Turns a response into the frame of an answer."""

from __future__ import annotations

from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING

from barnabas.protocol.codec import writer_of
from barnabas.protocol.messages import APIS
from barnabas.protocol.request_headers import has_flexible_response_header

if TYPE_CHECKING:
    from barnabas.protocol.base_message import Message
    from barnabas.protocol.request_headers import RequestHeader

_FRAME_HEAD = Struct(">ii")


def response_class(api_key: int) -> type[Message]:
    module, prefix, *_ = APIS[api_key]
    found: type[Message] = getattr(import_module(f"barnabas.protocol.messages.{module}"), prefix + "Response")
    return found


def encode_answer(response: Message, header: RequestHeader) -> bytearray:
    """The frame of an answer, with its size in front."""
    out = bytearray(_FRAME_HEAD.pack(0, header.correlation_id))
    if has_flexible_response_header(header.api_key, header.api_version):
        out.append(0)
    writer_of(type(response), header.api_version)(response, out)
    _FRAME_HEAD.pack_into(out, 0, len(out) - 4, header.correlation_id)
    return out


def request_class(api_key: int) -> type[Message]:
    module, prefix, *_ = APIS[api_key]
    found: type[Message] = getattr(import_module(f"barnabas.protocol.messages.{module}"), prefix + "Request")
    return found
