"""The messages to a listener that requires a log-in: every mechanism right, and wrong at each step; what comes too early, and
what again.

Each public function that takes a speaker is a conversation.
"""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any

from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.differential.logins.speaking import HASHES, NONCE, Scram, Speaker

WAIT_S = 30.0
GOOD, WRONG = b"\0alice\0alice", b"\0alice\0falsch"
PLAIN_TOKENS = {
    "right": GOOD,
    "right for himself": b"alice\0alice\0alice",
    "for somebody else": b"bob\0alice\0alice",
    "wrong": WRONG,
    "of nobody": b"\0nobody\0alice",
    "no user": b"\0\0alice",
    "no password": b"\0alice\0",
    "nothing": b"",
    "one part": b"alice",
    "two parts": b"alice\0alice",
    "four parts": b"\0alice\0alice\0",
    "another case": b"\0Alice\0alice",
}
EARLY: list[tuple[Message, int]] = [
    (ListGroupsRequest(), 3),
    (FindCoordinatorRequest(key="g"), 3),
    (HeartbeatRequest(group_id="g", member_id="m", generation_id=1), 3),
    (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 3),
    (CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3),
    (SaslAuthenticateRequest(auth_bytes=GOOD), 2),
]


def handshakes(speaker: Speaker) -> None:
    for version in (0, 1):
        for mechanism in ("PLAIN", *HASHES, "plain", "GSSAPI", "NONE", ""):
            speaker.shake(mechanism, version, mechanism or "without a name")
            speaker.is_open(f"after {mechanism or 'no name'} v{version}")
            speaker.reconnect()


def versions_before_and_after(speaker: Speaker) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    for version in (0, 3):
        speaker.ask("first", request, version)
        speaker.shake("PLAIN", step=f"after versions v{version}")
        speaker.ask("during the log-in", request, version)
        speaker.is_open(f"then v{version}")
        speaker.reconnect()
        speaker.ask("once", request, version)
        speaker.ask("twice", request, version)
        speaker.reconnect()


def passwords_by_plain(speaker: Speaker) -> None:
    for name, token in PLAIN_TOKENS.items():
        speaker.shake("PLAIN", step=f"for {name}")
        speaker.show(name, token)
        speaker.is_open(f"after {name}")
        speaker.reconnect()
    for version in (0, 1):
        for name, token in (("right", GOOD), ("wrong", WRONG)):
            speaker.shake("PLAIN", step=f"for {name} v{version}")
            speaker.show(name, token, version)
            speaker.reconnect()


def bare_tokens(speaker: Speaker) -> None:
    for name, token in (("right", GOOD), ("wrong", WRONG), ("nothing", b"")):
        speaker.shake("PLAIN", 0, f"for {name}")
        speaker.bare(name, token)
        speaker.is_open(f"after {name}")
        speaker.reconnect()
    for mechanism in HASHES:
        scram = Scram(mechanism, "alice", "scram")
        speaker.shake(mechanism, 0)
        first = speaker.bare(f"first of {mechanism}", scram.first())
        speaker.bare(f"final of {mechanism}", scram.final(first))
        speaker.ask(f"after {mechanism}", ListGroupsRequest(), 3)
        speaker.reconnect()


def scram_right_and_wrong(speaker: Speaker) -> None:
    for mechanism in HASHES:
        finals: dict[str, tuple[Scram, dict[str, Any]]] = {
            "right": (Scram(mechanism, "alice", "scram"), {}),
            "wrong password": (Scram(mechanism, "alice", "falsch"), {}),
            "of nobody": (Scram(mechanism, "nobody", "scram"), {}),
            "another nonce": (Scram(mechanism, "alice", "scram"), {"nonce": NONCE}),
            "another binding": (Scram(mechanism, "alice", "scram"), {"binding": "eSws"}),
            "a proof that is too short": (Scram(mechanism, "alice", "scram"), {"proof": b"short"}),
            "unknown extension": (Scram(mechanism, "alice", "scram", extension=",x=1"), {}),
            "a token that is none": (Scram(mechanism, "alice", "scram", extension=",tokenauth=true"), {}),
        }
        for name, (scram, wrong) in finals.items():
            speaker.shake(mechanism, step=f"{mechanism} for {name}")
            first = speaker.show(f"first of {mechanism}, {name}", scram.first())
            if first is not None:
                speaker.show(f"final of {mechanism}, {name}", scram.final(first, **wrong))
            speaker.is_open(f"after {mechanism}, {name}")
            speaker.reconnect()


