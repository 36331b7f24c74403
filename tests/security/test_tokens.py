"""The life of a delegation token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.exchange import NotYet
from barnabas.security.scram import HASHES
from barnabas.security.tokens import (
    Lifetimes,
    Token,
    TokenCredentials,
    create,
    credential_for,
    expire,
    find,
    renew,
    secret_of,
    tokens_of,
    usable,
)

Change = Callable[[], object]
LIFETIMES = Lifetimes(most_ms=1000, renewal_ms=100)
ALICE, BOB, CAROL, EVE = "User:alice", "User:bob", "User:carol", "User:eve"


def made(**changes: Any) -> Token:
    wanted: dict[str, Any] = {"owner": ALICE, "requester": BOB, "renewers": [CAROL, CAROL], "lifetime_ms": -1, "now_ms": 0}
    return create("id", lifetimes=LIFETIMES, **{**wanted, **changes})


def test_a_token_ends_after_a_renewal_and_at_last() -> None:
    token = made()
    assert (token.expires_ms, token.max_ms, token.renewers) == (100, 1000, (CAROL,))
    assert made(lifetime_ms=50)[-2:] == (50, 50)
    assert made(lifetime_ms=5000)[-2:] == (100, 1000)
    assert [token.is_over(now_ms) for now_ms in (0, 100, 101)] == [False, False, True]
    later = renew(token, CAROL, -1, LIFETIMES, 90)
    assert later.expires_ms == 190
    assert renew(token, CAROL, 10, LIFETIMES, 90).expires_ms == 100
    assert renew(token, CAROL, 5000, LIFETIMES, 90).expires_ms == 190
    assert renew(token._replace(expires_ms=1000), ALICE, -1, LIFETIMES, 990).expires_ms == 1000


def test_a_token_is_ended() -> None:
    token = made()
    assert expire(token, BOB, -1, 50) is None
    assert expire(token, BOB, -1, 500) is None
    assert expire(token, BOB, 0, 50) == token._replace(expires_ms=50)
    assert expire(token, BOB, 5000, 50) == token._replace(expires_ms=1000)


@pytest.mark.parametrize("principal", [ALICE, BOB, CAROL, EVE])
def test_only_some_may_renew_end_and_see_it(principal: str) -> None:
    token = made()
    assert token.is_of(principal) == (principal != EVE)
    changes: list[Change] = [lambda: renew(token, principal, -1, LIFETIMES, 1), lambda: expire(token, principal, -1, 1)]
    for change in changes:
        if principal != EVE:
            change()
            continue
        with pytest.raises(KafkaError) as caught:
            change()
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_what_is_over_is_not_changed() -> None:
    changes: list[Change] = [lambda: renew(made(), ALICE, -1, LIFETIMES, 101), lambda: expire(made(), ALICE, 5, 101)]
    for change in changes:
        with pytest.raises(KafkaError) as caught:
            change()
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED


@pytest.mark.parametrize("changes", [{"owner": "Group:a"}, {"renewers": [BOB, "Group:a"]}])
def test_only_users_have_and_renew_tokens(changes: dict[str, Any]) -> None:
    with pytest.raises(KafkaError) as caught:
        made(**changes)
    assert caught.value.code is ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_token_is_found_by_its_secret_and_by_its_id() -> None:
    token = made()
    declared = {"id": token.encode(), "other": {**token.encode(), "issued_ms": -1}}
    assert find(declared, secret_of("id", "key"), "key") == token
    assert [each.token_id for each in tokens_of(declared)] == ["other", "id"]
    for secret, key in ((b"", "key"), (secret_of("id", "key"), "another"), (secret_of("gone", "key"), "key")):
        with pytest.raises(KafkaError) as caught:
            find(declared, secret, key)
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert usable(declared, "id", 100) == token
    assert usable(declared, "id", 101) is None
    assert usable(declared, "gone", 0) is None


def test_so_many_credentials_are_kept() -> None:
    credentials = TokenCredentials(2)

    def derived(token_id: str) -> bool:
        """Whether that was to be done first."""
        try:
            found = credentials.find(token_id, "SCRAM-SHA-256", "key")
        except NotYet as missing:
            missing.prepare()
            return credentials.find(token_id, "SCRAM-SHA-256", "key") == credential_for(token_id, "SCRAM-SHA-256", "key")
        assert found == credential_for(token_id, "SCRAM-SHA-256", "key")
        return False

    assert [derived(token_id) for token_id in "aababcacb"] == [True, False, True, False, False, True, True, False, True]


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_credential_depends_on_token_and_key(mechanism: str) -> None:
    made = credential_for("id", mechanism, "key")
    assert credential_for("id", mechanism, "key") == made
    assert credential_for("id", mechanism, "another").stored_key != made.stored_key
    assert credential_for("it", mechanism, "key").salt != made.salt
