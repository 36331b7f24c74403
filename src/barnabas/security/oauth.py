"""The server's side of OAUTHBEARER (RFC 7628): one message with a token, and the checks of the token.

Owns the exchange and the checks of a JWT's claims. `jwt_keys` checks signatures; time is an argument.

Rules
  1. A token must be signed by a key of the provider, and be valid at this time within `clock_skew_ms`. It must have the
     expected issuer and audience, if these are configured. The rules are exactly Kafka's: time of issue, expiry and subject are
     required, scopes are not.
  2. A listener accepts tokens without a signature only if it has no provider (`signed` is false), as in Kafka's default handler.
  3. The server sends a refusal as JSON and the client acknowledges it; then the log-in fails. Only the log has the reason.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas import limits
from barnabas.security.exchange import AuthenticationFailed, Identity

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST = re.compile(rf"n,(?:a=(?P<authorization>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
ACKNOWLEDGED = b"\x01"


class TokenRefused(Exception):
    """The token is refused.

    Args:
        reason: for the log.
        scope: the missing scope; None for another reason.
    """

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.scope = scope


class TokenRules(NamedTuple):
    """The required claims of a token.

    Args:
        signed: whether a provider signs tokens; if not, they have no signature.
        required_scope: the scope that tokens without a signature must have.
    """

    signed: bool = True
    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    clock_skew_ms: int = 30_000
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()


class OAuthExchange:
    """One log-in.

    Args:
        check: function from a token to the identity in it; raises TokenRefused.
    """

    def __init__(self, check: Callable[[str], Identity]) -> None:
        self._check = check
        self._refused: str | None = None  # the error sent to the client
        self._reason = ""
        self.identity: Identity | None = None

    def claims(self, message: bytes) -> str | None:
        return ""

    def evaluate(self, message: bytes) -> bytes:
        """The answer to a valid token is an empty message, the answer to any other is JSON; raises AuthenticationFailed."""
        if self._refused is not None:
            raise AuthenticationFailed(self._reason, self._refused if message == ACKNOWLEDGED else None)
        if self.identity is not None:
            raise AuthenticationFailed("a message too many")
        authorization, token = _read_first(message)
        try:
            identity = self._check(token)
        except TokenRefused as refusal:
            self._reason = f"a token that is refused: {refusal.reason}"
            self._refused = _told(refusal)
            return self._refused.encode()
        if authorization and authorization != identity.user:
            told = (
                f"Authentication failed: Client requested an authorization id ({authorization}) that is different from "
                f"the token's principal name ({identity.user})"
            )
            raise AuthenticationFailed("another authorization id than the token's", told)
        self.identity = identity
        return b""


def check_claims(claims: dict[str, Any], rules: TokenRules, now_ms: int) -> Identity:
    """The identity in the token's claims; raises TokenRefused."""
    expires_ms, issued_ms = _time(claims, "exp"), _time(claims, "iat")
    if expires_ms is None or (rules.signed and issued_ms is None):
        raise TokenRefused("no time of issue or of expiry")
    if expires_ms + rules.clock_skew_ms <= now_ms:
        raise TokenRefused("it has expired")
    starts_ms = max(_time(claims, "nbf") or 0, 0 if rules.signed else issued_ms or 0)
    if starts_ms - rules.clock_skew_ms > now_ms:
        raise TokenRefused("its time has not come")
    if issued_ms is not None and issued_ms > expires_ms:
        raise TokenRefused("it expires before it was issued")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("another issuer")
    if rules.audiences and not set(rules.audiences) & set(_words(claims, "aud")):
        raise TokenRefused("another audience")
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"no {rules.subject_claim}")
    scopes = _words(claims, rules.scope_claim)
    if len(set(scopes)) != len(scopes):
        raise TokenRefused(f"{rules.scope_claim} has a word twice")
    if not set(rules.required_scope) <= {word for scope in scopes for word in scope.split()}:
        raise TokenRefused("a scope is missing", " ".join(rules.required_scope))
    return Identity(subject.strip(), expires_ms, groups=tuple(_words(claims, "groups")))


def read_unsecured(token: str) -> dict[str, Any]:
    """The claims of a token without a signature (`alg` is none); raises TokenRefused."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise TokenRefused("it is no JWS without a signature")
    header, claims = (_object(part) for part in parts[:2])
    if header.get("alg") != "none":
        raise TokenRefused("it has an algorithm, and there are no keys")
    return claims


def _object(part: str) -> dict[str, Any]:
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (Base64Error, ValueError, RecursionError):
        raise TokenRefused("it cannot be read") from None
    if not isinstance(found, dict):
        raise TokenRefused("it cannot be read")
    return found


def _read_first(message: bytes) -> tuple[str, str]:
    if len(message) > limits.MAX_BEARER_BYTES:
        raise AuthenticationFailed("a message too long")
    found = _FIRST.fullmatch(message.decode(errors="replace"))
    if found is None:
        raise AuthenticationFailed("a first message that cannot be read")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
    scheme, _, token = pairs.get("auth", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationFailed("a first message without a bearer token")
    return (found["authorization"] or "").replace("=2C", ",").replace("=3D", "="), token.strip()


def _time(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise TokenRefused(f"{name} is no time")
    return int(value * 1000)


def _words(claims: dict[str, Any], name: str) -> list[str]:
    value = claims.get(name)
    if value is None:
        return []
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise TokenRefused(f"{name} is no text and no list of texts")
    return words


def _told(refusal: TokenRefused) -> str:
    if refusal.scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{refusal.scope}"}}'
