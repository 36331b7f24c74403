"""SASL requests where there is nothing to log in to: on a listener without SASL, and on a connection that is logged in.

What they mean during a log-in is decided before the dispatcher (`server/authentication/`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.server.broker import Broker
    from barnabas.server.requests import RequestContext


def handle_sasl_handshake(broker: Broker, context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def handle_sasl_authenticate(
    broker: Broker, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    told = "SaslAuthenticate request received after successful authentication"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=told)


HANDLERS = {ApiKey.SASL_HANDSHAKE: handle_sasl_handshake, ApiKey.SASL_AUTHENTICATE: handle_sasl_authenticate}
