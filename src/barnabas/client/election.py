"""Elects one of several processes, as the leader of a group at the cluster's coordinator.

Each member sends a text about itself, its identity. The coordinator makes one member the group's leader. This member chooses, and every
member gets the choice as its assignment. Safety must not depend on this: two members may think for some seconds that they are elected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from barnabas.client.administration import coordinator_of
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ResourceError
from barnabas.client.operations import refresh
from barnabas.client.plans import call
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

logger = logging.getLogger(__name__)
REBALANCE_TIMEOUT_MS = 30_000
HEARTBEAT_S = 1.0  # members notice within this time that the leader has left
PAUSE_S = 0.5  # before the next attempt after an error
Choose = Callable[[Mapping[str, bytes]], bytes]
Changed = Callable[[bytes | None], None]


class Rules(NamedTuple):
    """The rules of a group, the same for all of its members.

    Args:
        protocol_type, protocol: names for the coordinator and for tools.
        choose: takes the identities by member id; returns the assignment of every member.
        session_timeout_ms: after this time without a heartbeat, a member counts as gone.
    """

    protocol_type: str
    protocol: str
    choose: Choose
    session_timeout_ms: int


class Election:
    """A member of the group.

    Args:
        identity: of this member.
        changed: called with the assignment; None while there is none.
    """

    def __init__(self, config: ClientConfig, group: str, identity: bytes, rules: Rules, changed: Changed) -> None:
        self._client = AsyncClient(replace(config, request_timeout_ms=REBALANCE_TIMEOUT_MS + 10_000))
        self._group, self._rules = group, rules
        self.identity = identity  # sent with the next join
        self._changed = changed
        self._member_id = ""
        self._generation = -1
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take part until `close`."""
        self._task = asyncio.create_task(self._run())

    async def is_alone(self) -> bool:
        """Whether the group has no member."""
        try:
            response = await self._ask(DescribeGroupsRequest(groups=[self._group]))
        except BarnabasError:
            return False
        return not response.groups[0].members and response.groups[0].error_code in {0, ErrorCode.GROUP_ID_NOT_FOUND}

    async def close(self) -> None:
        """Leave the group; safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            if self._member_id:
                with contextlib.suppress(BarnabasError, TimeoutError):
                    async with asyncio.timeout(1):
                        member = MemberIdentity(member_id=self._member_id)
                        request = LeaveGroupRequest(group_id=self._group, member_id=self._member_id, members=[member])
                        await self._ask(request)
        await self._client.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._take_part()
            except BarnabasError as error:
                logger.warning("event=election-failed group=%s reason=%r", self._group, str(error))
                self._changed(None)
                await asyncio.sleep(PAUSE_S)

    async def _take_part(self) -> None:
        """Join and stay until the group rebalances."""
        joined = await self._join()
        if joined is None:
            return
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=self._rules.protocol_type,
            protocol_name=self._rules.protocol,
            assignments=self._assignments(joined) if joined.leader == joined.member_id else [],
        )
        synced = await self._ask(request)
        if synced.error_code:
            self._judge(synced.error_code)
            return
        self._changed(bytes(synced.assignment) if synced.assignment else None)
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            beat = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
            answer = await self._ask(beat)
            if answer.error_code:
                self._judge(answer.error_code)
                return

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        identities = {member.member_id: bytes(member.metadata) for member in joined.members}
        chosen = self._rules.choose(identities)
        return [SyncGroupRequestAssignment(member_id=each, assignment=chosen) for each in identities]

    async def _join(self) -> JoinGroupResponse | None:
        rules = self._rules
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=rules.session_timeout_ms,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=rules.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=rules.protocol, metadata=self.identity)],
        )
        response: JoinGroupResponse = await self._ask(request)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            return None
        if response.error_code:
            self._judge(response.error_code)
            return None
        self._member_id, self._generation = response.member_id, response.generation_id
        return response

    def _judge(self, code: int) -> None:
        """Handle an error code: join again with this member id, join again with another one, or raise."""
        if code == ErrorCode.REBALANCE_IN_PROGRESS or code == ErrorCode.ILLEGAL_GENERATION:
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID or code == ErrorCode.FENCED_INSTANCE_ID:
            self._member_id = ""
            self._changed(None)
            return
        raise ResourceError(ErrorCode(code), f"group {self._group}")

    async def _ask(self, request: Message) -> Any:
        config, cluster = self._client.config, self._client.cluster
        await self._client.run(refresh(config, cluster, []))
        node_id = await self._client.run(coordinator_of(config, self._group))
        return await self._client.run(call(request, node_id))
