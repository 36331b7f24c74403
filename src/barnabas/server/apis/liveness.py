"""BrokerHeartbeat: the brokers of a cluster ask each other for signs of life.

Brokers that do not know this request send a WriteTxnMarkers without markers instead, and get the same from others
(`cluster/liveness_prober.py`). The broker answers both requests before it decodes them. The thread of `cluster/liveness_responder.py`
answers the ones that follow on the same connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from barnabas.security.acls import Operation
from barnabas.server.answers import encode_answer
from barnabas.server.cluster.liveness_responder import PROBER_CLIENT_ID_SUFFIX, LivenessResponder
from barnabas.server.handlers import Handler, TakeOver, takes

if TYPE_CHECKING:
    from barnabas.protocol.base_message import Message
    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.connection import Connection
    from barnabas.server.requests import RequestContext

NO_MARKERS = b"\1"  # the length of an empty array in a flexible version


class LivenessBroker(Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    liveness_responder: LivenessResponder | None
    loop: asyncio.AbstractEventLoop


def handle_broker_heartbeat(
    broker: LivenessBroker, context: RequestContext, request: BrokerHeartbeatRequest
) -> BrokerHeartbeatResponse:
    """BrokerHeartbeat (api 63), when no thread answers it."""
    return _ALIVE


def _answer_heartbeat(broker: LivenessBroker, connection: Connection, header: RequestHeader, frame: memoryview) -> bool:
    """Answer a heartbeat of a broker; False for other clients, which the guard refuses."""
    responder = broker.liveness_responder
    if responder is None or not _is_broker(broker, connection):
        return False
    _answer(broker, responder, connection, header, frame, _ALIVE)
    return True


def _answer_no_markers(broker: LivenessBroker, connection: Connection, header: RequestHeader, frame: memoryview) -> bool:
    responder = broker.liveness_responder
    if responder is None or frame[header.body : header.body + 1] != NO_MARKERS:
        return False
    _answer(broker, responder, connection, header, frame, WriteTxnMarkersResponse())
    return True


def _answer(
    broker: LivenessBroker,
    responder: LivenessResponder,
    connection: Connection,
    header: RequestHeader,
    frame: memoryview,
    response: Message,
) -> None:
    """Answer; on a connection that only sends probes, let the thread answer the following ones."""
    answer = encode_answer(response, header)
    connection.send([answer])
    if (header.client_id or "").endswith(PROBER_CLIENT_ID_SUFFIX) and _is_broker(broker, connection):
        # After all requests that arrived with this one are handled
        broker.loop.call_soon(responder.take, connection, bytes(frame), bytes(answer))


def _is_broker(broker: LivenessBroker, connection: Connection) -> bool:
    authorizer = broker.authorizer
    return authorizer is None or authorizer.of_connection(connection).allows_cluster(Operation.CLUSTER_ACTION)


_ALIVE = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
BETWEEN_BROKERS: dict[int, Handler[LivenessBroker]] = {
    ApiKey.BROKER_HEARTBEAT: takes(BrokerHeartbeatRequest, handle_broker_heartbeat),
}
FIRST: dict[int, TakeOver[LivenessBroker]] = {
    ApiKey.BROKER_HEARTBEAT: _answer_heartbeat,
    ApiKey.WRITE_TXN_MARKERS: _answer_no_markers,
}
