"""The guard of each API.

Rules
  1. Every served API has a guard, checks rights itself (`ASKS_ITSELF`), or is open to every client (`OPEN`). A test compares the table
     with the served APIs. A request of any other API closes the connection.
  2. A request in an Envelope has the guard of its own API, with the rights of its original client. The Envelope itself needs the rights of
     a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.errors import ProtocolError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.server.guards import (
    cluster,
    configs,
    consumer_groups,
    describe_apis,
    groups,
    offset_fetch,
    topics,
    transactions,
)
from barnabas.server.guards.guard import Answer, Asked, Guard, GuardedBroker

if TYPE_CHECKING:
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.requests import RequestContext

ASKS_ITSELF = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})
OPEN = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.RENEW_DELEGATION_TOKEN,  # owners and renewers of tokens use this and the next two
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)

GUARDS: dict[int, Guard] = {}
for _family in (cluster, configs, consumer_groups, describe_apis, groups, offset_fetch, topics, transactions):
    GUARDS.update(_family.GUARDS)


def guarded(
    broker: GuardedBroker, authorizer: AccessControl, context: RequestContext, request: Any, handle: Callable[[Any], Answer]
) -> Answer:
    """The answer of `handle` to the allowed part of the request, with the refusals of the rest."""
    guard = GUARDS.get(context.api_key)
    if guard is not None:
        return guard(Asked(broker, context, authorizer.of_request(context)), request, handle)
    if context.api_key not in OPEN:
        raise ProtocolError(f"api {context.api_key} has no guard")
    return handle(request)
