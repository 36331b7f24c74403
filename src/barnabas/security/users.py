"""Users with SCRAM credentials: stores, alters and describes them (KIP-554).

Owns the stored fields of a user: for each mechanism the salt, both keys and the iterations in base64, never a password.

Rules
  1. Codes and sentences are Kafka's. One request may alter a user's credential for one mechanism only once. A user with an
     error stays unchanged.
  2. The first user also creates a secret (`SECRET`). With it, unknown users look like known ones, and look the same on every
     broker.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.security.scram import HASHES, MAX_ITERATIONS, MIN_ITERATIONS, Credential, credential_from_salted, unknown

MECHANISM_NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}  # the numbers of AlterUserScramCredentials
NUMBERS = {name: number for number, name in MECHANISM_NUMBERS.items()}
SECRET = "\0secret"  # user names cannot start with \0, so this key conflicts with none
SECRET_BYTES = 32
MAX_SALT_BYTES = 1_024  # of a credential from another cluster
Declared = Mapping[str, Any]  # user name -> fields
Pattern = tuple[int, int]  # iterations, and bytes of the salt


class Upsertion(NamedTuple):
    """A credential to create or replace."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class Deletion(NamedTuple):
    """A credential to delete."""

    user: str
    mechanism: int


class Described(NamedTuple):
    """A user's mechanisms (by number) with their iterations, or the error."""

    user: str
    infos: tuple[tuple[int, int], ...] = ()
    error: KafkaError | None = None


class Patterns:
    """The number of credentials for each pair of iterations and salt length.

    Counted once for each set of users: otherwise the time of a log-in would reveal that a user is unknown.
    """

    def __init__(self) -> None:
        self._declared: Declared = {}
        self._counted: dict[str, Counter[Pattern]] = {}

    def of(self, declared: Declared, mechanism: str) -> Counter[Pattern]:
        """The counts of a mechanism. A `Declared` never changes: after a change of users there is another object."""
        if declared is not self._declared:
            self._declared, self._counted = declared, {}
        if mechanism not in self._counted:
            found = (fields[mechanism] for name, fields in declared.items() if name != SECRET and mechanism in fields)
            self._counted[mechanism] = Counter((each["iterations"], len(b64decode(each["salt"]))) for each in found)
        return self._counted[mechanism]


def find_credential(declared: Declared, user: str, mechanism: str, patterns: Patterns) -> Credential:
    """The credential of a user for a mechanism; for an unknown user, one that looks real."""
    fields = None if user.startswith("\0") else declared.get(user, {}).get(mechanism)
    if fields is not None:
        return _decode(fields)
    secret = b64decode(declared.get(SECRET, {}).get("secret", ""))
    return unknown(mechanism, user, secret, _like(secret, user, patterns.of(declared, mechanism)))


def _like(secret: bytes, user: str, counted: Counter[Pattern]) -> Credential | None:
    """The iterations and salt length of an unknown user: they are as frequent as among known users, and stay the same for a
    name when other users change.

    Each pattern gets a number from the name, and the largest number wins (weighted rendezvous hashing).
    """
    if not counted:
        return None

    def drawn(pattern: Pattern) -> float:
        drawn = int.from_bytes(hmac.digest(secret, f"{pattern} {user}".encode(), "sha256")[:6])
        return counted[pattern] / -math.log((drawn + 0.5) / 2**48)

    iterations, salt_bytes = max(sorted(counted), key=drawn)
    return Credential(bytes(salt_bytes), b"", b"", iterations)


