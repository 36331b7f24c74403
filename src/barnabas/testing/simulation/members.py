"""Members of a group that share the partitions of a run: they join, lead, consume, commit, leave, pause and return as zombies.

Each is one task with connections of its own and speaks the classic protocol (JoinGroup, SyncGroup, Heartbeat);
`group_history.py` checks the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.client.administration import LAST_COMMIT_WITH_NAMES, coordinator_of
from barnabas.client.errors import ClientError
from barnabas.client.operations import refresh
from barnabas.client.plans import Plan, call
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.testing.simulation.clients import EARLIEST, NOT_KNOWN_EVERYWHERE, records_of
from barnabas.testing.simulation.history import PartitionHistory, TopicPartition, Violation
from barnabas.testing.simulation.transactions.group_offsets import committed_offset

if TYPE_CHECKING:
    from barnabas.client.asynchronous import AsyncClient
    from barnabas.testing.simulation.group_history import GroupHistory
    from barnabas.testing.simulation.loop import World

GROUP = "members"
SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "300"}  # of the brokers
SESSION_MS, REBALANCE_MS = 3_000, 1_000
PROTOCOL = "shares"
STANDS_STILL, LEAVES = 0.03, 0.03  # shares of turns in which a member pauses or leaves
RETRY_S = 0.1
OTHER_COORDINATOR = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # the coordinator does not know the topic yet and refuses the commit
)
OUT_OF_THE_GROUP = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)


class Rejoin(Exception):
    """The generation has ended for this member."""


class Member:
    """One member.

    Args:
        instance_id: of a static member (KIP-345); None for a dynamic one.
        places: the partitions that the group shares; partitions may be added.
    """

    def __init__(
        self,
        world: World,
        client: AsyncClient,
        book: GroupHistory,
        histories: Mapping[TopicPartition, PartitionHistory],
        places: Sequence[TopicPartition],
        is_over: Callable[[], bool],
        instance_id: str | None,
    ) -> None:
        self._world = world
        self._client = client
        self._book = book
        self._histories = histories
        self._places = places
        self._is_over = is_over
        self._instance_id = instance_id
        self._random = Random(world.random.getrandbits(64))
        self._coordinator: int | None = None
        self._member_id = ""
        self._generation = -1
        self._positions: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        while not self._is_over():
            try:
                await self._join()
                while not self._is_over():
                    await self._turn()
            except Rejoin:
                continue
            except KafkaError as error:
                if not error.code.retriable and error.code not in OTHER_COORDINATOR:
                    raise Violation(f"a member of {self._book.name} was refused with {error.code.name}") from error
                self._coordinator = None
            except ClientError:
                self._coordinator = None
            await asyncio.sleep(RETRY_S)
        with suppress(BarnabasError):
            await self._leave()

    # --- the group

    async def _join(self) -> None:
        self._positions.clear()
        joined = await self._enter()
        self._generation = joined.generation_id
        shares = self._share_out([member.member_id for member in joined.members]) if joined.leader == self._member_id else {}
        synced = await self._ask(
            SyncGroupRequest(
                group_id=self._book.name,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=PROTOCOL,
                protocol_name=PROTOCOL,
                assignments=[SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in shares.items()],
            )
        )
        self._check(synced.error_code)
        places = _decode(bytes(synced.assignment))
        # A static member that returns with another member id takes over its own partitions in the same generation (KIP-345).
        self._book.assigned(self._generation, self._instance_id or self._member_id, places)
        for place in places:
            offset = await committed_offset(self._client, self._book.name, place, stable=False)
            self._book.fetched(place, offset)
            self._positions[place] = max(offset, 0)

    async def _enter(self) -> JoinGroupResponse:
        while True:
            request = JoinGroupRequest(
                group_id=self._book.name,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=PROTOCOL,
                protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"")],
            )
            answer: JoinGroupResponse = await self._ask(request)
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._check(answer.error_code)
                self._member_id = answer.member_id
                return answer
            self._member_id = answer.member_id

    def _share_out(self, members: list[str]) -> dict[str, bytes]:
        shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
        for number, place in enumerate(self._places):
            shares[members[number % len(members)]].append(place)
        return {member: _encode(places) for member, places in shares.items()}

    async def _leave(self) -> None:
        if self._member_id:
            identity = MemberIdentity(member_id=self._member_id, group_instance_id=self._instance_id)
            self._member_id = ""
            await self._ask(LeaveGroupRequest(group_id=self._book.name, members=[identity]))

    # --- work

    async def _turn(self) -> None:
        chance = self._random.random()
        if chance < STANDS_STILL:
            await asyncio.sleep(SESSION_MS / 1000 * (0.5 + self._random.random()))
            await self._commit_all()  # like a process that did not notice the pause
        elif chance < STANDS_STILL + LEAVES and self._instance_id is None:
            await self._leave()
            raise Rejoin
        answer = await self._ask(
            HeartbeatRequest(
                group_id=self._book.name,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
            )
        )
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            await self._commit_all()
        self._check(answer.error_code)
        for place in self._positions:
            await self._read(place)
        if self._random.random() < 0.4:
            await self._commit_all()
        await asyncio.sleep(0.3 * self._random.random())

    async def _read(self, place: TopicPartition) -> None:
        history, position, life = self._histories[place], self._positions[place], self._world.epoch
        try:
            fetched = await self._client.fetch(*place, position)
        except KafkaError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._positions[place] = (await self._client.list_offsets({place: EARLIEST}))[place].offset
                return
            if error.code in NOT_KNOWN_EVERYWHERE:
                return
            raise Violation(f"{history.name}: a fetch at {position} was refused with {error.code.name}") from error
        if life != self._world.epoch:
            return  # a broker started or ended in the meantime, and the response may be older
        records, following = records_of(fetched, position)
        history.started_at(fetched.log_start_offset, self._world.now_ms())
        history.read(position, records, high_watermark=fetched.high_watermark, log_start=fetched.log_start_offset)
        self._book.gave(place, position, following)
        self._positions[place] = following

    async def _commit_all(self) -> None:
        for place, position in self._positions.items():
            topic, index = place
            item = OffsetCommitRequestPartition(
                partition_index=index, committed_offset=position, committed_leader_epoch=-1, committed_metadata=""
            )
            request = OffsetCommitRequest(
                group_id=self._book.name,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                topics=[OffsetCommitRequestTopic(name=topic, partitions=[item])],
            )
            commit = self._book.committing(place, position, self._generation)
            answer = await self._ask(request)
            code = answer.topics[0].partitions[0].error_code
            self._book.refused += code in OUT_OF_THE_GROUP
            self._check(code)
            self._book.committed(commit)

    # --- requests

    async def _ask(self, request: Any) -> Any:
        """Send a request to the coordinator, in a version with names of topics."""
        if self._coordinator is None:
            self._coordinator = await self._client.run(self._find())
        return await self._client.run(call(request, self._coordinator, _last_version(request)))

    def _find(self) -> Plan[int]:
        yield from refresh(self._client.config, self._client.cluster, [])
        return (yield from coordinator_of(self._client.config, self._book.name))

    def _check(self, code: int) -> None:
        """Raises Rejoin if this generation has ended, KafkaError for another error."""
        if code in OUT_OF_THE_GROUP:
            self._member_id = ""
            raise Rejoin
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise Rejoin
        if code:
            raise KafkaError(ErrorCode(code))


def _last_version(request: Any) -> int | None:
    return LAST_COMMIT_WITH_NAMES if isinstance(request, OffsetCommitRequest) else None


def _encode(places: list[TopicPartition]) -> bytes:
    return ",".join(f"{topic}:{index}" for topic, index in places).encode()


def _decode(share: bytes) -> list[TopicPartition]:
    pairs = (each.split(":") for each in share.decode().split(",") if each)
    return [(topic, int(index)) for topic, index in pairs]
