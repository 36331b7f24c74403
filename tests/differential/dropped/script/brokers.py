"""Folders of logs, delegation tokens, and which versions are announced."""

from __future__ import annotations

import struct

from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.differential.dropped.talk import FIRST_KEPT, OldTalk, announced
from tests.differential.talk import Talk
from tests.differential.wire import ConnectionEnded, Line, framed, request_header
from tests.waiting import wait_until


def first_versions(talk: Talk) -> None:
    """Of all APIs that had older ones."""
    known = announced(talk.address)
    for key in FIRST_KEPT:
        talk.note(f"first version of {ApiKey(key).name}", known[key][0])


def versions_that_never_were(talk: Talk) -> None:
    for key in FIRST_KEPT:
        for version in (-1, 99, 32767):
            line = talk.connect()
            line.socket.sendall(framed(request_header(key, version, 1, flexible=False) + bytes(20)))
            try:
                line.receive_frame()
            except ConnectionEnded:
                talk.note(f"{ApiKey(key).name} in version {version}", "<connection closed>")
            else:
                talk.note(f"{ApiKey(key).name} in version {version}", "an answer")


def bodies_that_are_cut(talk: Talk) -> None:
    """In the oldest version: an array that the frame has not."""
    for key in FIRST_KEPT:
        line = talk.connect()
        line.socket.sendall(framed(request_header(key, 0, 1, flexible=False) + struct.pack(">h", 3)))
        try:
            line.receive_frame()
        except ConnectionEnded:
            talk.note(ApiKey(key).name, "<connection closed>")
        else:
            talk.note(ApiKey(key).name, "an answer")


def alter_log_dirs(talk: Talk) -> None:
    topic = talk.create("moved")

    def to(path: str, name: str, *partitions: int) -> AlterReplicaLogDirsRequest:
        moved = AlterReplicaLogDirTopic(name=name, partitions=list(partitions))
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[moved])])

    talk.ask("a folder that is none of the broker's", to("/absent", topic, 0), 0)
    talk.ask("two partitions, one absent", to("/absent", topic, 0, 9), 0)
    talk.ask("an absent topic", to("/absent", talk.name("absent"), 0), 0)
    talk.ask("a relative path", to("data", topic, 0), 0)
    talk.ask("nothing", AlterReplicaLogDirsRequest(dirs=[]), 0)


def tokens_without_a_login(talk: Talk) -> None:
    renewer = CreatableRenewers(principal_type="User", principal_name="bob")
    talk.ask("valid", CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1), 0)
    talk.ask("valid", RenewDelegationTokenRequest(hmac=b"hmac", renew_period_ms=1000), 0)
    talk.ask("valid", ExpireDelegationTokenRequest(hmac=b"hmac", expiry_time_period_ms=1000), 0)
    talk.ask("all", DescribeDelegationTokenRequest(owners=None), 0)
    alice = DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")
    talk.ask("of alice", DescribeDelegationTokenRequest(owners=[alice]), 0)
    talk.ask("of nobody", DescribeDelegationTokenRequest(owners=[]), 0)


def tokens(talk: OldTalk) -> None:
    """Of alice, who logs in; bob may renew them."""
    alice, bob = talk.log_in("alice"), talk.log_in("bob")

    def renew(hmac: bytes, period_ms: int = 1_000) -> RenewDelegationTokenRequest:
        return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

    def expire(hmac: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
        return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)

    def seen(on: Line) -> int:
        return len(talk.do(DescribeDelegationTokenRequest(owners=None), 1, on=on).tokens)

    renewers = [CreatableRenewers(principal_type="User", principal_name="bob")]
    wrong = [CreatableRenewers(principal_type="Group", principal_name="x")]
    talk.ask("a wrong renewer", CreateDelegationTokenRequest(renewers=wrong, max_lifetime_ms=-1), 0, on=alice)
    made = talk.ask("made", CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=3_600_000), 0, on=alice)
    wait_until(lambda: seen(alice) == 1)
    for name, line in {"alice": alice, "bob": bob}.items():
        talk.ask(f"all, by {name}", DescribeDelegationTokenRequest(owners=None), 0, on=line)
        talk.ask(f"not there, by {name}", renew(b"none"), 0, on=line)
        talk.ask(f"renewed, by {name}", renew(made.hmac), 0, on=line)
    talk.ask("not there", expire(b"none"), 0, on=alice)
    talk.ask("ended", expire(made.hmac), 0, on=alice)
    wait_until(lambda: seen(alice) == 0)
    talk.ask("all that is left", DescribeDelegationTokenRequest(owners=None), 0, on=alice)