def scram_first_messages(speaker: Speaker) -> None:
    mechanism = "SCRAM-SHA-256"
    firsts = {
        "for himself": b"n,a=alice,n=alice,r=x",
        "for somebody else": b"n,a=bob,n=alice,r=x",
        "no binding of his": b"y,,n=alice,r=x",
        "with a binding": b"p=tls-unique,,n=alice,r=x",
        "a reserved extension": b"n,,m=x,n=alice,r=x",
        "no nonce": b"n,,n=alice",
        "an empty nonce": b"n,,n=alice,r=",
        "no user": b"n,,n=,r=x",
        "no escape": b"n,,n=a=lice,r=x",
        "an escape": b"n,,n=a=3Dlice,r=x",
        "nonsense": b"nonsense",
        "nothing": b"",
    }
    for name, token in firsts.items():
        speaker.shake(mechanism, step=f"for {name}")
        speaker.show(name, token)
        speaker.is_open(f"after {name}")
        speaker.reconnect()
    finals = {"nonsense": b"nonsense", "nothing": b"", "the first again": b"n,,n=alice,r=x", "no proof": b"c=biws,r=x"}
    for name, token in finals.items():
        speaker.shake(mechanism, step=f"for a final message: {name}")
        speaker.show(f"first before {name}", b"n,,n=alice,r=x")
        speaker.show(f"final: {name}", token)
        speaker.is_open(f"after the final message: {name}")
        speaker.reconnect()


def what_comes_too_early(speaker: Speaker) -> None:
    for request, version in EARLY:
        speaker.ask("first of all", request, version)
        speaker.reconnect()
    for request, version in EARLY[:-1]:
        name = type(request).__name__
        speaker.shake("PLAIN", step=f"before {name}")
        speaker.ask("in the place of a token", request, version)
        speaker.is_open(f"after {name}")
        speaker.reconnect()
    speaker.shake("PLAIN", step="once")
    speaker.shake("PLAIN", step="twice")
    speaker.is_open("after two handshakes")


def what_comes_again(speaker: Speaker) -> None:
    """On connections of a mechanism whose sessions end, and of one whose sessions do not."""
    speaker.log_in()
    speaker.ask("again", SaslAuthenticateRequest(auth_bytes=GOOD), 2)
    speaker.ask("after that", ListGroupsRequest(), 3)
    speaker.shake("PLAIN", step="again")
    speaker.show("again, after a handshake", GOOD)
    speaker.ask("after re-authentication", ListGroupsRequest(), 3)
    cases = {
        "another user": ("PLAIN", b"\0bob\0bob"),
        "a wrong password": ("PLAIN", WRONG),
        "another mechanism": ("SCRAM-SHA-256", b"n,,n=alice,r=x"),
        "an unknown mechanism": ("NONE", b""),
    }
    for name, (mechanism, token) in cases.items():
        speaker.reconnect()
        speaker.heard.pop("SaslHandshake v1 to come in", None)
        speaker.heard.pop("SaslAuthenticate v2 to come in", None)
        speaker.log_in()
        speaker.shake(mechanism, step=f"again, as {name}")
        if mechanism != "NONE":
            speaker.show(f"again, as {name}", token)
        speaker.is_open(f"after {name}")
    speaker.reconnect()
    scram = Scram("SCRAM-SHA-512", "alice", "scram")
    speaker.shake("SCRAM-SHA-512", step="without an end")
    first = speaker.show("first, without an end", scram.first())
    speaker.show("final, without an end", scram.final(first))
    speaker.shake("SCRAM-SHA-512", step="again, without an end")
    speaker.ask("again, without an end", SaslAuthenticateRequest(auth_bytes=GOOD), 2)
    speaker.ask("then, without an end", ListGroupsRequest(), 3)


