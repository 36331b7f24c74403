"""Sources of a client's bearer tokens: a file, or an identity provider with client credentials (RFC 6749, section 4.4).

Owns the requests to providers, and caches their tokens while they are valid.

Rules
  1. Each log-in gets a token: a file is read again, since it may have changed; a provider's token is reused for most of its
     lifetime.
  2. `token` may block: code with an event loop calls it in a thread.
  3. No error and no `repr` contains a secret or a token. Redirects of a provider are not followed, because the secret would go
     to the new address.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from barnabas import limits
from barnabas.client.errors import LoginFailed
from barnabas.digits import is_number
from barnabas.errors import ConfigError

TOKEN = "sasl.oauthbearer.token"  # a setting of services alone
URL = "sasl.oauthbearer.token.endpoint.url"
SCOPE = "sasl.oauthbearer.scope"
# Kafka's name, librdkafka's name, and Kafka's oldest form: the option of the login context
CLIENT_ID = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id", "clientId")
CLIENT_SECRET = ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret", "clientSecret")
SCOPES = (SCOPE, "scope")
CONNECT_TIMEOUT, READ_TIMEOUT = "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"
DEFAULT_TIMEOUT_MS = 10_000
SHOWN_FOR = 0.8  # share of a token's lifetime for which the client reuses it; the same as in Kafka's clients


class TokenSource(Protocol):
    """Provides bearer tokens."""

    def token(self) -> str:
        """A token; raises LoginFailed if there is none, ConnectionFailed if a retry may succeed."""
        ...


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that holds a token; another program renews it."""

    path: Path

    def token(self) -> str:
        """The file's current token; raises LoginFailed."""
        try:
            text = self.path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LoginFailed(str(self.path), f"the token file cannot be read ({type(error).__name__})") from None
        if not text or len(text) > limits.MAX_BEARER_BYTES:
            raise LoginFailed(str(self.path), f"the file holds {len(text)} bytes, which are not a token")
        return text


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """An identity provider, and the credentials for it."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    def token(self) -> str:
        """A token that is valid for most of its lifetime; raises LoginFailed."""
        kept = _kept.get(self)
        if kept is not None and time.monotonic() < kept[1]:
            return kept[0]
        asked_s = time.monotonic()
        token, lifetime_s = _understood(self.url, self._ask())
        _kept[self] = token, asked_s + lifetime_s * SHOWN_FOR
        return token

    def _ask(self) -> bytes:
        from barnabas.client.identity_provider import ask  # only clients of an identity provider need it

        return ask(self.url, self.client_id, self.client_secret, self.scope, self.timeout_ms / 1000)


_kept: dict[ClientCredentials, tuple[str, float]] = {}  # tokens, each with the time until which the client reuses it


def _understood(url: str, text: bytes) -> tuple[str, float]:
    """The token in a provider's answer, and its lifetime in seconds (0 if the answer has none)."""
    try:
        said = json.loads(text if len(text) <= limits.MAX_BEARER_BYTES else b"")
        token, lifetime_s = said["access_token"], float(said.get("expires_in", 0))
        if not isinstance(token, str) or not token:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LoginFailed(url, "the identity provider's answer holds no token") from None
    return token, lifetime_s


@dataclass(frozen=True, slots=True)
class GivenToken:
    """One token, such as that of a caller for whom a service acts."""

    text: str = field(repr=False)

    def token(self) -> str:
        """The token."""
        return self.text


def source_from(options: Mapping[str, str]) -> TokenSource:
    """The source of tokens in settings with the names of Kafka's clients, of librdkafka, or of a login context's options.

    Raises:
        ConfigError: no source is named, or settings are missing.
    """
    if options.get(TOKEN):
        return GivenToken(options[TOKEN])
    url = options.get(URL, "")
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        path = Path(unquote(urlsplit(url).path))
        if not path.is_file():
            raise ConfigError(URL, url, "a file with a token")
        return TokenFile(path)
    if scheme not in {"http", "https"}:
        raise ConfigError(URL, url, "file:///path of a file with a token, or the address of a provider (https:, http:)")
    client_id, client_secret = _first(options, CLIENT_ID), _first(options, CLIENT_SECRET)
    if client_id is None or client_secret is None:
        raise ConfigError(CLIENT_ID[0], client_id or "", f"a client id of the provider, with {CLIENT_SECRET[0]}")
    timeouts = [options[name] for name in (CONNECT_TIMEOUT, READ_TIMEOUT) if options.get(name)]
    for name in (CONNECT_TIMEOUT, READ_TIMEOUT):
        text = options.get(name) or "1"
        if not (is_number(text) and int(text)):
            raise ConfigError(name, text, "milliseconds, 1 or more")
    timeout_ms = max(map(int, timeouts), default=DEFAULT_TIMEOUT_MS)
    return ClientCredentials(url, client_id, client_secret, _first(options, SCOPES), timeout_ms)


def _first(options: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((options[name] for name in names if options.get(name)), None)
