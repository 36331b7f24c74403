"""SASL requests without a log-in under way: on a listener without SASL, and on a connection that is logged in.

During a log-in, `server/authentication/` handles them before the dispatcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.server.handlers import Handler, TakeOver, takes

if TYPE_CHECKING:
    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.server.connection import Connection
    from barnabas.server.requests import RequestContext


def handle_sasl_handshake(broker: object, context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def handle_sasl_authenticate(
    broker: object, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    told = "SaslAuthenticate request received after successful authentication"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=told)


HANDLERS: dict[int, Handler[object]] = {
    ApiKey.SASL_HANDSHAKE: takes(SaslHandshakeRequest, handle_sasl_handshake),
    ApiKey.SASL_AUTHENTICATE: takes(SaslAuthenticateRequest, handle_sasl_authenticate),
}


def _begin_again(_broker: object, connection: Connection, _header: RequestHeader, frame: memoryview) -> bool:
    return connection.login is not None and connection.login.begin_again(frame)


FIRST: dict[int, TakeOver[object]] = {ApiKey.SASL_HANDSHAKE: _begin_again}
