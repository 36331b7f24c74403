"""Delegation tokens (KIP-48): created for a user, used instead of the user's password over SCRAM, renewed and expired.

Owns the stored fields of a token and the rules of its lifetime. Time and random values are arguments.

Rules
  1. A token's password is an HMAC of its id by `delegation.token.secret.key`; it is computed when needed and never stored.
  2. A token ends at its expiry time. A renewal moves that time, but not after `max_ms`.
  3. Owner, requester and renewers may renew and end a token. Codes and their order are Kafka's.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.security.exchange import NotYet
from barnabas.security.scram import MIN_ITERATIONS, SALT_BYTES, Credential, credential_of

USER = "User"
Declared = Mapping[str, Any]  # token id -> fields, as stored in the metadata


class Token(NamedTuple):
    """One token. Principals are written "User:alice"."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def is_over(self, now_ms: int) -> bool:
        return min(self.expires_ms, self.max_ms) < now_ms

    def is_of(self, principal: str) -> bool:
        """Whether a principal may renew, expire and see the token."""
        return principal in (self.owner, self.requester, *self.renewers)

    def encode(self) -> dict[str, Any]:
        """The stored form of the token."""
        fields = self._asdict()
        del fields["token_id"]
        return {**fields, "renewers": list(self.renewers)}


class Lifetimes(NamedTuple):
    """The limits of lifetimes in the brokers' settings."""

    most_ms: int  # delegation.token.max.lifetime.ms
    renewal_ms: int  # delegation.token.expiry.time.ms


def tokens_of(declared: Declared) -> list[Token]:
    """All tokens, the oldest first."""
    return sorted((_decode(token_id, fields) for token_id, fields in declared.items()), key=lambda token: token.issued_ms)


def secret_of(token_id: str, key: str) -> bytes:
    """The HMAC that proves possession of the token."""
    return hmac.digest(key.encode(), token_id.encode(), "sha512")


def create(
    token_id: str, *, owner: str, requester: str, renewers: Iterable[str], lifetime_ms: int, lifetimes: Lifetimes, now_ms: int
) -> Token:
    """A new token; raises KafkaError(INVALID_PRINCIPAL_TYPE) for an owner or a renewer that is not a user."""
    renewers = tuple(dict.fromkeys(renewers))
    if any(principal.partition(":")[0] != USER for principal in (owner, *renewers)):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    max_ms = now_ms + (min(lifetime_ms, lifetimes.most_ms) if lifetime_ms > 0 else lifetimes.most_ms)
    return Token(token_id, owner, requester, renewers, now_ms, min(max_ms, now_ms + lifetimes.renewal_ms), max_ms)


def renew(token: Token, principal: str, period_ms: int, lifetimes: Lifetimes, now_ms: int) -> Token:
    """The token with a later expiry time; raises KafkaError."""
    if token.is_over(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not token.is_of(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    period_ms = min(period_ms, lifetimes.renewal_ms) if period_ms > 0 else lifetimes.renewal_ms
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def expire(token: Token, principal: str, period_ms: int, now_ms: int) -> Token | None:
    """The token with another expiry time; None if it ends now. Raises KafkaError."""
    if not token.is_of(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if period_ms < 0:
        return None
    if token.is_over(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def find(declared: Declared, secret: bytes, key: str) -> Token:
    """The token of a secret; raises KafkaError(DELEGATION_TOKEN_NOT_FOUND)."""
    for token_id, fields in declared.items():
        if hmac.compare_digest(secret_of(token_id, key), secret):
            return _decode(token_id, fields)
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def usable(declared: Declared, token_id: str, now_ms: int) -> Token | None:
    """The token of an id, if it is valid now."""
    fields = declared.get(token_id)
    token = None if fields is None else _decode(token_id, fields)
    return None if token is None or token.is_over(now_ms) else token


class TokenCredentials:
    """A cache of the SCRAM credentials of recently used tokens.

    Args:
        most: the size of the cache; two mechanisms of one token count twice.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[str, str, str], Credential] = {}
        self._lock = Lock()  # `prepare` of a NotYet runs in threads

    def find(self, token_id: str, mechanism: str, key: str) -> Credential:
        """The credential of a token; raises NotYet if it must be derived first."""
        wanted = token_id, mechanism, key
        with self._lock:
            found = self._kept.pop(wanted, None)
            if found is None:
                raise NotYet(partial(self._derive, wanted))
            self._kept[wanted] = found  # keeps the order of use: the last used comes last
            return found

    def _derive(self, wanted: tuple[str, str, str]) -> None:
        derived = credential_for(*wanted)
        with self._lock:
            self._kept[wanted] = derived
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]


def credential_for(token_id: str, mechanism: str, key: str) -> Credential:
    """The SCRAM credential of a token; takes some milliseconds."""
    secret = secret_of(token_id, key)
    salt = hmac.digest(secret, b"salt", "sha256")[:SALT_BYTES]
    return credential_of(mechanism, b64encode(secret).decode(), salt, MIN_ITERATIONS)


def _decode(token_id: str, fields: Mapping[str, Any]) -> Token:
    return Token(token_id, **{**fields, "renewers": tuple(fields["renewers"])})
