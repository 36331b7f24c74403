"""The callers of a service: Basic and bearer log-ins, which SASL log-ins at the cluster check, and certificates.

Rules
  1. The cluster decides. After it has accepted a log-in, the service does not check this log-in again for a short time; a
     refused log-in is checked each time. A token is valid at most until its own expiry.
  2. The cache contains hashes with a random key, but no password and no token.
  3. Failures of an address delay its next answers and log-ins, as on the broker (`security/penalties.py`). For the broker all
     callers have the address of the service, so the service itself must stop a guesser.
  4. TLS has checked a certificate. Rules map its name to a principal, as on the broker. An Authorization header overrides a
     certificate: the certificate may be that of a proxy.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
import logging
import math
import secrets
import time
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import replace

from barnabas import limits
from barnabas.client.bearer import GivenToken
from barnabas.client.config import ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, LoginFailed
from barnabas.client.sasl import OAUTHBEARER, PLAIN, Credentials, password_mechanism
from barnabas.errors import ConfigError
from barnabas.security.penalties import Penalties, Source
from barnabas.security.principals import NoMatchingRule, PrincipalRules
from barnabas.services.tls import CLIENT_AUTH, client_auth, principal_rules
from barnabas.tls.names import subject_of
from barnabas.tls.settings import ClientAuth
from barnabas.web.routing import HttpError

logger = logging.getLogger(__name__)
METHOD = "authentication.method"
METHODS = ("NONE", "BASIC", "BEARER")
SUBJECT_CLAIM = "sasl.oauthbearer.sub.claim.name"  # the broker has the same setting


class Logins:
    """Finds the principals of callers.

    Args:
        client: the service's own client settings for the cluster; if there are methods, their protocol must have SASL.
        methods: BASIC, BEARER, both or none.
        mechanism: the SASL mechanism for Basic.
        rules: the rules for certificates; None if certificates do not identify callers.
        subject_claim: the claim of a token with the name of its user.
    """

    def __init__(
        self, client: ClientConfig, methods: frozenset[str], mechanism: str, *, rules: PrincipalRules | None = None,
        subject_claim: str = "sub",
    ) -> None:  # fmt: skip
        self._client, self.methods, self._mechanism = client, methods, mechanism
        self._rules, self._subject_claim = rules, subject_claim
        self._known: dict[bytes, tuple[str, float]] = {}
        self._key = secrets.token_bytes(32)
        self._turns = asyncio.Semaphore(limits.MAX_SERVICE_LOGINS_AT_ONCE)
        self._penalties = Penalties(
            limits.SERVICE_LOGIN_DELAY_MS, max_hosts=limits.MAX_SERVICE_LOGINS, max_waiting=limits.MAX_WAITING_LOGINS
        )

    @property
    def challenges(self) -> tuple[tuple[bytes, bytes], ...]:
        """The WWW-Authenticate headers, one for each method."""
        return tuple((b"www-authenticate", b'%s realm="barnabas"' % each.capitalize().encode()) for each in sorted(self.methods))

    async def principal(self, header: str, certificate: bytes | None = None, host: str = "") -> str:
        """The principal of a caller with this Authorization header, this certificate (DER) and this address.

        Raises:
            HttpError: 401; 429 if too many log-ins of the address wait; 503 if the cluster does not answer.
        """
        if self._rules is not None and certificate is not None and not (header and self.methods):
            try:
                return f"User:{self._rules.name_of(subject_of(certificate))}"
            except NoMatchingRule as error:
                logger.warning("event=http-login-refused reason=%r", str(error))
                raise _refused() from None
        key = hashlib.blake2b(header.encode(), key=self._key).digest()
        found = self._known.get(key)
        if found is not None and time.monotonic() < found[1]:
            return found[0]
        principal, credentials, lifetime_s = self._understand(header)
        await self._check(principal, credentials, host)
        self._known.pop(key, None)
        while len(self._known) >= limits.MAX_SERVICE_LOGINS:
            del self._known[next(iter(self._known))]
        self._known[key] = principal, time.monotonic() + min(limits.SERVICE_LOGIN_KEPT_S, lifetime_s)
        return principal

    async def _check(self, principal: str, credentials: Credentials, host: str) -> None:
        loop, source = asyncio.get_running_loop(), self._penalties.source(host, principal)
        await self._wait(source)
        try:
            async with self._turns:
                await asyncio.to_thread(self._ask, credentials)
        except HttpError as error:
            if error.status == 401:
                await asyncio.sleep(self._penalties.delay_ms(source, loop.time() * 1000) / 1000)
            raise
        self._penalties.logged_in(host, principal)

    async def _wait(self, source: Source) -> None:
        """Wait until the answer to the last failure of an address is due."""
        wait_ms = self._penalties.wait_ms(source, asyncio.get_running_loop().time() * 1000)
        if not wait_ms:
            return
        if not self._penalties.begin_wait(source):
            raise HttpError(429, "Too Many Requests")
        try:
            await asyncio.sleep(wait_ms / 1000)
        finally:
            self._penalties.end_wait(source)

    def _understand(self, header: str) -> tuple[str, Credentials, float]:
        """The principal that a header claims, its credentials, and the seconds for which a check is valid."""
        scheme, _, text = header.partition(" ")
        method = scheme.upper()
        if method not in self.methods:
            raise _refused()
        try:
            if method == "BASIC":
                user, colon, password = b64decode(text.strip(), validate=True).decode().partition(":")
                if not colon or not user or not password or "\0" in user + password:
                    raise ValueError
                return f"User:{user}", Credentials(self._mechanism, user, password), math.inf
            token = text.strip()
            payload = token.split(".")[1]
            claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            subject, ends_s = claims[self._subject_claim], float(claims["exp"])
            if not isinstance(subject, str) or not subject or not token.isascii() or not token.isprintable():
                raise ValueError
            return f"User:{subject}", Credentials(OAUTHBEARER, tokens=GivenToken(token)), ends_s - time.time()
        except (ValueError, KeyError, IndexError, TypeError, RecursionError, binascii.Error):
            raise _refused() from None

    def _ask(self, credentials: Credentials) -> None:
        config = replace(self._client, credentials=credentials)
        for address in config.bootstrap_servers:
            try:
                Connection(address, config).close()
            except LoginFailed as error:
                logger.info("event=http-login-refused reason=%r", str(error))
                raise _refused() from None
            except ClientError:
                continue
            return
        raise HttpError(503, "The cluster cannot be asked about this log-in")


def _refused() -> HttpError:
    return HttpError(401, "Unauthorized")


def logins_from(settings: Mapping[str, str], client: ClientConfig, scheme: str = "http") -> Logins | None:
    """The log-ins of a listener, from the settings; None if callers do not log in. Raises ConfigError."""
    shows = client_auth(settings)
    if shows is not ClientAuth.NONE and scheme != "https":
        raise ConfigError(CLIENT_AUTH, shows.value, "none, unless the listener is https://")
    rules = None if shows is ClientAuth.NONE else principal_rules(settings)
    methods = frozenset(word.strip().upper() for word in settings.get(METHOD, "NONE").split(",") if word.strip())
    if not methods <= set(METHODS):
        raise ConfigError(METHOD, settings[METHOD], f"of {', '.join(METHODS)}")
    methods -= {"NONE"}
    if not methods:
        return None if rules is None else Logins(client, methods, PLAIN, rules=rules)
    if client.credentials is None:
        raise ConfigError(METHOD, settings[METHOD], "NONE unless security.protocol has SASL, by which the cluster checks callers")
    mechanism = password_mechanism(settings, client.credentials)
    return Logins(client, methods, mechanism, rules=rules, subject_claim=settings.get(SUBJECT_CLAIM, "sub"))