def alter(
    declared: Declared, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion], *, secret: bytes
) -> tuple[dict[str, KafkaError | None], dict[str, Any]]:
    """The result for each user, and the users to store: None for a user without remaining credentials.

    Args:
        secret: random bytes, used if there is no secret yet.
    """
    errors: dict[str, KafkaError | None] = {}
    seen: set[tuple[str, int]] = set()
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    for change in changes:
        error = _refusal(declared, change)
        if error is None and (change.user, change.mechanism) in seen:
            told = "A user credential cannot be altered twice in the same request"
            error = KafkaError(ErrorCode.DUPLICATE_RESOURCE, told)
        seen.add((change.user, change.mechanism))
        errors[change.user] = errors.get(change.user) or error
    changed: dict[str, Any] = {}
    for deletion in deletions:
        if errors[deletion.user] is None:
            fields = changed.setdefault(deletion.user, dict(declared.get(deletion.user, {})))
            del fields[MECHANISM_NUMBERS[deletion.mechanism]]
    for upsertion in upsertions:
        if errors[upsertion.user] is None:
            fields = changed.setdefault(upsertion.user, dict(declared.get(upsertion.user, {})))
            mechanism = MECHANISM_NUMBERS[upsertion.mechanism]
            fields[mechanism] = encode(
                credential_from_salted(mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations)
            )
    if changed and SECRET not in declared:
        changed[SECRET] = encode_secret(secret)
    return errors, {user: fields or None for user, fields in changed.items()}


def describe(declared: Declared, users: Sequence[str] | None) -> list[Described]:
    """Describe the named users, or all."""
    if not users:
        users = [user for user in declared if user != SECRET]
    return [_describe(declared, user, twice=users.count(user) > 1) for user in dict.fromkeys(users)]


def encode(credential: Credential) -> dict[str, Any]:
    """The stored form of a credential."""
    return {
        "salt": b64encode(credential.salt).decode(),
        "stored_key": b64encode(credential.stored_key).decode(),
        "server_key": b64encode(credential.server_key).decode(),
        "iterations": credential.iterations,
    }


def is_stored_user(fields: Any) -> bool:
    """Whether fields that came from elsewhere are the stored form of a user."""
    if not isinstance(fields, dict) or not fields or not fields.keys() <= NUMBERS.keys():
        return False
    return all(_is_stored(mechanism, each) for mechanism, each in fields.items())


def _is_stored(mechanism: str, fields: Any) -> bool:
    try:
        credential = _decode(fields)
    except (TypeError, KeyError, ValueError):
        return False
    size = hashlib.new(HASHES[mechanism]).digest_size
    iterations = credential.iterations
    return (
        isinstance(iterations, int)
        and MIN_ITERATIONS <= iterations <= MAX_ITERATIONS
        and len(credential.stored_key) == len(credential.server_key) == size
        and 0 < len(credential.salt) <= MAX_SALT_BYTES
        and fields.keys() == encode(credential).keys()
    )


def encode_secret(secret: bytes) -> dict[str, Any]:
    """The stored form of the secret."""
    return {"secret": b64encode(secret).decode()}


def _decode(fields: Mapping[str, Any]) -> Credential:
    salt, stored, server = (b64decode(fields[name]) for name in ("salt", "stored_key", "server_key"))
    return Credential(salt, stored, server, fields["iterations"])


def _describe(declared: Declared, user: str, *, twice: bool) -> Described:
    if twice:
        told = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return Described(user, error=KafkaError(ErrorCode.DUPLICATE_RESOURCE, told))
    fields = None if user.startswith("\0") else declared.get(user)
    if fields is None:
        told = f"Attempt to describe a user credential that does not exist: {user}"
        return Described(user, error=KafkaError(ErrorCode.RESOURCE_NOT_FOUND, told))
    return Described(user, tuple(sorted((NUMBERS[name], kept["iterations"]) for name, kept in fields.items())))


def _refusal(declared: Declared, change: Deletion | Upsertion) -> KafkaError | None:
    if not change.user or change.user.startswith("\0"):
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = MECHANISM_NUMBERS.get(change.mechanism)
    if mechanism is None:
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Deletion):
        if mechanism in declared.get(change.user, {}):
            return None
        return KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    if change.iterations < MIN_ITERATIONS:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None
