"""Fetch: opens the session of a request and starts the fetch; a request that may come again becomes a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode_request
from barnabas.protocol.fetch import write_fetch_answer
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.older_fetch import FIRST_BATCH_VERSION
from barnabas.protocol.request_headers import read_request_header
from barnabas.replication.partition import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.server.fastpath.recogniser import find, use
from barnabas.server.fetching.fetch import Fetch
from barnabas.server.fetching.message_sets import handle_older_fetch
from barnabas.server.fetching.partition_lookup import NO_TOPICS, failed
from barnabas.server.fetching.request_template import FetchTemplate, FetchTemplateBroker
from barnabas.server.fetching.session_template import SessionFetchBroker, SessionFetchTemplate

if TYPE_CHECKING:
    from barnabas.server.connection import Connection

FIRST_TOPIC_ID_VERSION = 13


class FetchingBroker(FetchTemplateBroker, SessionFetchBroker, Protocol):
    """The parts of the broker that this module uses."""


def handle_fetch(
    broker: FetchingBroker, connection: Connection, frame: memoryview, body: int, version: int, correlation_id: int
) -> None:
    """Answer at once, or when `min_bytes` bytes are available or `max_wait_ms` milliseconds have passed."""
    if version < FIRST_BATCH_VERSION:
        handle_older_fetch(broker, connection, frame, body, version, correlation_id)
        return
    request = decode_request(FetchRequest, version, frame, body)
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        _refuse(connection, request, version, correlation_id)
        return
    context = broker.fetch_sessions.open(request, version, broker.clock.now_ms())
    if context.error:
        parts = write_fetch_answer(version, correlation_id, NO_TOPICS, error_code=context.error)
        connection.send(parts)
        return
    client_id = None if broker.authorizer is None else broker.authorizer.client_id(frame)
    fetch = Fetch(broker, connection, request, context, version, correlation_id, client_id)
    session = context.session
    if session is not None and session.is_of_follower and not context.is_incremental and fetch.may_follow():
        fetcher = read_request_header(frame).client_id
        if fetcher:
            broker.fetch_sessions.take_place(session, fetcher)
    fetch.start()
    if context.is_incremental:
        session_template = find(connection.recognisers, SessionFetchTemplate)
        if session_template is None:
            session_template = SessionFetchTemplate(broker)
            use(connection.recognisers, session_template)
        session_template.learn(frame, body, version, request, client_id)
    elif context.session is None and broker.authorizer is None:
        template = find(connection.recognisers, FetchTemplate)
        if template is None:
            template = FetchTemplate(broker)
            use(connection.recognisers, template)
        template.learn(frame, body, version, request)


def _refuse(connection: Connection, request: FetchRequest, version: int, correlation_id: int) -> None:
    """Refuse a request with an invalid isolation level. The answer repeats the topics only in versions that use names, not ids."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [(t.topic, [failed(p.partition, code, ()) for p in t.partitions]) for t in request.topics]
    told = topics if version < FIRST_TOPIC_ID_VERSION else []
    parts = write_fetch_answer(version, correlation_id, told, error_code=code, session_id=request.session_id)
    connection.send(parts)
