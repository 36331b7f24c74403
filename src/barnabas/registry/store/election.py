"""Elects the registry that writes: the leader of a group, as in Confluent's registry (protocol type `sr`).

Each member sends its URL. The coordinator makes one member the group's leader. This member chooses the eligible registry with
the smallest URL, and every member gets that URL in its assignment. Safety does not depend on this: the store itself fences an
older writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

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
PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 30_000
HEARTBEAT_S = 1.0  # members notice within this time that the leader has left
PAUSE_S = 0.5  # before the next attempt after an error
Changed = Callable[[str | None], None]


class Election:
    """A member of the group.

    Args:
        url: the URL of this registry for the others.
        changed: called with the URL of the leader; None while there is none.
    """

    def __init__(self, config: ClientConfig, group: str, url: str, changed: Changed) -> None:
        self._client = AsyncClient(replace(config, request_timeout_ms=REBALANCE_TIMEOUT_MS + 10_000))
        self._group = group
        self._identity = _identity(url)
        self._changed = changed
        self._member_id = ""
        self._generation = -1
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take part until `close`."""
        self._task = asyncio.create_task(self._run())

    async def is_alone(self) -> bool:
        """Whether the group has no member: then no registry writes, and this one does not wait for another."""
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
                logger.warning("event=registry-election-failed group=%s reason=%r", self._group, str(error))
                self._changed(None)
                await asyncio.sleep(PAUSE_S)

    async def _take_part(self) -> None:
        """Join and stay until the group rebalances."""
        joined = await self._join()
        if joined is None:
            return
        assignments = _assignments(joined) if joined.leader == joined.member_id else []
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        synced = await self._ask(request)
        if synced.error_code:
            self._judge(synced.error_code)
            return
        self._changed(_url(msgspec.json.decode(synced.assignment or b"{}").get("master_identity")))
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            beat = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
            answer = await self._ask(beat)
            if answer.error_code:
                self._judge(answer.error_code)
                return

    async def _join(self) -> JoinGroupResponse | None:
        protocol = JoinGroupRequestProtocol(name=PROTOCOL, metadata=msgspec.json.encode(self._identity))
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
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


def _identity(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"version": 1, "host": parts.hostname or "", "port": port, "master_eligibility": True, "scheme": parts.scheme}


def _url(identity: dict[str, Any] | None) -> str | None:
    if not identity:
        return None
    host = identity["host"]
    return f"{identity.get('scheme', 'http')}://{f'[{host}]' if ':' in host else host}:{identity['port']}"


def _assignments(joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
    """The choice of the group's leader, as the assignment of every member."""
    identities = {member.member_id: msgspec.json.decode(member.metadata) for member in joined.members}
    eligible = {member_id: each for member_id, each in identities.items() if each.get("master_eligibility", True)}
    master = min(eligible, key=lambda member_id: (_url(eligible[member_id]) or "", member_id), default=None)
    urls = [_url(each) for each in identities.values()]
    error = 1 if len(set(urls)) != len(urls) else 0  # like Confluent's registry: an error if two registries have the same URL
    told = {"version": 1, "error": error, "master": master, "master_identity": eligible.get(master or "")}
    return [SyncGroupRequestAssignment(member_id=each, assignment=msgspec.json.encode(told)) for each in identities]