def where_there_is_no_log_in(speaker: Speaker) -> None:
    speaker.reconnect(in_the_clear=True)
    for version in (0, 1):
        speaker.ask("in the clear", SaslHandshakeRequest(mechanism="PLAIN"), version)
    for version in (0, 1, 2):
        speaker.ask("in the clear", SaslAuthenticateRequest(auth_bytes=GOOD), version)
    speaker.ask("in the clear", ListGroupsRequest(), 3)
    speaker.ask("in the clear", CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
    speaker.ask("in the clear", RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1), 2)
    speaker.ask("in the clear", ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1), 2)
    speaker.ask("in the clear", DescribeDelegationTokenRequest(owners=None), 3)


def delegation_tokens(speaker: Speaker) -> None:
    speaker.log_in()
    for kind in ("Group", "user", ""):
        renewers = [CreatableRenewers(principal_type=kind, principal_name="bob")]
        speaker.ask(f"for a renewer of type {kind}", CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1), 3)
    speaker.ask("that lives for no time", CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=0), 3)
    renewers = [CreatableRenewers(principal_type="User", principal_name="carol")]
    made = speaker.ask("", CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=600_000), 3)
    key = bytes(made.hmac)
    deadline = time.monotonic() + WAIT_S
    while speaker.ask_quietly(RenewDelegationTokenRequest(hmac=key, renew_period_ms=60_000), 2).error_code:
        assert time.monotonic() < deadline, "Kafka's controller has made it, and does not come to know it"
    for version in (1, 2):
        speaker.ask("of nobody", RenewDelegationTokenRequest(hmac=b"nothing like it", renew_period_ms=-1), version)
        speaker.ask("", RenewDelegationTokenRequest(hmac=key, renew_period_ms=60_000), version)
        speaker.ask("of nobody", ExpireDelegationTokenRequest(hmac=b"nothing like it", expiry_time_period_ms=-1), version)
    owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name="dave")]
    speaker.ask("of others", DescribeDelegationTokenRequest(owners=owners), 3)
    _log_in_by_token(speaker, made.token_id, key)
    speaker.reconnect()
    speaker.heard["as bob"] = "<another connection>"
    speaker.shake("PLAIN", step="bob's")
    speaker.show("bob's", b"\0bob\0bob")
    speaker.ask("of somebody else", RenewDelegationTokenRequest(hmac=key, renew_period_ms=-1), 2)
    speaker.ask("of somebody else", ExpireDelegationTokenRequest(hmac=key, expiry_time_period_ms=-1), 2)


def _log_in_by_token(speaker: Speaker, token_id: str, key: bytes) -> None:
    password = b64encode(key).decode()
    for name, shown, extension in (
        ("right", password, ",tokenauth=true"),
        ("wrong", "falsch", ",tokenauth=true"),
        ("not said to be one", password, ""),
    ):
        speaker.reconnect()
        scram = Scram("SCRAM-SHA-256", token_id, shown, extension=extension)
        speaker.shake("SCRAM-SHA-256", step=f"for a token, {name}")
        first = speaker.show(f"first of a token, {name}", scram.first())
        if first is not None:
            speaker.show(f"final of a token, {name}", scram.final(first))
        if name == "right":
            speaker.ask("by a token", CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
            speaker.ask("by a token", RenewDelegationTokenRequest(hmac=key, renew_period_ms=-1), 2)
            speaker.ask("by a token", ListGroupsRequest(), 3)
