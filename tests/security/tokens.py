"""An identity provider of the tests' own: keys, and tokens that they sign."""

from __future__ import annotations

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

NOW_S = 1_700_000_000


class Provider:
    """One key of a provider."""

    def __init__(self, key_id: str | None = "one", kind: str = "RS256") -> None:
        self.key_id = key_id
        self._kind = kind
        self._key: Any = (
            rsa.generate_private_key(public_exponent=65537, key_size=2048)
            if kind.startswith(("RS", "PS"))
            else ec.generate_private_key(ec.SECP256R1())
        )

    def public(self, **more: Any) -> dict[str, Any]:
        """The key as it stands in a JWKS."""
        algorithm = RSAAlgorithm if self._kind.startswith(("RS", "PS")) else ECAlgorithm
        key: dict[str, Any] = json.loads(algorithm.to_jwk(self._key.public_key()))
        key.pop("key_ops", None)
        return key | ({} if self.key_id is None else {"kid": self.key_id}) | more

    def sign(self, now_s: int = NOW_S, **claims: Any) -> str:
        """A good token of alice's, but for `claims`."""
        said = {"sub": "alice", "iat": now_s, "exp": now_s + 300, **claims}
        headers = {} if self.key_id is None else {"kid": self.key_id}
        wanted = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(wanted, self._key, algorithm=self._kind, headers=headers)


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys})


def unsecured(**claims: Any) -> str:
    """A token without a signature."""
    return jwt.encode({"sub": "alice", "exp": NOW_S + 300, **claims}, "", algorithm="none")
