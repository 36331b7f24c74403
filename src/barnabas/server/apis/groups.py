"""FindCoordinator, and the membership of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The handlers are thin: they translate what older versions cannot express, and the coordinator does the rest.

FindCoordinator answers for groups and transactions. Share groups have no coordinator here, now or after a retry. So they get
INVALID_REQUEST, Kafka's answer for a kind of coordinator that is switched off. After COORDINATOR_NOT_AVAILABLE a client would retry
without end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Protocol
from uuid import UUID

from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.coordination.result import Caller
from barnabas.coordination.transactions.coordinator import TransactionCoordinator
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.server.handlers import Handler, takes


class GroupTopics(Protocol):
    """The parts of the metadata image that this module uses."""

    def topic_id(self, name: str) -> UUID | None: ...
    def topic_name(self, topic_id: UUID) -> str | None: ...
    def partition_count(self, name: str) -> int:
        """The number of partitions; 0 for a topic that does not exist."""
        ...


class Context(Protocol):
    """The parts of a request's context that this module uses."""

    @property
    def api_version(self) -> int: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def client_host(self) -> str: ...


Node = tuple[int, str, int]  # id, host and port


class GroupBroker(Protocol):
    """The parts of the broker that this module uses."""

    @property
    def groups(self) -> GroupCoordinator: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def metadata(self) -> GroupTopics: ...
    def new_id(self) -> UUID: ...
    async def find_coordinators(self, context: Any, names: Sequence[str], *, of_transactions: bool) -> Sequence[Node | None]:
        """The addresses of the coordinators of groups or transactional ids for the client of `context`; None for one without a leader."""
        ...


GROUPS_PER_TURN = 100  # groups of one request; each takes 10 us, and more if it has many members


async def in_turns(group_ids: Iterable[str]) -> AsyncIterator[str]:
    """The groups of a request. The loop gets turns for other work in between, because the awaits of the caller mostly do not wait."""
    for count, group_id in enumerate(group_ids):
        if count % GROUPS_PER_TURN == GROUPS_PER_TURN - 1:
            await asyncio.sleep(0)
        yield group_id


def error_of(error: KafkaError | InvariantViolated) -> ErrorCode:
    """The error code for the client. It does not learn of a broken invariant, which the coordinator has logged."""
    return error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR


# -- FindCoordinator ------------------------------------------------------------------------------------------------------

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
BATCHED_FROM_VERSION = 4
NO_NODE: Node = (-1, "", -1)
UNAVAILABLE_MESSAGE = "The coordinator is not available."
NOT_SERVED_MESSAGE = "This broker has no coordinator of that kind."


async def find_coordinator(broker: GroupBroker, context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    error, message = ErrorCode.NONE, "NONE"
    batched = context.api_version >= BATCHED_FROM_VERSION
    keys = request.coordinator_keys if batched else [request.key]
    of_transactions = request.key_type == TRANSACTION_KEY
    found: Sequence[Node | None] = [None] * len(keys)
    if request.key_type not in (GROUP_KEY, TRANSACTION_KEY):
        error, message = ErrorCode.INVALID_REQUEST, NOT_SERVED_MESSAGE
    else:
        try:
            if of_transactions:
                await broker.transactions.prepare()
            else:
                await broker.groups.prepare()
            found = await broker.find_coordinators(context, keys, of_transactions=of_transactions)
        except KafkaError:
            error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE_MESSAGE
    if batched:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(key, node, error) for key, node in zip(keys, found, strict=True)]
        )
    if not error and found[0] is None:
        error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE_MESSAGE
    node_id, host, port = found[0] or NO_NODE
    return FindCoordinatorResponse(error_code=error, error_message=message, node_id=node_id, host=host, port=port)


def _coordinator(key: str, node: Node | None, error: ErrorCode) -> Coordinator:
    node_id, host, port = node or NO_NODE
    if node is None and not error:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    message = NOT_SERVED_MESSAGE if error is ErrorCode.INVALID_REQUEST else ""
    return Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=error, error_message=message)


# -- membership -----------------------------------------------------------------------------------------------------------

NULLABLE_PROTOCOL_FROM_VERSION = 7
PROTOCOL_REQUIRED_FROM_VERSION = 5
BATCHED_LEAVE_FROM_VERSION = 3


async def join_group(broker: GroupBroker, context: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    # version 0 has no field for it, and some clients give 0, which would leave no time for anything
    if request.rebalance_timeout_ms <= 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    caller = Caller(context.api_version, context.client_id or "", java_address(context.client_host), str(broker.new_id()))
    try:
        response = await broker.groups.join(request, caller)
    except (KafkaError, InvariantViolated) as error:
        response = JoinGroupResponse(error_code=error_of(error), member_id=request.member_id, protocol_name=None)
    if response.protocol_name is None and context.api_version < NULLABLE_PROTOCOL_FROM_VERSION:
        response.protocol_name = ""
    return response


def java_address(host: str) -> str:
    """The host in the form in which Java writes addresses."""
    return host if host.startswith("/") else f"/{host}"


async def sync_group(broker: GroupBroker, context: Context, request: SyncGroupRequest) -> SyncGroupResponse:
    incomplete = not request.protocol_type or not request.protocol_name
    if incomplete and context.api_version >= PROTOCOL_REQUIRED_FROM_VERSION:  # KIP-559
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return await broker.groups.sync(request)
    except (KafkaError, InvariantViolated) as error:
        return SyncGroupResponse(error_code=error_of(error))


async def heartbeat(broker: GroupBroker, context: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        return await broker.groups.heartbeat(request)
    except (KafkaError, InvariantViolated) as error:
        return HeartbeatResponse(error_code=error_of(error))


async def leave_group(broker: GroupBroker, context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    single = context.api_version < BATCHED_LEAVE_FROM_VERSION
    if single:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        response = await broker.groups.leave(request)
    except (KafkaError, InvariantViolated) as error:
        return LeaveGroupResponse(error_code=error_of(error))
    return LeaveGroupResponse(error_code=response.members[0].error_code) if single else response


HANDLERS: dict[int, Handler[GroupBroker]] = {
    ApiKey.FIND_COORDINATOR: takes(FindCoordinatorRequest, find_coordinator),
    ApiKey.JOIN_GROUP: takes(JoinGroupRequest, join_group),
    ApiKey.HEARTBEAT: takes(HeartbeatRequest, heartbeat),
    ApiKey.LEAVE_GROUP: takes(LeaveGroupRequest, leave_group),
    ApiKey.SYNC_GROUP: takes(SyncGroupRequest, sync_group),
}
