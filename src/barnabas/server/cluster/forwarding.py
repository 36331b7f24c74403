"""Passes requests for the controller on to it, from any broker (KIP-590).

A client of Kafka 4 sends such requests to any broker. The broker sends them to the controller in an Envelope and returns its answer.

Rules
  1. A broker that is not the controller (any more) refuses the request and changes nothing. Then this broker sends the request to the next
     controller, for as long as a client would wait.
  2. If an answer is lost, this broker sends the request again. It cannot know whether the controller executed it, and clients would do the
     same.
  3. The client gets the answer when this broker has everything in its image that the controller wrote before the answer, and has applied
     it. So a client that has the answer, or that sent another request after the first, finds its effect here (`server/request_order.py`).
     If the store does not answer, the client gets the answer after `CATCH_UP_S` seconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from barnabas.cluster.membership.commands import REFUSALS
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, writer_of
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.request_headers import has_flexible_response_header, read_request_header
from barnabas.server.cluster.peers import ClientError, peers_of
from barnabas.server.request_order import Effect, effect_of

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.metadata.image import BrokerRegistration
    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.server.cluster.quorum import Quorum
    from barnabas.server.requests import RequestContext
    from barnabas.server.services import Services

FORWARDED = {  # requests that the controller answers
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
}
PATIENCE_S = 20.0  # less than the 30 s that clients wait by default
PAUSE_S = 0.05
CATCH_UP_S = 5.0
logger = logging.getLogger(__name__)

Handle = Callable[[], Awaitable[Message]]


class Forwarder:
    """Passes requests on for one broker."""

    def __init__(self, services: Services, member: Member, quorum: Quorum) -> None:
        self._services = services
        self._quorum = quorum
        self._member = member
        self._peers = peers_of(lambda: member.image, services, "controller")
        member.make_topics = self.make_topics

    async def close(self) -> None:
        await self._peers.close()

    async def answer(
        self, frame: bytes, context: RequestContext, header: RequestHeader, handle: Handle, response: type[Message]
    ) -> Message:
        """The controller's answer, from this broker or another one."""
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(context),
            client_host_address=context.client_host.encode(),
        )
        deadline = self._services.loop.time() + PATIENCE_S
        while True:
            local, refused = None, True
            if self._member.is_controller:
                local, refused = await _unless_refused(handle)
                if local is not None and not refused:
                    return local
            else:
                data = await self._ask(envelope)
                if data is not None:
                    return await self._understand(data, header, response)
            if self._services.loop.time() > deadline:
                return local or await handle()
            await self._pause()

    async def handle_envelope(self, context: RequestContext, request: EnvelopeRequest, serve: Serve) -> EnvelopeResponse:
        """Handle a request that another broker passed on; `serve` calls the handler through the dispatcher."""
        frame = memoryview(bytes(request.request_data))
        header = read_request_header(frame)
        if header.api_key == ApiKey.DESCRIBE_QUORUM:
            return EnvelopeResponse(response_data=_encode(await self._quorum.answer_for_itself(), header))
        if header.api_key not in FORWARDED:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        if not self._member.is_controller:
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        try:
            principal, groups = decode_principal(request)
        except ValueError:
            return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
        inner = context._replace(
            api_key=header.api_key,
            api_version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            client_host=bytes(request.client_host_address).decode(),
            principal=principal,
            groups=groups,
        )
        answer, refused = await _unless_refused(lambda: serve(inner, header, frame))
        if refused or answer is None:
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        return EnvelopeResponse(response_data=_encode(answer, header))

    async def make_topics(self, wanted: Sequence[NewTopic]) -> dict[str, KafkaError | None]:
        """Have the controller create topics. The value is None for each topic that now exists and is in this broker's image."""
        request = CreateTopicsRequest(topics=[_creatable(topic) for topic in wanted], timeout_ms=int(PATIENCE_S * 1000))
        told: dict[str, KafkaError | None] = {}
        for _ in range(2):
            with suppress(ClientError):
                answer = await self._send(self._member.image.controller_id, request)
                for topic in answer.topics:
                    exists = topic.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
                    told[topic.name] = None if exists else KafkaError(ErrorCode(topic.error_code), topic.error_message)
                break
            await self._pause()
        await self._catch_up()
        unanswered = KafkaError(ErrorCode.NOT_CONTROLLER, "The controller does not answer.")
        return {topic.name: told.get(topic.name, unanswered) for topic in wanted}

    async def _ask(self, envelope: EnvelopeRequest) -> bytes | None:
        """The encoded answer; None if the caller must ask again."""
        controller_id = self._member.image.controller_id
        if controller_id in {-1, self._services.config.broker_id}:
            return None
        try:
            answer = await self._send(controller_id, envelope)
        except ClientError as error:
            logger.info("event=controller-unreachable controller=%d error=%r", controller_id, str(error))
            return None
        if answer.error_code == ErrorCode.NONE and answer.response_data is not None:
            return bytes(answer.response_data)
        if answer.error_code != ErrorCode.NOT_CONTROLLER:
            raise KafkaError(ErrorCode(answer.error_code), "the controller does not take the request")
        return None

    async def _send(self, controller_id: int, request: Message) -> Any:
        """The same as `Peers.send`, but stop the wait if the controller is found dead in the meantime."""
        registered = self._member.image.brokers.get(controller_id)
        gone = asyncio.ensure_future(self._member.wait_for(lambda image: _is_gone(image.brokers.get(controller_id), registered)))
        gone.add_done_callback(lambda done: None if done.cancelled() else self._peers.disconnect(controller_id))
        try:
            return await self._peers.send(controller_id, request)
        finally:
            gone.cancel()

    async def _understand(self, data: bytes, header: RequestHeader, response: type[Message]) -> Message:
        start = 5 if has_flexible_response_header(header.api_key, header.api_version) else 4
        answer = decode(response, header.api_version, memoryview(data), start)
        if effect_of(header.api_key, header.api_version) is not Effect.READS:
            await self._catch_up()
        return answer

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(CATCH_UP_S):
                await self._member.catch_up()
        except (TimeoutError, StoreUnavailable) as error:
            logger.info("event=metadata-not-caught-up error=%r", str(error))

    async def _pause(self) -> None:
        """Wait for a change of the metadata, or at most `PAUSE_S` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_S):
                await self._member.wait_for(_once())


Serve = Callable[["RequestContext", "RequestHeader", memoryview], Awaitable[Message]]


async def _unless_refused(handle: Handle) -> tuple[Message | None, bool]:
    """A handler's answer, and whether it failed because this broker is not the controller."""
    refusals: list[Any] = []
    token = REFUSALS.set(refusals)
    try:
        answer = await handle()
    except BarnabasError:
        if not refusals:
            raise
        return None, True
    finally:
        REFUSALS.reset(token)
    return answer, bool(refusals)


