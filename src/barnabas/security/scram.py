"""The server's side of SCRAM (RFC 5802, RFC 7677): credentials without passwords, and the exchange of four messages.

Owns the stored form of a password (`Credential`) and one log-in (`ScramExchange`). Randomness comes from the caller.

Rules
  1. The password cannot be derived from the stored form.
  2. An unknown user fails at the same step as a wrong password, after an exchange that looks the same. For this, `unknown`
     derives a salt from the name; it is the same at each attempt.
  3. Every comparison of secrets takes the same time for all values.
  4. A Postgres client names no user in its messages, and signs them so. A server that relays them puts the user into the authorization
     id; see `UNNAMED`. This opens nothing: the proof is by the password of the user in the authorization id.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import NamedTuple

from barnabas.security.exchange import AuthenticationFailed, Identity

MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384  # the same limits as in Kafka
MAX_MESSAGE_BYTES = 4096
SALT_BYTES = 24  # bytes of generated salts
UNNAMED = ("", "*")  # user names of Postgres' clients: the server has the name from elsewhere
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class Credential(NamedTuple):
    """The stored form of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int) -> Credential:
    """Derive the credential from a password; takes some milliseconds."""
    return credential_from_salted(mechanism, salted(mechanism, password, salt, iterations), salt, iterations)


def salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """A salted password as in AlterUserScramCredentials; takes some milliseconds."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential_from_salted(mechanism: str, salted_password: bytes, salt: bytes, iterations: int) -> Credential:
    """Derive the credential from a salted password."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return Credential(salt, hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name), iterations)


def unknown(mechanism: str, user: str, secret: bytes, like: Credential | None = None) -> Credential:
    """A credential for an unknown user: it looks like a real one, and no password matches it.

    Args:
        secret: shared by all brokers. Without it, nobody can distinguish the salt of an unknown user from that of a known one.
        like: the credential of an existing user; gives the iterations and the length of the salt.
    """
    name = HASHES[mechanism]
    salt = hmac.digest(secret, user.encode(), "sha512")[: SALT_BYTES if like is None else len(like.salt)]
    size = hashlib.new(name).digest_size
    return Credential(salt, bytes(size), hmac.digest(secret, salt, name), MIN_ITERATIONS if like is None else like.iterations)


class ScramExchange:
    """One log-in.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        find: function that returns the credential of a name and its owner; for an unknown name the result of `unknown`. The
            name is that of a user, or of a delegation token if the client says so (tokenauth=true, KIP-48). It may raise
            NotYet.
        nonce: unique to this exchange, printable characters without a comma.
    """

    def __init__(self, mechanism: str, find: Callable[[str, bool], tuple[Credential, Identity]], nonce: str) -> None:
        self.mechanism = mechanism
        self.identity: Identity | None = None
        self._find = find
        self._nonce = nonce
        self._credential: Credential | None = None
        self._claimed: Identity | None = None
        self._auth_message = b""
        self._channel = ""
        self._expected_nonce = ""

    def claims(self, message: bytes) -> str | None:
        return None if self._claimed is None else self._claimed.user

    def evaluate(self, message: bytes) -> bytes:
        """The answer to the client's next message.

        Raises:
            AuthenticationFailed: the message does not parse, comes after the end of the exchange, or has a wrong proof.
        """
        if self.identity is not None or len(message) > MAX_MESSAGE_BYTES:
            raise AuthenticationFailed("a message too long" if self.identity is None else "a message too many")
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise AuthenticationFailed("a message that is no UTF-8") from None
        return self._first(text) if self._credential is None else self._final(text)

    def _first(self, text: str) -> bytes:
        """Answer the first message: `n,[a=authzid],n=user,r=nonce[,extensions]`."""
        parts = text.split(",", 2)
        if len(parts) != 3 or parts[0] not in ("n", "y"):
            raise AuthenticationFailed("a first message that cannot be read, or asks for channel binding")
        flag, authorization, bare = parts
        fields = bare.split(",")
        if len(fields) < 2 or not fields[0].startswith("n=") or not fields[1].startswith("r=") or len(fields[1]) < 3:
            raise AuthenticationFailed("a first message without user and nonce")
        named, asked = fields[0][2:], authorization.removeprefix("a=")
        relayed = named in UNNAMED and authorization.startswith("a=") and asked != named
        name = _unescape(asked if relayed else named)
        if authorization and _unescape(asked) != name:
            told = "Authentication failed: Client requested an authorization id that is different from username"
            raise AuthenticationFailed("another authorization id than the user's", told)
        self._credential, self._claimed = self._find(name, "tokenauth=true" in fields[2:])
        header = f"{flag},," if relayed else f"{flag},{authorization},"  # the client knows nothing of the authorization id
        self._channel = b64encode(header.encode()).decode()
        self._expected_nonce = fields[1][2:] + self._nonce
        first = f"r={self._expected_nonce},s={b64encode(self._credential.salt).decode()},i={self._credential.iterations}"
        self._auth_message = f"{bare},{first}".encode()
        return first.encode()

    def _final(self, text: str) -> bytes:
        """Answer the final message: `c=channel,r=nonce[,extensions],p=proof`."""
        assert self._credential is not None
        without_proof, separator, proof_text = text.rpartition(",p=")
        fields = without_proof.split(",")
        # Up to 2.6.0 librdkafka sends its own part of the nonce before the whole nonce. Kafka accepts that; it weakens nothing.
        has_nonce = len(fields) > 1 and fields[1].startswith("r=") and fields[1].endswith(self._expected_nonce)
        if not separator or not has_nonce or fields[0] != f"c={self._channel}":
            raise AuthenticationFailed("a final message that does not go with the first")
        try:
            proof = b64decode(proof_text, validate=True)
        except (Base64Error, ValueError):
            raise AuthenticationFailed("a proof that is no base 64") from None
        name = HASHES[self.mechanism]
        stored, auth = self._credential.stored_key, self._auth_message + f",{without_proof}".encode()
        signature = hmac.digest(stored, auth, name)
        if len(proof) != len(signature):
            raise AuthenticationFailed("a proof of a wrong length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(name, client_key).digest(), stored):
            raise AuthenticationFailed("a wrong password, or an unknown user")
        self.identity = self._claimed
        return b"v=" + b64encode(hmac.digest(self._credential.server_key, auth, name))


def _unescape(name: str) -> str:
    """Replace `=2C` by a comma and `=3D` by an equals sign; no other use of the sign is allowed."""
    result = name.replace("=2C", ",").replace("=3D", "\0").replace("=", "\1").replace("\0", "=")
    if "\1" in result or not result:
        raise AuthenticationFailed("a user name that cannot be read")
    return result
