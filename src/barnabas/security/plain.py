"""The server's side of PLAIN (RFC 4616): one message with name and password.

Rules
  1. An unknown user fails like a wrong password and after the same time, because there is always a comparison.
  2. Sentences to the peer are Kafka's.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from barnabas.security.exchange import AuthenticationFailed, Identity

NO_PASSWORD = "\0"  # no client can send this password, because the character separates the fields of the message


class PlainExchange:
    """One log-in.

    Args:
        passwords: the passwords by user.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.identity: Identity | None = None

    def claims(self, message: bytes) -> str | None:
        fields = message.decode(errors="replace").split("\0")
        return fields[1] if len(fields) > 1 else ""

    def evaluate(self, message: bytes) -> bytes:
        """An empty answer if the password is right; raises AuthenticationFailed."""
        if self.identity is not None:
            raise AuthenticationFailed("a message too many")
        try:
            fields = message.decode().split("\0")
        except UnicodeDecodeError:
            raise AuthenticationFailed("a message that is no UTF-8") from None
        if len(fields) != 3:
            told = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(fields)}"
            raise AuthenticationFailed(f"a message of {len(fields)} fields", told)
        authorization, user, password = fields
        if not user or not password:
            missing = "password" if user else "username"
            raise AuthenticationFailed(f"no {missing}", f"Authentication failed: {missing} not specified")
        expected = self._passwords.get(user, NO_PASSWORD)
        if not hmac.compare_digest(_same_length(expected), _same_length(password)):
            raise AuthenticationFailed(
                "a wrong password, or an unknown user", "Authentication failed: Invalid username or password"
            )
        if authorization and authorization != user:
            told = "Authentication failed: Client requested an authorization id that is different from username"
            raise AuthenticationFailed("another authorization id than the user's", told)
        self.identity = Identity(user)
        return b""


def _same_length(password: str) -> bytes:
    """A digest of the password. The comparison uses it instead of the text, so that its time does not reveal the length."""
    return hashlib.sha256(password.encode()).digest()
