"""Storing, altering and describing users."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.security import users
from barnabas.security.scram import Credential, credential_of, salted, unknown
from barnabas.security.users import SECRET, Deletion, Patterns, Upsertion, alter, describe, find_credential

SALT = b"salt"
SHA256, SHA512 = 1, 2


def made(user: str = "alice", mechanism: int = SHA256, iterations: int = 4096) -> Upsertion:
    return Upsertion(user, mechanism, iterations, SALT, salted("SCRAM-SHA-256", "pw", SALT, 4096))


def after(
    declared: dict[str, Any], deletions: list[Deletion] | None = None, upsertions: list[Upsertion] | None = None
) -> dict[str, Any]:
    errors, changed = alter(declared, deletions or [], upsertions or [], secret=b"secret")
    assert set(errors.values()) == {None}
    return {user: fields for user, fields in {**declared, **changed}.items() if fields is not None}


def codes(declared: dict[str, Any], *changes: Deletion | Upsertion) -> dict[str, Any]:
    deletions = [change for change in changes if isinstance(change, Deletion)]
    upsertions = [change for change in changes if isinstance(change, Upsertion)]
    errors, changed = alter(declared, deletions, upsertions, secret=b"secret")
    assert not {user for user, error in errors.items() if error} & changed.keys()
    return {user: error and (error.code, error.message) for user, error in errors.items()}


def test_users_come_and_go_by_mechanism() -> None:
    one = after({}, upsertions=[made(), made("bob", SHA512)])
    assert describe(one, None) == [("alice", ((1, 4096),), None), ("bob", ((2, 4096),), None)]
    two = after(one, upsertions=[made(mechanism=SHA512, iterations=8192)])
    assert describe(two, ["alice"]) == [("alice", ((1, 4096), (2, 8192)), None)]
    three = after(two, [Deletion("alice", SHA256)])
    assert describe(three, ["alice"]) == [("alice", ((2, 8192),), None)]
    four = after(three, [Deletion("alice", SHA512), Deletion("bob", SHA512)])
    assert four.keys() == {SECRET}
    assert describe(four, None) == []
    assert "pw" not in str(two)


def test_the_secret_is_made_once() -> None:
    one = after({}, upsertions=[made()])
    _, changed = alter(one, [], [made("bob")], secret=b"another")
    assert SECRET not in changed


def test_a_credential_is_found_and_an_unknown_one_looks_alike() -> None:
    declared = after({}, upsertions=[made(iterations=8192)])
    assert find_credential(declared, "alice", "SCRAM-SHA-256", Patterns()).salt == SALT
    for user, mechanism in (("bob", "SCRAM-SHA-256"), ("alice", "SCRAM-SHA-512"), (SECRET, "SCRAM-SHA-256")):
        like = Credential(SALT, b"", b"", 8192) if mechanism == "SCRAM-SHA-256" else None
        assert find_credential(declared, user, mechanism, Patterns()) == unknown(mechanism, user, b"secret", like)


def test_unknown_users_look_like_each_kind_of_known_ones() -> None:
    long_salt = made("carol", iterations=8192)._replace(salt=b"a longer salt")
    declared = after({}, upsertions=[made(), made("bob"), long_salt])
    patterns = Patterns()
    names = [f"nobody{number}" for number in range(300)]
    found = [find_credential(declared, name, "SCRAM-SHA-256", patterns) for name in names]
    kinds = Counter((each.iterations, len(each.salt)) for each in found)
    assert kinds.keys() == {(4096, 4), (8192, 13)}
    assert 50 < kinds[8192, 13] < 150, "as many as of the known ones: a third"
    more = after(declared, upsertions=[made("dave")])
    changed = sum(find_credential(more, name, "SCRAM-SHA-256", patterns) != one for name, one in zip(names, found, strict=True))
    assert changed < 50, "an eighth or so takes the pattern that is more frequent now"


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        (made(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (made("\0other"), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (made(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (made(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (made(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (Deletion("", SHA256), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (Deletion("alice", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (Deletion("alice", 1), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    ],
)
def test_what_is_refused(change: Deletion | Upsertion, code: ErrorCode, told: str) -> None:
    assert codes({}, change, made("bob")) == {change.user: (code, told), "bob": None}


def test_a_credential_is_altered_once() -> None:
    declared = after({}, upsertions=[made()])
    twice = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    assert codes(declared, made(), made()) == {"alice": twice}
    assert codes(declared, Deletion("alice", SHA256), made()) == {"alice": twice}
    assert codes(declared, Deletion("alice", SHA256), made(mechanism=SHA512)) == {"alice": None}


def test_what_cannot_be_described() -> None:
    declared = after({}, upsertions=[made()])
    described = describe(declared, ["alice", "alice", "bob", SECRET])
    assert [(each.user, each.error and each.error.code) for each in described] == [
        ("alice", ErrorCode.DUPLICATE_RESOURCE),
        ("bob", ErrorCode.RESOURCE_NOT_FOUND),
        (SECRET, ErrorCode.RESOURCE_NOT_FOUND),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"iterations": 1},
        {"iterations": 10**9},
        {"iterations": "4096"},
        {"salt": ""},
        {"salt": "AAAA" * 1000},
        {"stored_key": "AAAA"},
        {"server_key": None},
        {"more": 1},
    ],
)
def test_a_user_from_elsewhere_is_checked(change: dict[str, Any]) -> None:
    good = users.encode(credential_of("SCRAM-SHA-256", "p", b"salt", 4096))
    assert users.is_stored_user({"SCRAM-SHA-256": good})
    assert not users.is_stored_user({"SCRAM-SHA-256": {**good, **change}})
    assert not users.is_stored_user({"SCRAM-SHA-512": good})
    assert not users.is_stored_user({"SCRAM-MD5": good})
    assert not users.is_stored_user({})
    assert not users.is_stored_user(None)
