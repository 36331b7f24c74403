"""The group of a cluster's engines: one is active, and everybody can ask where that is.

An active engine stays active when another one joins: each member says whether it is active when it joins again. Otherwise Spark would
start again somewhere else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct, structs

from barnabas.client.administration import coordinator_of
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.election import Election, Rules
from barnabas.client.errors import ResourceError
from barnabas.client.operations import refresh
from barnabas.client.plans import call
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest

GROUP = "_barnabas_engine"
PROTOCOL_TYPE, PROTOCOL = "barnabas-engine", "v1"
SESSION_TIMEOUT_MS = 6_000  # the least that Kafka's brokers allow by default


class Member(Struct, frozen=True):
    """An engine.

    Args:
        url: of its HTTP interface.
        id: of its process, so that two engines with one address differ.
        is_active: whether it was the chosen one when it joined.
        worker_id: host and port by which Kafka Connect's statuses name it.
    """

    url: str
    id: str
    is_active: bool = False
    worker_id: str = ""


class Choice(Struct, frozen=True):
    """The assignment of every member: the fields of the chosen one, and all members.

    Args:
        members: empty if an engine of an earlier version has chosen.
    """

    url: str
    id: str
    is_active: bool = False
    worker_id: str = ""
    members: tuple[Member, ...] = ()


_MEMBER = msgspec.json.Decoder(Member)  # made at import, because threads must not make it at once
_CHOICE = msgspec.json.Decoder(Choice)


def _choose(members: Mapping[str, bytes]) -> bytes:
    found = []
    for metadata in members.values():
        with contextlib.suppress(msgspec.MsgspecError):
            found.append(_MEMBER.decode(metadata))
    if not found:
        return b""
    chosen = min(found, key=lambda each: (not each.is_active, each.url, each.id))
    everybody = tuple(sorted(found, key=lambda each: each.id))
    return msgspec.json.encode(Choice(**structs.asdict(chosen), members=everybody))


RULES = Rules(PROTOCOL_TYPE, PROTOCOL, _choose, SESSION_TIMEOUT_MS)


def take_part(
    config: ClientConfig, member: Member, changed: Callable[[bool, Sequence[Member]], None], group: str = GROUP,
    rules: Rules = RULES,
) -> Election:  # fmt: skip
    """A member of the group. `changed` is told whether it is the active one, and all members.

    Args:
        group, rules: of another service than the engine; the rules are `RULES` with other names.
    """

    def told(assignment: bytes | None) -> None:
        chosen = _choice(assignment)
        is_active = chosen is not None and chosen.id == member.id
        election.identity = msgspec.json.encode(structs.replace(member, is_active=is_active))
        changed(is_active, () if chosen is None else chosen.members)

    election = Election(config, group, msgspec.json.encode(member), rules, told)
    return election


def _choice(data: bytes | None) -> Choice | None:
    try:
        return _CHOICE.decode(data) if data else None
    except msgspec.MsgspecError:
        return None


def active_engine(client: BlockingClient) -> Member | None:
    """The active engine of a cluster; None if there is none. Raises KafkaError, ClientError."""
    for each in _members(client):
        if each:
            found = _choice(each)
            return None if found is None else Member(found.url, found.id, found.is_active, found.worker_id)
    return None


def has_engines(client: BlockingClient) -> bool:
    """Whether a cluster has an engine, also one that is not elected yet. Raises KafkaError, ClientError."""
    return bool(_members(client))


def _members(client: BlockingClient) -> list[bytes]:
    """The assignments of the members of the group; empty for one that waits for it."""
    client.run(refresh(client.config, client.cluster, []))
    node_id = client.run(coordinator_of(client.config, GROUP))
    group = client.run(call(DescribeGroupsRequest(groups=[GROUP]), node_id)).groups[0]
    if group.error_code not in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}:
        raise ResourceError(ErrorCode(group.error_code), f"group {GROUP}")
    return [bytes(each.member_assignment or b"") for each in group.members]
