"""Who calls a service: Basic and bearer log-ins, checked by SASL against the cluster.

Rules
  1. The cluster decides; a log-in that it accepted is not checked again for a short time, one that it refused is.
  2. The cache holds hashes with a random key, no password and no token.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
import secrets
import time
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, LoginFailed
from barnabas.client.sasl import HASHES, OAUTHBEARER, PLAIN, Credentials
from barnabas.errors import ConfigError
from barnabas.web.routing import HttpError

METHOD, MECHANISM = "authentication.method", "authentication.sasl.mechanism"
METHODS = ("NONE", "BASIC", "BEARER")
PASSWORDS = (PLAIN, *HASHES)


@dataclass(frozen=True, slots=True)
class _Given:
    """A caller's own token as a source of tokens."""

    text: str = field(repr=False)

    def token(self) -> str:
        return self.text


class Logins:
    """Checks the Authorization header of requests.

    Args:
        client: the service's own way to the cluster; its protocol must have SASL.
        methods: BASIC, BEARER or both.
        mechanism: of SASL, for Basic.
    """

    def __init__(self, client: ClientConfig, methods: frozenset[str], mechanism: str) -> None:
        self._client, self.methods, self._mechanism = client, methods, mechanism
        self._known: dict[bytes, tuple[str, float]] = {}
        self._key = secrets.token_bytes(32)
        self._turns = asyncio.Semaphore(limits.MAX_SERVICE_LOGINS_AT_ONCE)

    @property
    def challenge(self) -> bytes:
        """The value of WWW-Authenticate."""
        return b'Basic realm="barnabas"' if "BASIC" in self.methods else b'Bearer realm="barnabas"'

    async def principal(self, header: str) -> str:
        """Who sent this header; raises HttpError 401, or 503 if the cluster cannot be asked."""
        key = hashlib.blake2b(header.encode(), key=self._key).digest()
        found = self._known.get(key)
        if found is not None and time.monotonic() < found[1]:
            return found[0]
        principal, credentials = self._understand(header)
        async with self._turns:
            await asyncio.to_thread(self._ask, credentials)
        self._known.pop(key, None)
        while len(self._known) >= limits.MAX_SERVICE_LOGINS:
            del self._known[next(iter(self._known))]
        self._known[key] = principal, time.monotonic() + limits.SERVICE_LOGIN_KEPT_S
        return principal

    def _understand(self, header: str) -> tuple[str, Credentials]:
        scheme, _, text = header.partition(" ")
        method = scheme.upper()
        if method not in self.methods:
            raise HttpError(401, "Unauthorized")
        try:
            if method == "BASIC":
                user, colon, password = b64decode(text.strip(), validate=True).decode().partition(":")
                if not colon or not user or not password or "\0" in user + password:
                    raise ValueError
                return f"User:{user}", Credentials(self._mechanism, user, password)
            token = text.strip()
            payload = token.split(".")[1]
            subject = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
            return f"User:{subject}", Credentials(OAUTHBEARER, tokens=_Given(token))
        except (ValueError, KeyError, IndexError, TypeError, binascii.Error):
            raise HttpError(401, "Unauthorized") from None

    def _ask(self, credentials: Credentials) -> None:
        config = replace(self._client, credentials=credentials)
        for address in config.bootstrap_servers:
            try:
                Connection(address, config).close()
            except LoginFailed:
                raise HttpError(401, "Unauthorized") from None
            except ClientError:
                continue
            return
        raise HttpError(503, "The cluster cannot be asked about this log-in")


def logins_from(settings: Mapping[str, str], client: ClientConfig) -> Logins | None:
    """How callers log in, by the settings; None if they do not. Raises ConfigError."""
    methods = frozenset(word.strip().upper() for word in settings.get(METHOD, "NONE").split(",") if word.strip())
    if not methods <= set(METHODS):
        raise ConfigError(METHOD, settings[METHOD], f"of {', '.join(METHODS)}")
    methods -= {"NONE"}
    if not methods:
        return None
    if client.credentials is None:
        raise ConfigError(METHOD, settings[METHOD], "NONE unless security.protocol has SASL, by which the cluster checks callers")
    own = client.credentials.mechanism
    mechanism = settings.get(MECHANISM, own if own in PASSWORDS else PLAIN)
    if mechanism not in PASSWORDS:
        raise ConfigError(MECHANISM, mechanism, f"one of {', '.join(PASSWORDS)}")
    return Logins(client, methods, mechanism)
