"""The classic group protocol: FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup and the lists of groups."""

from __future__ import annotations

from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.differential.script.common import Member, join, subscription, sync
from tests.differential.talk import Talk
from tests.waiting import wait_until

REBALANCE_IN_PROGRESS = 27
UNKNOWN_MEMBER = "differential-no-such-member"


def find_coordinator(talk: Talk) -> None:
    for version in talk.versions_of("FindCoordinator"):
        keys = [talk.name("group"), talk.name("other")]
        for kind in (0, 1, 2, 9):
            request = FindCoordinatorRequest(key=keys[0], key_type=kind, coordinator_keys=keys)
            talk.ask(f"type {kind}", request, version)
        talk.ask("empty key", FindCoordinatorRequest(key="", coordinator_keys=[""]), version)
        talk.ask("no key", FindCoordinatorRequest(key="", coordinator_keys=[]), version)
        talk.ask("a key twice", FindCoordinatorRequest(key=keys[0], coordinator_keys=[keys[0], keys[0]]), version)


def join_versions(talk: Talk) -> None:
    """A member of its own in every version: join, sync, heartbeat, look, leave."""
    for version in talk.versions_of("JoinGroup"):
        member = Member(talk.connect(), talk.name(f"v{version}"), "only")
        joined = talk.ask("first", join(member), version, on=member.line)
        member.learn(joined)
        if joined.error_code:
            member.learn(talk.ask("with the member id", join(member), version, on=member.line))
        talk.ask(f"after join v{version}", sync(member, {member.member_id: b"all"}), min(version, 5), on=member.line)
        talk.ask(f"after join v{version}", DescribeGroupsRequest(groups=[member.group]), 5)
        talk.ask("again", join(member), version, on=member.line)
        talk.ask(f"after joining again v{version}", sync(member, {member.member_id: b"all"}), min(version, 5), on=member.line)
        talk.ask(f"after join v{version}", _heartbeat(member), min(version, 4), on=member.line)
        talk.ask(f"after join v{version}", _leave(member), min(version, 5), on=member.line)
        talk.ask(f"after leaving v{version}", DescribeGroupsRequest(groups=[member.group]), 5)


def _heartbeat(
    member: Member, generation: int | None = None, member_id: str | None = None, group: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group if group is None else group,
        generation_id=member.generation if generation is None else generation,
        member_id=member.member_id if member_id is None else member_id,
        group_instance_id=member.instance_id,
    )


def _leave(member: Member) -> LeaveGroupRequest:
    identity = MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id, reason="done")
    return LeaveGroupRequest(group_id=member.group, member_id=member.member_id, members=[identity])


def _settled(talk: Talk, group: str, name: str, instance_id: str | None = None) -> Member:
    """The only member of a new, stable group."""
    member = Member(talk.connect(name), group, name, instance_id)
    member.learn(talk.do(join(member), 5, on=member.line))
    if member.generation < 0:
        member.learn(talk.do(join(member), 5, on=member.line))
    talk.do(sync(member, {member.member_id: b"everything"}), 3, on=member.line)
    return member


def join_wrong(talk: Talk) -> None:
    def joining(**changes: object) -> JoinGroupRequest:
        request = join(Member(talk.line, talk.name("wrong"), "m"))
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    range_protocol = [JoinGroupRequestProtocol(name="range", metadata=subscription("events", b"m"))]
    cases = {
        "empty group": joining(group_id=""),
        "session timeout too short": joining(session_timeout_ms=10),
        "session timeout too long": joining(session_timeout_ms=10_000_000),
        "unknown member": joining(member_id=UNKNOWN_MEMBER),
        "no protocol": joining(protocols=[]),
        "empty protocol type": joining(protocol_type=""),
        "empty protocol type and no protocol": joining(protocol_type="", protocols=[]),
    }
    for case, request in cases.items():
        for version in (0, 3, 5, 9):
            talk.ask(case, request, version)
    member = _settled(talk, talk.name("wrong"), "member")
    others = {
        "another protocol type": joining(protocol_type="connect"),
        "another protocol": joining(protocols=[JoinGroupRequestProtocol(name="strange", metadata=subscription("events", b"m"))]),
        "unknown member of a live group": joining(member_id=UNKNOWN_MEMBER),
        "no protocol in a live group": joining(protocols=[]),
        "a known member with another protocol type": joining(
            member_id=member.member_id, protocol_type="connect", protocols=range_protocol
        ),
    }
    for case, request in others.items():
        for version in (3, 9):
            talk.ask(case, request, version)


