"""Passes a frame to its handler (`api_table.py`), and sends the response.

A handler returns its response, or an awaitable of it. In both cases requests take effect and get their answers in order
(`request_order.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.errors import BarnabasError, ProtocolError
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode_request, encode
from barnabas.protocol.messages import APIS, FIRST_VERSIONS_OF_KAFKA_4
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.request_headers import read_request_header
from barnabas.security.acls import Operation
from barnabas.server.answers import encode_answer, response_class
from barnabas.server.api_table import (
    AFTER,
    BETWEEN_BROKERS,
    FIRST,
    HANDLERS,
    HOT,
    PARTS,
    SERVED,
    ServingBroker,
)
from barnabas.server.apis import api_versions, configs
from barnabas.server.cluster.forwarding import FORWARDED
from barnabas.server.guards.guard import Later
from barnabas.server.guards.guard_table import guarded
from barnabas.server.quotas.charging import Stopwatch, charge_response
from barnabas.server.quotas.connection_mute import delay_over_quota
from barnabas.server.request_order import effect_of
from barnabas.server.requests import RequestContext
from barnabas.tuples import new_tuple

if TYPE_CHECKING:
    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.quota.budget import Budget
    from barnabas.server.answer_order import Answer
    from barnabas.server.cluster.forwarding import Forwarder
    from barnabas.server.connection import Connection
    from barnabas.server.quotas.client_quotas import ClientQuotas

logger = logging.getLogger(__name__)


# Exempt from quotas, if the principal has the rights to send them. Requests of a log-in do not come here
EXEMPT = BETWEEN_BROKERS | {ApiKey.WRITE_TXN_MARKERS}
# Long answers that are made in several turns of the loop; a thread encodes them
ENCODED_ASIDE = frozenset({ApiKey.DESCRIBE_CONFIGS})


async def _awaited(answer: Message | Awaitable[Message]) -> Message:
    return answer if isinstance(answer, Message) else await answer


class RequestDispatcher:
    """Handles the requests of all connections of one broker."""

    def __init__(self, broker: ServingBroker) -> None:
        self._broker = broker
        self._metrics = broker.metrics
        oldest = broker.config.api_versions_oldest
        served = {key: api_versions.served_versions(key, oldest) for key in SERVED | BETWEEN_BROKERS}
        self._taken = {key: (first, last, FIRST_VERSIONS_OF_KAFKA_4.get(key, first)) for key, (first, last) in served.items()}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def dispatch(self, connection: Connection, data: memoryview, position: int, stop: int) -> int:
        """Handle the request in `data` from `position` to `stop`; a fast path may also handle later requests.

        Returns:
            The start of the next request.

        Raises:
            ProtocolError: the connection must close.
        """
        started = time.perf_counter_ns()
        try:
            if connection.authentication is not None and not connection.authentication.admits(data[position + 4 : stop]):
                return stop
            for recogniser in connection.recognisers:
                taken, behind = recogniser.take(connection, data, position, stop)
                if taken:
                    self._metrics.observe_request(recogniser.api_key, time.perf_counter_ns() - started, taken)
                    return behind
            self._dispatch(connection, data[position + 4 : stop], started)
        except ProtocolError:
            raise
        except Exception as error:
            # A fault of the broker: it must not affect other connections, and there is no answer to it.
            logger.exception(
                "event=request-failed head=%s peer=%s", bytes(data[position + 4 : position + 12]).hex(), connection.peer
            )
            raise ProtocolError("the request met a fault of the broker") from error
        return stop

    def _dispatch(self, connection: Connection, frame: memoryview, started: int) -> None:
        header = read_request_header(frame)
        api_key, version = header.api_key, header.api_version
        first, last, kept = self._versions(api_key)
        if not kept <= version <= last and not self._takes_old_version(connection, header, first, kept):
            return
        quotas = self._broker.client_quotas
        if quotas is not None and self._is_put_off(quotas, connection, header, started):
            return
        hot = HOT.get(api_key)
        if hot is not None:
            hot(self._broker, connection, frame, header.body, version, header.correlation_id)
            self._metrics.observe_request(api_key, time.perf_counter_ns() - started)
            return
        take_over = FIRST.get(api_key)
        if take_over is not None and take_over(self._broker, connection, header, frame):
            return
        request = decode_request(HANDLERS[api_key].request, version, frame, header.body)
        context = self._context(connection, header, request)
        try:
            if self._broker.forwarder is None:
                result = self._handle(context, request)
            else:
                result = self._handle_in_cluster(self._broker.forwarder, context, header, request, frame)
        except BarnabasError as error:
            raise self._give_up(header, error) from error
        budget = None if api_key in EXEMPT and self._is_exempt(connection, api_key) else connection.budget
        if isinstance(result, Message):
            after = AFTER.get(api_key)
            if after is None:
                self._answer(connection, header, budget, result, started)
            else:
                self._answer_first(after, connection, header, budget, result, started)
            self._metrics.observe_request(api_key, time.perf_counter_ns() - started)
            return
        place = connection.expect_answer(effect_of(api_key, version))
        later = result if budget is None else self._pay_later(connection, budget, result, started)
        task = self._broker.loop.create_task(self._finish_later(connection, place, header, later, started))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        give_up = _Cancel(task)
        connection.on_close.append(give_up)
        task.add_done_callback(lambda _: _forget(connection, give_up))
        for begun in (result, later):
            if isinstance(begun, Coroutine | Later):
                task.add_done_callback(_closer(begun))  # a task that is cancelled at once never starts `begun`

    def _is_put_off(self, quotas: ClientQuotas, connection: Connection, header: RequestHeader, started: int) -> bool:
        """Find the budget that pays for the request. Returns whether the request must wait because its client has not paid an earlier
        debt.
        """
        budget = connection.budget = quotas.budget(connection.principal, header.client_id)
        connection.started_ns = started
        if budget is None or connection.authentication is not None or header.api_key in EXEMPT:
            return False
        return delay_over_quota(self._broker, connection, budget, header.api_key, header.api_version)

    def _answer(
        self, connection: Connection, header: RequestHeader, budget: Budget | None, response: Message, started: int
    ) -> None:
        if budget is not None:
            charge_response(self._broker, connection, budget, response, time.perf_counter_ns() - started)
        connection.send([encode_answer(response, header)])

    def _answer_first(
        self,
        after: Callable[[ServingBroker], None],
        connection: Connection,
        header: RequestHeader,
        budget: Budget | None,
        response: Message,
        started: int,
    ) -> None:
        """Send the answer at once, so that the client continues while `after` runs."""
        try:
            self._answer(connection, header, budget, response, started)
            connection.flush()
        finally:
            after(self._broker)

    def _is_exempt(self, connection: Connection, api_key: int) -> bool:
        """Whether the principal may send the requests of brokers. A principal without this right pays, as in Kafka."""
        authorizer = self._broker.authorizer
        if authorizer is None:
            return True
        access = authorizer.of_connection(connection)
        is_marking = api_key == ApiKey.WRITE_TXN_MARKERS
        return access.allows_cluster(Operation.CLUSTER_ACTION) or (is_marking and access.allows_cluster(Operation.ALTER))

    def _handle_in_cluster(
        self, forwarder: Forwarder, context: RequestContext, header: RequestHeader, request: Message, frame: memoryview
    ) -> Message | Awaitable[Message]:
        """Handle the request here, send it to the controller, or divide it between both."""
        here: Message | None = request
        rest: Message | None = None
        if header.api_key in FORWARDED:
            parts = PARTS.get(header.api_key)
            here, rest = (None, request) if parts is None else parts(self._broker, context, request)
        if rest is None:
            return self._handle(context, request)
        if here is None:
            return self._forward(forwarder, context, header, bytes(frame))
        return self._in_parts(
            forwarder, context, header, request, here, bytes(frame[: header.body]) + encode(rest, header.api_version)
        )

    async def _in_parts(
        self, forwarder: Forwarder, context: RequestContext, header: RequestHeader, request: Message, here: Message, rest: bytes
    ) -> Message:
        """Handle a change of settings in two parts: `here` on this broker, and the frame `rest` on the controller."""
        done = await _awaited(self._handle(context, here))
        told = await self._forward(forwarder, context, header, rest)
        return configs.join(request, done, told)

    def _forward(self, forwarder: Forwarder, context: RequestContext, header: RequestHeader, frame: bytes) -> Awaitable[Message]:
        """Forward the request. Each attempt on this broker decodes the frame again, because guards and handlers remove entries from the
        request.
        """
        answer = response_class(header.api_key)
        return forwarder.answer(frame, context, header, lambda: self.serve(context, header, memoryview(frame)), answer)

    def _handle(self, context: RequestContext, request: Message) -> Message | Awaitable[Message]:
        """The answer of the handler, for the entries that the principal may use."""
        handle = HANDLERS[context.api_key].handle
        if self._broker.authorizer is None:
            return handle(self._broker, context, request)
        return self._guarded(context, request, lambda allowed: handle(self._broker, context, allowed))

    def _guarded(
        self, context: RequestContext, request: Any, handle: Callable[[Any], Message | Awaitable[Message]]
    ) -> Message | Awaitable[Message]:
        authorizer = self._broker.authorizer
        return handle(request) if authorizer is None else guarded(self._broker, authorizer, context, request, handle)

    async def serve(self, context: RequestContext, header: RequestHeader, frame: memoryview) -> Message:
        """The answer to a request that may go to the controller repeatedly, or that came in an Envelope."""
        self._versions(header.api_key)
        # the broker that received the request has checked its own `api.versions.oldest`
        first, last = api_versions.served_versions(header.api_key)
        if not first <= header.api_version <= last:
            raise ProtocolError(f"api {header.api_key} does not have version {header.api_version}")
        request = decode_request(HANDLERS[header.api_key].request, header.api_version, frame, header.body)
        return await _awaited(self._handle(context, request))

    async def close(self) -> None:
        """Cancel the requests that still wait."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish_later(
        self, connection: Connection, place: Answer, header: RequestHeader, result: Awaitable[Message], started: int
    ) -> None:
        try:
            response = await result
            connection.complete(place, [await self._encode_later(response, header)])
        except BarnabasError as error:
            logger.error("event=request-failed reason=%r", str(self._give_up(header, error)))
            connection.close()
        except Exception:
            logger.exception(
                "event=request-failed api=%d version=%d peer=%s", header.api_key, header.api_version, connection.peer
            )
            connection.close()
        self._metrics.observe_request(header.api_key, time.perf_counter_ns() - started)

    async def _encode_later(self, response: Message, header: RequestHeader) -> bytearray:
        if header.api_key not in ENCODED_ASIDE:
            return encode_answer(response, header)
        return await self._broker.loop.run_in_executor(self._broker.io_threads, encode_answer, response, header)

    async def _pay_later(self, connection: Connection, budget: Budget, result: Awaitable[Message], started: int) -> Message:
        """Wait for the response and charge its cost to the client."""
        watch = Stopwatch(time.perf_counter_ns() - started)
        response = await watch.time(result)
        charge_response(self._broker, connection, budget, response, watch.spent_ns)
        return response

    def _give_up(self, header: RequestHeader, error: BarnabasError) -> ProtocolError:
        """The error that closes the connection after a handler failed. The client gets no answer and asks again."""
        return ProtocolError(f"api {APIS[header.api_key][1]} version {header.api_version} failed: {error}")

    def _versions(self, api_key: int) -> tuple[int, int, int]:
        """The first and last version of an API that this broker serves, and the first version that Kafka 4 serves too."""
        versions = self._taken.get(api_key)
        if versions is None or (api_key in BETWEEN_BROKERS and self._broker.forwarder is None):
            raise ProtocolError(f"request with unknown api key {api_key}")
        return versions

    def _takes_old_version(self, connection: Connection, header: RequestHeader, first: int, kept: int) -> bool:
        """Whether this broker serves a version that Kafka 4 dropped; counts such requests. Refuses other versions."""
        if not first <= header.api_version < kept:
            self._refuse_version(connection, header)
            return False
        self._broker.old_requests.observe(connection, header)
        return True

    def _refuse_version(self, connection: Connection, header: RequestHeader) -> None:
        """Refuse a version. Only ApiVersions has an answer for unknown versions, in version 0 (KIP-511)."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise ProtocolError(f"api {APIS[header.api_key][1]} does not have version {header.api_version}")
        connection.send([encode_answer(api_versions.refuse_version(), header._replace(api_version=0))])

    def _context(self, connection: Connection, header: RequestHeader, request: Message) -> RequestContext:
        if isinstance(request, ApiVersionsRequest):  # ApiVersions names the client's software, for the rest of the connection
            connection.client_software = api_versions.client_software(request) or connection.client_software
        return new_tuple(
            RequestContext,
            (
                *header[:4],
                connection.peer_host,
                connection.principal,
                connection.listener,
                connection.local_port,
                connection.client_software,
                connection.groups,
                connection.by_token,
            ),
        )


class _Cancel:
    """Cancels a task when its connection closes."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def __call__(self) -> None:
        self._task.cancel()


def _closer(begun: Coroutine[Any, Any, Any] | Later) -> Callable[[object], None]:
    return lambda _: begun.close()


def _forget(connection: Connection, give_up: _Cancel) -> None:
    if give_up in connection.on_close:
        connection.on_close.remove(give_up)
