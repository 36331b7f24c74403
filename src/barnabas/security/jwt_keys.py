"""The keys of an identity provider (JWKS, RFC 7517), and the check of a token's signature with them.

Owns one set of keys, read from JSON. Only this module imports PyJWT, and only if a listener accepts tokens (extra `oauth`).

Rules
  1. Public keys only: RSA, elliptic curves and Edwards curves. Keys for encryption and keys of unknown kinds are left out.
  2. The key, not the token, decides the signature algorithm.
"""

from __future__ import annotations

import json
import logging
from typing import Any, NamedTuple

from barnabas import limits
from barnabas.security.oauth import TokenRefused

logger = logging.getLogger(__name__)
ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}


class BadKeys(ValueError):
    """The text is not a set of keys."""


class UnknownKey(TokenRefused):
    """The token's key is not in the set; a newer set may have it."""


class _Key(NamedTuple):
    key_id: str | None
    key: Any
    algorithms: tuple[str, ...]


class KeySet:
    """The keys at one time; the constructor raises BadKeys."""

    def __init__(self, text: str | bytes) -> None:
        from jwt import PyJWK, PyJWTError

        try:
            found = json.loads(text)["keys"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BadKeys("no JSON with an array of keys") from None
        if not isinstance(found, list) or len(found) > limits.MAX_JWKS_KEYS:
            raise BadKeys(f"no array of keys, or more than {limits.MAX_JWKS_KEYS}")
        self._keys: list[_Key] = []
        unusable: Exception | None = None
        for each in found:
            algorithms = _algorithms(each)
            if algorithms:
                try:
                    self._keys.append(_Key(each.get("kid"), PyJWK(each, algorithm=algorithms[0]).key, algorithms))
                except (PyJWTError, ValueError, TypeError) as error:
                    logger.warning("event=key-passed-over key=%r error=%r", each.get("kid"), type(error).__name__)
                    unusable = error
        if unusable is not None and not self._keys:
            raise BadKeys(f"no key that can be read ({type(unusable).__name__})") from unusable

    def __len__(self) -> int:
        return len(self._keys)

    def claims_of(self, token: str) -> dict[str, Any]:
        """The claims of a token, after its signature by one of the keys is checked; raises TokenRefused."""
        from jwt import PyJWS, PyJWTError

        try:
            header = PyJWS().get_unverified_header(token)
        except PyJWTError:
            raise TokenRefused("it is no JWS") from None
        key_id = header.get("kid")
        candidates = [key for key in self._keys if key_id in (None, key.key_id)]
        if not candidates:
            raise UnknownKey("no key of that id")
        for key in candidates:
            try:
                claims = json.loads(PyJWS().decode(token, key.key, algorithms=list(key.algorithms)))
            except (PyJWTError, ValueError, TypeError, RecursionError):
                continue
            if isinstance(claims, dict):
                return claims
        raise TokenRefused("its signature is of no key")


def _algorithms(key: Any) -> tuple[str, ...]:
    if not isinstance(key, dict) or key.get("use", "sig") != "sig":
        return ()
    known = ALGORITHMS.get(str(key.get("kty")), ())
    named = key.get("alg")
    return known if named is None else tuple(name for name in known if name == named)