def sync_wrong(talk: Talk) -> None:
    member = _settled(talk, talk.name("sync"), "member")

    def syncing(**changes: object) -> SyncGroupRequest:
        request = sync(member, {member.member_id: b"other"})
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    cases = {
        "right": syncing(),
        "old generation": syncing(generation_id=0),
        "future generation": syncing(generation_id=9),
        "unknown member": syncing(member_id=UNKNOWN_MEMBER),
        "empty member": syncing(member_id=""),
        "empty group": syncing(group_id=""),
        "absent group": syncing(group_id=talk.name("absent")),
    }
    for case, request in cases.items():
        for version in talk.versions_of("SyncGroup"):
            talk.ask(case, request, version, on=member.line)
    for case, request in (
        ("other protocol type", syncing(protocol_type="connect")),
        ("other protocol", syncing(protocol_name="strange")),
        ("no protocol", syncing(protocol_type=None, protocol_name=None)),
    ):
        talk.ask(case, request, 5, on=member.line)


def heartbeat_versions(talk: Talk) -> None:
    member = _settled(talk, talk.name("beats"), "member")
    for version in talk.versions_of("Heartbeat"):
        cases = {
            "right": _heartbeat(member),
            "old generation": _heartbeat(member, generation=0),
            "future generation": _heartbeat(member, generation=9),
            "unknown member": _heartbeat(member, member_id=UNKNOWN_MEMBER),
            "empty member": _heartbeat(member, member_id=""),
            "empty group": _heartbeat(member, group=""),
            "absent group": _heartbeat(member, group=talk.name("absent")),
        }
        for case, request in cases.items():
            talk.ask(case, request, version, on=member.line)


def leave_versions(talk: Talk) -> None:
    for version in talk.versions_of("LeaveGroup"):
        member = _settled(talk, talk.name(f"v{version}"), "member")
        unknown = MemberIdentity(member_id=UNKNOWN_MEMBER)
        talk.ask("unknown", LeaveGroupRequest(group_id=member.group, member_id=UNKNOWN_MEMBER, members=[unknown]), version)
        talk.ask("absent group", LeaveGroupRequest(group_id=talk.name("absent"), member_id="m", members=[unknown]), version)
        talk.ask("empty group", LeaveGroupRequest(group_id="", member_id="m", members=[unknown]), version)
        if version >= 3:
            both = [MemberIdentity(member_id=member.member_id), unknown, MemberIdentity(member_id="", group_instance_id="nobody")]
            talk.ask("known and unknown", LeaveGroupRequest(group_id=member.group, members=both), version)
            talk.ask("nobody", LeaveGroupRequest(group_id=member.group, members=[]), version)
        else:
            talk.ask("known", _leave(member), version)
        talk.ask("again", _leave(member), version)