def _is_gone(now: BrokerRegistration | None, before: BrokerRegistration | None) -> bool:
    return before is not None and (now is None or now.epoch != before.epoch)


def _once() -> Callable[[object], bool]:
    """A condition that is false at the first call and true at the second, that is, after the next change."""
    asked = iter((False,))
    return lambda _: next(asked, True)


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=p, broker_ids=list(brokers)) for p, brokers in topic.assignments]
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in topic.configs]
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs=configs,
    )


def encode_principal(context: RequestContext) -> bytes:
    """The principal for an Envelope: a JSON list of the principal and its groups."""
    return json.dumps([context.principal, *context.groups]).encode()


def decode_principal(envelope: EnvelopeRequest) -> tuple[str, tuple[str, ...]]:
    """The principal and its groups, as `encode_principal` wrote them; raises ValueError for anything else."""
    names = json.loads(bytes(envelope.request_principal or b""))
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of names")
    principal, *groups = names
    return principal, tuple(groups)


def _encode(response: Message, header: RequestHeader) -> bytes:
    """Header and body, as in a frame without its size."""
    out = bytearray(header.correlation_id.to_bytes(4, "big", signed=True))
    if has_flexible_response_header(header.api_key, header.api_version):
        out.append(0)
    writer_of(type(response), header.api_version)(response, out)
    return bytes(out)
