"""GSSAPI's exchange against a context that is a function, and the rules of names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.security.exchange import AuthenticationFailed, Identity
from barnabas.security.kerberos import MAX_TOKEN_BYTES, BadRules, GssapiExchange, parse_rules, short_name

OFFER = b"wrapped:\x01\x00\x00\x00"
ALICE = "alice@REALM"


class FakeContext:
    """Complete after the token "last"; wraps by a prefix."""

    def __init__(self, last_answer: bytes = b"") -> None:
        self.complete = False
        self.initiator = ALICE
        self._last_answer = last_answer

    def step(self, token: bytes) -> bytes:
        if token == b"bad":
            raise AuthenticationFailed("a ticket that is refused")
        self.complete = token == b"last"
        return self._last_answer if self.complete else b"more"

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"wrapped:"):
            raise AuthenticationFailed("not wrapped")
        return message.removeprefix(b"wrapped:")


def exchange(last_answer: bytes = b"", name_of: Callable[[str], str] = lambda name: name.partition("@")[0]) -> GssapiExchange:
    return GssapiExchange(FakeContext(last_answer), name_of)


def test_tokens_then_an_offer_then_an_agreement() -> None:
    mine = exchange()
    assert mine.evaluate(b"first") == b"more"
    assert mine.evaluate(b"last") == OFFER
    assert mine.identity is None
    assert mine.evaluate(OFFER + b"kafka@localhost") == b""
    assert mine.identity == Identity("alice")
    with pytest.raises(AuthenticationFailed, match="too many"):
        mine.evaluate(b"")


def test_a_last_token_of_the_servers_comes_before_the_offer() -> None:
    mine = exchange(b"mutual")
    assert mine.evaluate(b"last") == b"mutual"
    assert mine.evaluate(b"") == OFFER


@pytest.mark.parametrize(
    "messages",
    [
        [b"bad"], [b"x" * (MAX_TOKEN_BYTES + 1)], [b"last", b"not wrapped"], [b"last", b"wrapped:\x02\0\0\0"], [b"last", b"wrapped:\x01"],
        [b"last", b"wrapped:"],
    ],
)  # fmt: skip
def test_what_is_refused(messages: list[bytes]) -> None:
    mine = exchange()
    for message in messages[:-1]:
        mine.evaluate(message)
    with pytest.raises(AuthenticationFailed):
        mine.evaluate(messages[-1])
    assert mine.identity is None


def test_a_token_after_the_last() -> None:
    mine = exchange(b"mutual")
    mine.evaluate(b"last")
    with pytest.raises(AuthenticationFailed, match="after the last"):
        mine.evaluate(b"more")


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        (["DEFAULT"], ALICE, "alice"),
        (["DEFAULT"], "alice/host@REALM", "alice"),
        (["DEFAULT"], "alice@OTHER", None),
        (["DEFAULT"], "alice", None),
        (["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"], "alice@OTHER", "alice"),
        (["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"], ALICE, "alice"),
        (["RULE:[2:$1.$2]"], "alice/host@OTHER", "alice.host"),
        (["RULE:[2:$1.$2]"], ALICE, None),
        (["RULE:[1:$1]/U"], ALICE, "ALICE"),
        (["RULE:[1:$1]s/a/x/g/L"], "aAa@REALM", "xax"),
        (["RULE:[1:$1]s/a/x/"], "aAa@REALM", "xAa"),
        (["RULE:[1:$1](b.*)"], ALICE, None),
        (["RULE:[1:$1]s/(.)(.*)/$2$1/"], ALICE, "licea"),
        (["RULE:[1:$1@$0]", "DEFAULT"], ALICE, None),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules: list[str], principal: str, user: str | None) -> None:
    if user is None:
        with pytest.raises(AuthenticationFailed):
            short_name(principal, parse_rules(rules), "REALM")
    else:
        assert short_name(principal, parse_rules(rules), "REALM") == user


@pytest.mark.parametrize(
    "text", ["", "default", "RULE:", "RULE:[x:$1]", "RULE:[1:$1](", "RULE:[1:$1]([)", "RULE:[1:$1]s/(/x/", "RULE:[1:$2$1]"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(BadRules):
        parse_rules([text])