def rebalance(talk: Talk) -> None:
    """Two members: one joins, the other is told, both get their halves, one leaves."""
    first = _settled(talk, talk.name("two"), "first")
    second = Member(talk.connect("second"), first.group, "second")
    second.learn(talk.ask("second, without an id", join(second), 5, on=second.line))
    talk.ask("with a pending member", DescribeGroupsRequest(groups=[first.group]), 5)
    second.line.send(join(second), 5)
    wait_until(lambda: talk.do(_heartbeat(first), 3, on=first.line).error_code == REBALANCE_IN_PROGRESS)
    talk.ask("while preparing", DescribeGroupsRequest(groups=[first.group]), 5)
    talk.ask("while preparing", sync(first, {}), 3, on=first.line)
    first.learn(talk.ask("first, again", join(first), 5, on=first.line))
    second.learn(talk.hear("second joined", 5, on=second.line))
    talk.ask("while completing", DescribeGroupsRequest(groups=[first.group]), 5)
    talk.ask("first, while completing", _heartbeat(first), 3, on=first.line)
    second.line.send(sync(second, {}), 3)
    talk.ask("first gives both", sync(first, {first.member_id: b"left", second.member_id: b"right"}), 3, on=first.line)
    talk.hear("second gets its half", 3, on=second.line)
    talk.ask("stable", DescribeGroupsRequest(groups=[first.group]), 5)
    talk.ask("old generation", _heartbeat(first, generation=1), 3, on=first.line)
    talk.ask("first leaves", _leave(first), 3, on=first.line)
    wait_until(lambda: talk.do(_heartbeat(second), 3, on=second.line).error_code == REBALANCE_IN_PROGRESS)
    second.learn(talk.ask("second is alone", join(second), 5, on=second.line))
    talk.ask("second alone", sync(second, {second.member_id: b"all"}), 3, on=second.line)
    talk.ask("of the member that left", _heartbeat(first), 3, on=first.line)
    talk.ask("the end", DescribeGroupsRequest(groups=[first.group]), 5)


def leader_leaves_before_it_gave_assignments(talk: Talk) -> None:
    first = _settled(talk, talk.name("leader"), "first")
    second = Member(talk.connect("second"), first.group, "second")
    second.learn(talk.do(join(second), 5, on=second.line))
    second.line.send(join(second), 5)
    wait_until(lambda: talk.do(_heartbeat(first), 3, on=first.line).error_code == REBALANCE_IN_PROGRESS)
    first.learn(talk.do(join(first), 5, on=first.line))
    second.learn(second.line.receive())
    second.line.send(sync(second, {}), 3)
    talk.ask("the leader leaves", _leave(first), 3, on=first.line)
    talk.hear("the follower that waited", 3, on=second.line)
    second.learn(talk.ask("the follower joins again", join(second), 5, on=second.line))
    talk.ask("the follower leads", sync(second, {second.member_id: b"all"}), 3, on=second.line)


def group_of_its_greatest_size(talk: Talk) -> None:
    members = [Member(talk.connect(f"m{index}"), talk.name("full"), f"m{index}") for index in range(4)]
    for member in members[:3]:
        member.line.send(join(member), 3)
    for member in members[:3]:
        member.learn(member.line.receive())
    talk.ask("one too many", join(members[3]), 3, on=members[3].line)
    talk.ask("one too many, asking for an id", join(members[3]), 5, on=members[3].line)


def member_that_falls_silent(talk: Talk) -> None:
    member = Member(talk.connect("silent"), talk.name("silent"), "silent", session_timeout_ms=600)
    member.learn(talk.do(join(member), 3, on=member.line))
    talk.do(sync(member, {member.member_id: b"all"}), 3, on=member.line)
    wait_until(lambda: talk.do(DescribeGroupsRequest(groups=[member.group]), 5).groups[0].group_state == "Empty")
    talk.ask("after its session", DescribeGroupsRequest(groups=[member.group]), 5)
    talk.ask("after its session", _heartbeat(member), 3, on=member.line)
    member.learn(talk.ask("after its session, the old id", join(member), 3, on=member.line))


def protocol_selection(talk: Talk) -> None:
    """Each votes for the first protocol of its own list that all support."""
    wishes = {
        "m0": ("range", "sticky", "roundrobin"),
        "m1": ("sticky", "range", "roundrobin"),
        "m2": ("sticky", "roundrobin", "range"),
    }
    members = [Member(talk.connect(name), talk.name("votes"), name, protocols=list(wish)) for name, wish in wishes.items()]
    for member in members:
        member.line.send(join(member), 3)
    answers = [member.line.receive() for member in members]
    talk.note("chosen", sorted({answer.protocol_name for answer in answers}))
    for member, answer in zip(members, answers, strict=True):
        member.learn(answer)
    leader = next(m for m, a in zip(members, answers, strict=True) if a.leader == a.member_id)
    for member in members:
        if member is not leader:
            member.line.send(sync(member, {}), 3)
    leader.line.send(sync(leader, {member.member_id: member.name.encode() for member in members}), 3)
    shares = [member.line.receive().assignment == member.name.encode() for member in members]
    talk.note("each has its own share", shares)
    talk.ask("three members", DescribeGroupsRequest(groups=[leader.group]), 5)


def static_members(talk: Talk) -> None:
    group = talk.name("static")
    first = _settled(talk, group, "first", instance_id="one")
    talk.ask("settled", DescribeGroupsRequest(groups=[group]), 5)
    again = Member(talk.connect("first"), group, "first", "one")
    again.learn(talk.ask("the same instance, restarted", join(again), 5, on=again.line))
    talk.ask("restarted", sync(again, {}), 3, on=again.line)
    talk.ask("of the fenced one", _heartbeat(first), 3, on=first.line)
    talk.ask("of the fenced one", sync(first, {}), 3, on=first.line)
    talk.ask("the fenced one", join(first), 5, on=first.line)
    talk.ask("of the new one", _heartbeat(again), 3, on=again.line)
    changed = Member(talk.connect("first"), group, "changed", "one")
    changed.learn(talk.ask("restarted with another subscription", join(changed), 5, on=changed.line))
    talk.ask("with another subscription", sync(changed, {changed.member_id: b"new"}), 3, on=changed.line)
    latest = Member(talk.connect("first"), group, "changed", "one")
    latest.learn(talk.ask("restarted, in version 9", join(latest), 9, on=latest.line))
    talk.ask("before leaving", DescribeGroupsRequest(groups=[group]), 5)
    wrong = MemberIdentity(member_id=first.member_id, group_instance_id="one")
    talk.ask("by an old member id", LeaveGroupRequest(group_id=group, members=[wrong]), 3)
    by_instance = MemberIdentity(member_id="", group_instance_id="one")
    talk.ask("by instance", LeaveGroupRequest(group_id=group, members=[by_instance]), 3)
    talk.ask("after leaving", DescribeGroupsRequest(groups=[group]), 5)


def describe_groups(talk: Talk) -> None:
    member = _settled(talk, talk.name("described"), "member")
    for version in talk.versions_of("DescribeGroups"):
        talk.ask("one", DescribeGroupsRequest(groups=[member.group]), version)
        talk.ask("with operations", DescribeGroupsRequest(groups=[member.group], include_authorized_operations=True), version)
        talk.ask("with an absent one", DescribeGroupsRequest(groups=[member.group, talk.name("absent")]), version)
        talk.ask("none", DescribeGroupsRequest(groups=[]), version)
        talk.ask("one twice", DescribeGroupsRequest(groups=[member.group, member.group]), version)


def list_groups(talk: Talk) -> None:
    _settled(talk, talk.name("stable"), "member")
    gone = _settled(talk, talk.name("gone"), "member")
    talk.do(_leave(gone), 3, on=gone.line)
    for version in talk.versions_of("ListGroups"):
        filters: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), ())]
        if version >= 4:
            filters += [(("Stable",), ()), (("stable",), ()), (("Empty", "Stable"), ()), (("NoSuchState",), ())]
        if version >= 5:
            filters += [
                ((), ("classic",)),
                ((), ("Classic",)),
                ((), ("consumer",)),
                ((), ("nonsense",)),
                (("Empty",), ("classic",)),
            ]
        for states, types in filters:
            step = f"states {list(states)}, types {list(types)}"
            talk.ask(step, ListGroupsRequest(states_filter=list(states), types_filter=list(types)), version, only_mine=True)


def delete_groups(talk: Talk) -> None:
    for version in talk.versions_of("DeleteGroups"):
        live, gone = (
            _settled(talk, talk.name(f"live-{version}"), "member"),
            _settled(talk, talk.name(f"gone-{version}"), "member"),
        )
        talk.do(_leave(gone), 3, on=gone.line)
        names = [live.group, gone.group, talk.name("absent")]
        talk.ask("live, gone and absent", DeleteGroupsRequest(groups_names=names), version)
        talk.ask("gone, again", DeleteGroupsRequest(groups_names=[gone.group]), version)
        talk.ask("none", DeleteGroupsRequest(groups_names=[]), version)
        talk.ask(f"after v{version}", DescribeGroupsRequest(groups=[live.group, gone.group]), 6)
